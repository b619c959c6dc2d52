import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * SAFE's job as a Kafka Streams programmer writes it: score, repartition by batch, fold, publish; exactly once.
 *
 * <p>Scores and counts are SAFE's. It has no checks of the input, no dead letters, no reports and no metrics; the latest
 * result of a test case is the last one that came.
 *
 * <p>java -cp … ScoringJob SERVERS INPUT OUTPUT GROUP PARTITIONS CASES STATE THREADS COMMIT_MS
 */
public final class ScoringJob {
    private static final ObjectMapper JSON = new ObjectMapper();

    private record Term(String text, String needle) {}

    private record Case(List<Term> signals, List<Term> forbidden, List<Term> phrases) {}

    public static void main(String[] arguments) throws IOException {
        String servers = arguments[0], input = arguments[1], output = arguments[2], group = arguments[3];
        int partitions = Integer.parseInt(arguments[4]);
        Map<String, Case> cases = read(new File(arguments[5]));

        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, group);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[6]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, arguments[7]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, arguments[8]);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), 2_000);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG), 3 << 20);
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 512 << 10);
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.LINGER_MS_CONFIG), 20);

        StreamsBuilder builder = new StreamsBuilder();
        builder.addStateStore(
            Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("labels"), Serdes.String(), Serdes.String()));
        builder.stream(input, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .process(() -> new Scorer(cases))
            .repartition(Repartitioned.with(Serdes.String(), Serdes.ByteArray()).withNumberOfPartitions(partitions))
            .processValues(Fold::new, "labels")
            .to(output, Produced.with(Serdes.String(), Serdes.ByteArray()));
        KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    private static Map<String, Case> read(File folder) throws IOException {
        Map<String, Case> cases = new HashMap<>();
        for (File file : folder.listFiles((parent, name) -> name.endsWith(".json"))) {
            String batch = file.getName().substring(0, file.getName().length() - ".json".length());
            for (JsonNode each : JSON.readTree(Files.readAllBytes(file.toPath())).path("test_cases")) {
                JsonNode wanted = each.path("expectations");
                cases.put(batch + "/" + each.path("test_id").asText(), new Case(
                    terms(wanted.path("signal_generation").path("must_find_signals")),
                    terms(wanted.path("followup_questions").path("forbidden_terms")),
                    terms(wanted.path("event_summary").path("must_contain_phrases"))));
            }
        }
        return cases;
    }

    private static List<Term> terms(JsonNode list) {
        List<Term> terms = new ArrayList<>();
        list.forEach(term -> terms.add(new Term(term.asText(), normalised(term.asText()))));
        return terms;
    }

    private static String normalised(String text) {
        return text.toLowerCase(Locale.ROOT).strip();
    }

    private static String joined(JsonNode list, String last) {
        StringBuilder text = new StringBuilder();
        list.forEach(each -> text.append(each.asText()).append(' '));
        return normalised(text.append(last).toString());
    }

    /** Score each event, and give it the key of its batch. */
    private static final class Scorer extends ContextualProcessor<byte[], byte[], String, byte[]> {
        private final Map<String, Case> cases;

        Scorer(Map<String, Case> cases) {
            this.cases = cases;
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            try {
                JsonNode event = JSON.readTree(record.value());
                String batch = event.path("batch_id").asText(), test = event.path("test_id").asText();
                String concern = event.path("concern_id").asText();
                var at = context().recordMetadata().orElseThrow();
                ObjectNode scored = JSON.createObjectNode();
                scored.put("concern_id", concern).put("batch_id", batch);
                scored.set("run_id", event.get("run_id"));
                scored.set("timestamp", event.get("generated_at"));
                scored.set("result", result(test, cases.get(batch + "/" + test), event.path("output")));
                scored.putObject("source")
                    .put("topic", at.topic()).put("partition", at.partition()).put("offset", at.offset());
                byte[] value = JSON.writeValueAsBytes(scored);
                context().forward(new Record<>(concern + "/" + batch, value, record.timestamp()));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private static ObjectNode result(String test, Case expected, JsonNode output) {
            ObjectNode result = JSON.createObjectNode().put("test_id", test);
            ObjectNode scores = result.putObject("scores"), details = result.putObject("details");
            String summary = output.path("summary").asText("");
            ObjectNode found = details.putObject("CR");
            double cr = share(expected.signals(), joined(output.path("signals"), summary), found);
            ArrayNode violations = details.putObject("AH").putArray("violations");
            String questions = joined(output.path("followup_questions"), "");
            for (Term term : expected.forbidden()) {
                if (questions.contains(term.needle())) violations.add(term.text());
            }
            int forbidden = expected.forbidden().size();
            double ah = forbidden == 0 ? 1.0 : 1.0 - (double) violations.size() / forbidden;
            double ac = share(expected.phrases(), normalised(summary), details.putObject("AC"));
            scores.put("CR", cr).put("AH", ah).put("AC", ac).put("composite", (cr + ah + ac) / 3);
            boolean fails = cr < 0.5 || ah < 0.5 || ac < 0.5, passes = cr >= 0.8 && ah >= 1.0 && ac >= 0.8;
            return result.put("label", fails ? "Fail" : passes ? "Pass" : "Review");
        }

        private static double share(List<Term> terms, String text, ObjectNode details) {
            ArrayNode found = details.putArray("found"), missing = details.putArray("missing");
            for (Term term : terms) (text.contains(term.needle()) ? found : missing).add(term.text());
            return terms.isEmpty() ? 1.0 : (double) found.size() / terms.size();
        }
    }

    /** Count each test case of a batch once, by its last label, and add the counts to the result. */
    private static final class Fold extends ContextualFixedKeyProcessor<String, byte[], byte[]> {
        private KeyValueStore<String, String> labels;
        private final Map<String, int[]> counts = new HashMap<>();

        @Override
        public void init(org.apache.kafka.streams.processor.api.FixedKeyProcessorContext<String, byte[]> context) {
            super.init(context);
            labels = context.getStateStore("labels");
            labels.all().forEachRemaining(row -> count(row.key.substring(0, row.key.lastIndexOf('/')), row.value, 1));
        }

        private int[] count(String batch, String label, int step) {
            int[] counted = counts.computeIfAbsent(batch, key -> new int[3]);
            counted[label.equals("Pass") ? 0 : label.equals("Review") ? 1 : 2] += step;
            return counted;
        }

        @Override
        public void process(FixedKeyRecord<String, byte[]> record) {
            try {
                ObjectNode event = (ObjectNode) JSON.readTree(record.value());
                String key = record.key() + "/" + event.path("result").path("test_id").asText();
                String label = event.path("result").path("label").asText(), before = labels.get(key);
                if (before != null) count(record.key(), before, -1);
                int[] counted = count(record.key(), label, 1);
                labels.put(key, label);
                int total = counted[0] + counted[1] + counted[2];
                event.putObject("summary")
                    .put("total_cases", total).put("pass", counted[0]).put("review", counted[1]).put("fail", counted[2])
                    .put("overall_pass_rate", (double) counted[0] / total);
                context().forward(record.withValue(JSON.writeValueAsString(event).getBytes(UTF_8)));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
