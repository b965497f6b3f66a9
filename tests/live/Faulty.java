package faulty;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * A source whose tasks fail as a file tells: FAULT-0 for task 0. A passing fault is gone with the failure, a stubborn one
 * has the same exception and stays, a lasting one is of the data. After the word may come an exception's class, and a
 * message: "passing java.net.SocketTimeoutException Read timed out".
 */
public class Faulty extends SourceConnector {
    private Map<String, String> properties;

    @Override
    public void start(Map<String, String> given) {
        properties = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Reader.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        List<Map<String, String>> configs = new ArrayList<>();
        for (int task = 0; task < most; task++) {
            Map<String, String> config = new HashMap<>(properties);
            config.put("number", String.valueOf(task));
            configs.add(config);
        }
        return configs;
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> config) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define("pin.of.the.vault", ConfigDef.Type.PASSWORD, "", ConfigDef.Importance.LOW, "A secret by its definition.")
            .define("door", ConfigDef.Type.PASSWORD, "", ConfigDef.Importance.LOW, "A secret whose name does not tell.");
    }

    @Override
    public String version() {
        return "1";
    }

    /** The task. */
    public static class Reader extends SourceTask {
        private Path fault;

        @Override
        public void start(Map<String, String> config) {
            fault = Path.of(config.get("fault") + "-" + config.get("number"));
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(100);
            if (!Files.exists(fault)) {
                return null;
            }
            try {
                String[] told = Files.readString(fault).strip().split(" ", 3);
                if (told[0].equals("lasting")) {
                    throw new DataException("not JSON: " + told[1] + " " + told[2]);
                }
                if (told[0].equals("passing")) {
                    Files.delete(fault);
                }
                throw new ConnectException("lost", cause(told));
            } catch (IOException | ReflectiveOperationException e) {
                throw new ConnectException(e);
            }
        }

        private static Throwable cause(String[] told) throws ReflectiveOperationException {
            if (told.length == 1) {
                return new TimeoutException("Timed out waiting for a node assignment.");
            }
            String message = told.length > 2 ? told[2] : "it happens";
            return (Throwable) Class.forName(told[1]).getConstructor(String.class).newInstance(message);
        }

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1";
        }
    }
}
