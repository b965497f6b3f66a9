package peer;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.apicurio.registry.utils.converter.SerdeBasedConverter;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.Converter;

/**
 * Converts values by the converters of workers: a line "read TOPIC BASE64" is read by the converter
 * under test and answered as JsonConverter writes it, "write TOPIC BASE64" is the way back. Answers
 * are lines of base64, or "error" with a message. Values of SerdeBasedConverter, which has no schemas
 * of Connect, are plain JSON.
 */
public final class ConverterPeer {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> configs = new HashMap<>();
        for (int i = 1; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            configs.put(pair[0], pair[1]);
        }
        Converter tested =
            (Converter) Class.forName(arguments[0]).getDeclaredConstructor().newInstance();
        tested.configure(configs, false);
        boolean ofNodes = tested.getClass() == SerdeBasedConverter.class;
        Converter json = new JsonConverter();
        json.configure(Map.of("schemas.enable", "true"), false);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            boolean reads = words[0].equals("read");
            String answer;
            try {
                byte[] data = Base64.getDecoder().decode(words[2]);
                SchemaAndValue found =
                    reads
                        ? tested.toConnectData(words[1], data)
                        : ofNodes ? node(data) : json.toConnectData(words[1], data);
                byte[] written =
                    reads && ofNodes
                        ? found.value().toString().getBytes(StandardCharsets.UTF_8)
                        : (reads ? json : tested)
                            .fromConnectData(words[1], found.schema(), found.value());
                answer = Base64.getEncoder().encodeToString(written);
            } catch (Throwable e) {
                Throwable cause = e.getCause() == null ? e : e.getCause();
                answer = "error " + (e + " " + cause).replace('\n', ' ');
            }
            System.out.println(answer);
        }
    }

    private static SchemaAndValue node(byte[] data) throws Exception {
        return new SchemaAndValue(null, new ObjectMapper().readTree(data));
    }
}
