import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FenceProducersOptions;

/** Fences COUNT ids that begin with PREFIX by Admin.fenceProducers, and prints the seconds, connection included. */
public class Fence {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        List<String> ids = IntStream.range(0, Integer.parseInt(args[2])).mapToObj(n -> args[1] + n).toList();
        if (args.length > 3) {
            properties.put("retry.backoff.ms", args[3]);
            properties.put("retry.backoff.max.ms", args[3]);
        }
        long began = System.nanoTime();
        String end = "";
        try (Admin admin = Admin.create(properties)) {
            admin.fenceProducers(ids, new FenceProducersOptions().timeoutMs(90_000)).all().get();
        } catch (ExecutionException e) {
            end = " " + e.getCause().getClass().getSimpleName();
        }
        System.out.printf("%.3f%s%n", (System.nanoTime() - began) / 1e9, end);
    }
}
