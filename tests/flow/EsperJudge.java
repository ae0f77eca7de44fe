import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

/**
 * What Esper tells of rules and rows. Reads lines of fields between tabs: "rule" and a statement, "row" and its values, "end" of
 * a case. Writes, for each case, a line for each match (the number of the rule and, for each column after a bar, those of its
 * rows), and a line "end". A column is a row, an array of rows (of a step that repeats) or the number of a row.
 */
public final class EsperJudge {
    public static final class Row {
        private final int at;
        private final long ts;
        private final String k;
        private final String kind;
        private final Integer v;

        Row(String[] fields) {
            at = Integer.parseInt(fields[1]);
            ts = Long.parseLong(fields[2]);
            k = fields[3].isEmpty() ? null : fields[3];
            kind = fields[4].isEmpty() ? null : fields[4];
            v = fields[5].isEmpty() ? null : Integer.valueOf(fields[5]);
        }

        public int getAt() {
            return at;
        }

        public long getTs() {
            return ts;
        }

        public String getK() {
            return k;
        }

        public String getKind() {
            return kind;
        }

        public Integer getV() {
            return v;
        }
    }

    /** Between two cases, so that nothing of one is in the windows of the next. */
    private static final long PAUSE = 1_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType(Row.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPRuntime runtime = EPRuntimeProvider.getRuntime("judge", configuration);
        runtime.getEventService().clockExternal();
        long start = 0;
        List<String> rules = new ArrayList<>();
        List<String[]> rows = new ArrayList<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t", -1);
            switch (fields[0]) {
                case "rule" -> rules.add(fields[1]);
                case "row" -> rows.add(fields);
                default -> {
                    start += PAUSE;
                    runtime.getEventService().advanceTime(start);
                    judge(runtime, configuration, rules, rows, start);
                    System.out.println("end");
                    rules.clear();
                    rows.clear();
                }
            }
        }
    }

    private static void judge(
        EPRuntime runtime, Configuration configuration, List<String> rules, List<String[]> rows, long start) throws Exception {
        EPCompiled compiled =
            EPCompilerProvider.getCompiler().compile(String.join(";\n", rules), new CompilerArguments(configuration));
        EPStatement[] statements = runtime.getDeploymentService().deploy(compiled).getStatements();
        for (int rule = 0; rule < statements.length; rule++) {
            int number = rule;
            statements[rule].addListener((come, gone, of, from) -> {
                for (EventBean match : come == null ? new EventBean[0] : come) {
                    StringBuilder written = new StringBuilder().append(number);
                    for (String column : new TreeSet<>(List.of(match.getEventType().getPropertyNames()))) {
                        written.append(" |");
                        note(match.get(column), written);
                    }
                    System.out.println(written);
                }
            });
        }
        for (String[] row : rows) {
            runtime.getEventService().advanceTime(start + 1_000 * Long.parseLong(row[2]));
            runtime.getEventService().sendEventBean(new Row(row), "Row");
        }
        runtime.getEventService().advanceTime(start + PAUSE / 2);
        runtime.getDeploymentService().undeployAll();
    }

    private static void note(Object value, StringBuilder written) {
        if (value instanceof Integer at) {
            written.append(' ').append(at);
        } else if (value instanceof Row row) {
            written.append(' ').append(row.getAt());
        } else if (value instanceof EventBean event) {
            note(event.getUnderlying(), written);
        } else if (value instanceof Object[] several) {
            for (Object one : several) {
                note(one, written);
            }
        } else if (value != null) {
            throw new IllegalStateException("a column holds " + value.getClass());
        }
    }
}
