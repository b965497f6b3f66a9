package peer;

import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import io.apicurio.registry.utils.protobuf.schema.FileDescriptorUtils;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Optional;

/**
 * Reads messages of Protobuf by protobuf-java and the parser of Wire: a line "TEXT MESSAGE", each in
 * base64, is the text of a schema and a message of its first type. The answer is its JSON, and the
 * message that is made of this JSON again; or "error" with a message.
 */
public final class ProtobufPeer {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            Base64.Decoder decoder = Base64.getDecoder();
            Base64.Encoder encoder = Base64.getEncoder();
            String answer;
            try {
                String text = new String(decoder.decode(words[0]), StandardCharsets.UTF_8);
                FileDescriptor file =
                    FileDescriptorUtils.protoFileToFileDescriptor(
                        text, "tested.proto", Optional.of("shop"));
                DynamicMessage read =
                    DynamicMessage.parseFrom(
                        file.getMessageTypes().get(0),
                        words.length > 1 ? decoder.decode(words[1]) : new byte[0]);
                String json = JsonFormat.printer().preservingProtoFieldNames().print(read);
                DynamicMessage.Builder again = DynamicMessage.newBuilder(read.getDescriptorForType());
                JsonFormat.parser().merge(json, again);
                answer =
                    encoder.encodeToString(json.getBytes(StandardCharsets.UTF_8))
                        + " "
                        + encoder.encodeToString(again.build().toByteArray());
            } catch (Throwable e) {
                answer = "error " + (e + " " + e.getCause()).replace('\n', ' ');
            }
            System.out.println(answer);
        }
    }
}
