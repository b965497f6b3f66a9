import java.io.FileReader;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/** A stateless application of Kafka Streams: copies one topic to another, as the properties file that it is given says. */
public class Pipe {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        try (FileReader reader = new FileReader(args[0])) {
            properties.load(reader);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(properties.getProperty("in"), Consumed.with(Serdes.String(), Serdes.String()))
            .to(properties.getProperty("out"), Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
