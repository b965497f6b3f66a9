import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes RECORDS at RATE records a second to TOPIC, and commits a transaction every INTERVAL ms. Else by its defaults. */
public class Paced {
    private static final int TICK_MS = 10;

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("transactional.id", "paced-" + args[1]);
        properties.put("key.serializer", ByteArraySerializer.class);
        properties.put("value.serializer", ByteArraySerializer.class);
        long rate = Long.parseLong(args[2]), records = Long.parseLong(args[3]), interval = Long.parseLong(args[4]);
        String pad = "x".repeat(Integer.parseInt(args[5]));
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties)) {
            producer.initTransactions();
            long began = System.nanoTime(), given = 0, opened = 0;
            boolean open = false;
            while (given < records) {
                Thread.sleep(TICK_MS);
                long due = Math.min(records, (System.nanoTime() - began) * rate / 1_000_000_000L);
                String polled = String.format("%019d", System.currentTimeMillis() * 1_000_000);
                if (due > given && !open) {
                    producer.beginTransaction();
                    opened = System.nanoTime();
                    open = true;
                }
                for (; given < due; given++) {
                    byte[] value = (polled + String.format("%010d", given) + pad).getBytes(StandardCharsets.US_ASCII);
                    producer.send(new ProducerRecord<>(args[1], value));
                }
                if (open && System.nanoTime() - opened >= interval * 1_000_000) {
                    producer.commitTransaction();
                    open = false;
                }
            }
            if (open) {
                producer.commitTransaction();
            }
        }
    }
}
