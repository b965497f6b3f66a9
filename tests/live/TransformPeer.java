import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Applies Kafka's own transformations. Each line is {"schemas": bool, "stages": [{"type": …, …}], "value": base64 of JSON};
 * the answer is a line of topic, key and value in base64 ("-" for null), or "error" with the class, or "dropped".
 */
public class TransformPeer {
    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        JsonConverter requests = converter(false);
        Map<Boolean, JsonConverter> converters = Map.of(true, converter(true), false, converter(false));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> request =
                (Map<String, Object>) requests.toConnectData("", line.getBytes(StandardCharsets.UTF_8)).value();
            JsonConverter converter = converters.get((Boolean) request.get("schemas"));
            byte[] value = Base64.getDecoder().decode((String) request.get("value"));
            try {
                out.println(answer(converter, (List<Map<String, String>>) request.get("stages"), value));
            } catch (Exception e) {
                out.println("error " + e.getClass().getSimpleName() + " " + ("" + e.getMessage()).replace("\n", " "));
            }
        }
    }

    private static String answer(JsonConverter converter, List<Map<String, String>> stages, byte[] value) throws Exception {
        SchemaAndValue given = converter.toConnectData("topic-a", value);
        SinkRecord record = new SinkRecord("topic-a", 3, null, null, given.schema(), given.value(), 17,
            1700000000123L, TimestampType.CREATE_TIME);
        for (Map<String, String> stage : stages) {
            Map<String, String> properties = new LinkedHashMap<>(stage);
            Transformation<SinkRecord> transformation =
                (Transformation<SinkRecord>) Class.forName(properties.remove("type")).getDeclaredConstructor().newInstance();
            transformation.configure(properties);
            record = transformation.apply(record);
            if (record == null) {
                return "dropped";
            }
        }
        byte[] key = converter.fromConnectData(record.topic(), record.keySchema(), record.key());
        byte[] changed = converter.fromConnectData(record.topic(), record.valueSchema(), record.value());
        return "ok " + text(record.topic().getBytes(StandardCharsets.UTF_8)) + " " + text(key) + " " + text(changed);
    }

    private static String text(byte[] data) {
        return data == null ? "-" : Base64.getEncoder().encodeToString(data);
    }

    private static JsonConverter converter(boolean schemas) {
        JsonConverter made = new JsonConverter();
        made.configure(Map.of("schemas.enable", "" + schemas, "converter.type", "value"), false);
        return made;
    }
}
