import com.sun.management.OperatingSystemMXBean;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.util.Map;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.type.TypeReference;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.BroadcastStream;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.BroadcastProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Flink's broadcast state pattern: every task holds all rules and evaluates them one by one for each event.
 *
 * <p>Arguments: a folder of rules (lines of id, tab, and equalities joined by AND), a folder of events (lines of JSON), the number
 * of tasks, and how often the job runs; the best run is printed. In batch mode Flink reads the broadcast side first, so that all
 * rules are there before the first event: its best case, and the only one in which the number of matches does not depend on
 * timing. Events travel as lines and are parsed where they are matched, which spares a serializer. What is parsed once per rule is
 * not parsed again: the state holds conditions, not texts.
 */
public final class BroadcastRules {
    private static final MapStateDescriptor<Long, Rule> RULES =
        new MapStateDescriptor<>("rules", Types.LONG, TypeInformation.of(Rule.class));

    /** A conjunction of equalities. */
    public static final class Rule implements Serializable {
        final long id;
        final String[] attributes;
        final Object[] values;

        Rule(String line) {
            int tab = line.indexOf('\t');
            id = Long.parseLong(line.substring(0, tab));
            String[] conditions = line.substring(tab + 1).split(" AND ");
            attributes = new String[conditions.length];
            values = new Object[conditions.length];
            for (int at = 0; at < conditions.length; at++) {
                String[] sides = conditions[at].split(" = ", 2);
                attributes[at] = sides[0];
                String value = sides[1];
                values[at] = value.startsWith("'") ? (Object) value.substring(1, value.length() - 1) : (Object) Long.valueOf(value);
            }
        }

        boolean matches(Map<String, Object> event) {
            for (int at = 0; at < attributes.length; at++) {
                if (!values[at].equals(event.get(attributes[at]))) {
                    return false;
                }
            }
            return true;
        }
    }

    /** Puts rules into the state, and hands on the pairs of events and rules that match. */
    public static final class Matching extends BroadcastProcessFunction<String, String, Tuple2<Long, Long>> {
        private static final TypeReference<Map<String, Object>> RECORD = new TypeReference<>() {};
        private transient ObjectMapper json;
        private final LongCounter events = new LongCounter();
        private final LongCounter matches = new LongCounter();
        private final LongCounter evaluated = new LongCounter();

        @Override
        public void open(OpenContext context) {
            json = new ObjectMapper().enable(DeserializationFeature.USE_LONG_FOR_INTS);
            getRuntimeContext().addAccumulator("events", events);
            getRuntimeContext().addAccumulator("matches", matches);
            getRuntimeContext().addAccumulator("evaluated", evaluated);
        }

        @Override
        public void processBroadcastElement(String line, Context context, Collector<Tuple2<Long, Long>> out) throws Exception {
            Rule rule = new Rule(line);
            context.getBroadcastState(RULES).put(rule.id, rule);
        }

        @Override
        public void processElement(String line, ReadOnlyContext context, Collector<Tuple2<Long, Long>> out) throws Exception {
            Map<String, Object> event = json.readValue(line, RECORD);
            Long key = (Long) event.get("event_id");
            long rules = 0;
            for (Map.Entry<Long, Rule> entry : context.getBroadcastState(RULES).immutableEntries()) {
                rules++;
                if (entry.getValue().matches(event)) {
                    matches.add(1);
                    out.collect(Tuple2.of(key, entry.getKey()));
                }
            }
            events.add(1);
            evaluated.add(rules);
        }
    }

    public static void main(String[] arguments) throws Exception {
        double least = Double.MAX_VALUE;
        String best = "";
        for (int run = 0; run < Integer.parseInt(arguments[3]); run++) {
            long processor = processorTime();
            long started = System.nanoTime();
            JobExecutionResult result = execute(arguments[0], arguments[1], Integer.parseInt(arguments[2]));
            double seconds = (System.nanoTime() - started) / 1e9;
            String line = String.format(
                "{\"seconds\": %.4f, \"processor\": %.4f, \"events\": %d, \"matches\": %d, \"evaluated\": %d}",
                seconds,
                (processorTime() - processor) / 1e9,
                result.<Long>getAccumulatorResult("events"),
                result.<Long>getAccumulatorResult("matches"),
                result.<Long>getAccumulatorResult("evaluated"));
            if (seconds < least) {
                least = seconds;
                best = line;
            }
        }
        System.out.println(best);
    }

    private static JobExecutionResult execute(String rules, String events, int tasks) throws Exception {
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(tasks);
        flink.setRuntimeMode(RuntimeExecutionMode.BATCH);
        flink.getConfig().enableObjectReuse();
        BroadcastStream<String> rulesOfAll = lines(flink, rules, "rules").broadcast(RULES);
        lines(flink, events, "events").connect(rulesOfAll).process(new Matching()).sinkTo(new DiscardingSink<>());
        return flink.execute("broadcast rules");
    }

    private static DataStream<String> lines(StreamExecutionEnvironment flink, String folder, String name) {
        FileSource<String> source =
            FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(folder)).build();
        return flink.fromSource(source, WatermarkStrategy.noWatermarks(), name);
    }

    private static long processorTime() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
