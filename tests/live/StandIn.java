package standin;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * Asks a worker for the offsets of the source partitions that a connector of a database would ask for, and writes down what
 * it was given. Subclasses have the names of those connectors. Commits the offset that it was given again, or a first one.
 */
public class StandIn extends SourceConnector {
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
        Map<String, String> config = new HashMap<>(properties);
        config.put("kind", getClass().getSimpleName());
        return List.of(config);
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> config) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public boolean alterOffsets(Map<String, String> config, Map<Map<String, ?>, Map<String, ?>> offsets) {
        return true;
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1";
    }

    /** The task of every one of them. */
    public static class Reader extends SourceTask {
        private Map<String, String> config;
        private List<SourceRecord> records;

        @Override
        public void start(Map<String, String> given) {
            config = given;
            records = new ArrayList<>();
            List<Map<String, String>> partitions = partitions();
            Map<Map<String, String>, Map<String, Object>> offsets = context.offsetStorageReader().offsets(partitions);
            List<String> asked = new ArrayList<>();
            for (Map<String, String> partition : partitions) {
                Map<String, Object> offset = usable(offsets.get(partition));
                asked.add("[" + json(partition) + ", " + (offset == null ? "null" : json(offset)) + "]");
                records.add(record(partition, offset == null ? first() : offset));
            }
            report("[" + String.join(", ", asked) + "]\n");
        }

        private List<Map<String, String>> partitions() {
            List<Map<String, String>> found = new ArrayList<>();
            switch (config.get("kind")) {
                case "JdbcSourceConnector":
                    for (String table : has("query") ? List.<String>of() : list("tables.of.the.database")) {
                        if (selected(table)) {
                            found.add(partition("protocol", "1", "table", table));
                        }
                    }
                    if (has("query")) {
                        found.add(Map.of("query", "query"));
                    }
                    return config.get("mode").equals("bulk") ? List.of() : found;
                case "SqlServerConnector":
                    for (String database : list("database.names")) {
                        found.add(partition("server", config.get("topic.prefix"), "database", database));
                    }
                    return found;
                case "MySqlConnector":
                    return List.of(Map.of("server", config.get("topic.prefix")));
                default:
                    for (String path : list("paths")) {
                        found.add(partition("account", config.get("account"), "path", path));
                    }
                    return found;
            }
        }

        /**
         * Workers find offsets by the order of the keys of a HashMap as their converter makes it: of the default capacity,
         * and without Map.of, whose order is another one in each JVM.
         */
        private static Map<String, String> partition(String one, String its, String other, String others) {
            Map<String, String> made = new HashMap<>();
            made.put(one, its);
            made.put(other, others);
            return made;
        }

        private boolean selected(String table) {
            if (has("table.include.list")) {
                return list("table.include.list").stream().anyMatch(table::matches)
                    && list("table.exclude.list").stream().noneMatch(table::matches);
            }
            List<String> names = Arrays.asList(table, table.substring(table.lastIndexOf('.') + 1));
            boolean included = !has("table.whitelist") || list("table.whitelist").stream().anyMatch(names::contains);
            return included && list("table.blacklist").stream().noneMatch(names::contains);
        }

        private String field() {
            return config.getOrDefault("mode", "").startsWith("timestamp") ? "timestamp" : "incrementing";
        }

        private Map<String, Object> usable(Map<String, Object> offset) {
            boolean other = offset != null && config.containsKey("mode") && !offset.containsKey(field());
            return other ? null : offset;
        }

        private Map<String, Object> first() {
            return config.containsKey("mode") ? Map.of(field(), 10L) : Map.of("position", 10L);
        }

        private boolean has(String key) {
            return !list(key).isEmpty();
        }

        private List<String> list(String key) {
            return Arrays.stream(config.getOrDefault(key, "").split(",")).map(String::trim).filter(s -> !s.isEmpty()).toList();
        }

        private SourceRecord record(Map<String, String> partition, Map<String, Object> offset) {
            return new SourceRecord(partition, offset, config.get("topic"), 0, Schema.STRING_SCHEMA, json(partition));
        }

        private static String json(Map<String, ?> values) {
            Map<String, String> told = new LinkedHashMap<>();
            values.forEach((key, value) -> told.put(key, value instanceof String ? "\"" + value + "\"" : "" + value));
            return told.toString().replace("{", "{\"").replace("=", "\": ").replace(", ", ", \"");
        }

        private void report(String line) {
            try {
                Files.write(Path.of(config.get("report")), line.getBytes(StandardCharsets.UTF_8),
                    StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (java.io.IOException e) {
                throw new org.apache.kafka.connect.errors.ConnectException(e);
            }
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            if (records.isEmpty()) {
                Thread.sleep(50);
                return null;
            }
            List<SourceRecord> all = records;
            records = new ArrayList<>();
            return all;
        }

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1";
        }
    }
}
