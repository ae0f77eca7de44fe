import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.DeploymentOptions;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import java.lang.management.ManagementFactory;
import java.util.Map;

/**
 * Rules with memory in Esper: arguments are the case, the number of rules, of events to warm up with, of events to
 * measure, and whether rules are compiled "apart" or "together". All rules of a case differ in one number, so that one
 * statement can be compiled and deployed for each of them. That is the best case: rules that people write differ in more
 * than a number, and to compile each apart takes 46 ms.
 */
public final class EsperRules {
    private static final Map<String, String> RULES = Map.of(
        "counts", "select user from Hit(kind = ?:kind:int)#time(60 sec) group by user having count(*) >= 8",
        "sequences",
        "select * from Hit(kind = ?:kind:int)#time(60 sec) match_recognize ("
            + "partition by user measures B.ts as ts after match skip past last row pattern (A{6} B) "
            + "define B as B.ts > A[5].ts)",
        "joins",
        "select x.ts from Hit as y unidirectional, Hit(kind = ?:kind:int)#time(60 sec) as x "
            + "where x.user = y.user and y.ts - x.ts between 1 and 40");

    public static final class Hit {
        private final int user;
        private final int kind;
        private final long ts;

        Hit(int user, int kind, long ts) {
            this.user = user;
            this.kind = kind;
            this.ts = ts;
        }

        public int getUser() {
            return user;
        }

        public int getKind() {
            return kind;
        }

        public long getTs() {
            return ts;
        }
    }

    private static long alerts;
    /** The sum of the times of alerts, to compare which they are. */
    private static long alertTimes;
    private static long now;

    public static void main(String[] arguments) throws Exception {
        int rules = Integer.parseInt(arguments[1]);
        int warm = Integer.parseInt(arguments[2]);
        int measured = Integer.parseInt(arguments[3]);
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType(Hit.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPRuntime runtime = EPRuntimeProvider.getRuntime("bench", configuration);
        runtime.getEventService().clockExternal();
        runtime.getEventService().advanceTime(0);
        long base = usedMemory();
        long compiling = System.nanoTime();
        deploy(runtime, configuration, RULES.get(arguments[0]), rules, arguments[4].equals("apart"));
        double microsPerRule = (System.nanoTime() - compiling) / 1e3 / rules;
        Traffic traffic = new Traffic(rules);
        for (int at = 0; at < warm; at++) {
            send(runtime, traffic, at);
        }
        alerts = 0;
        alertTimes = 0;
        long before = processorTime();
        for (int at = warm; at < warm + measured; at++) {
            send(runtime, traffic, at);
        }
        double micros = (processorTime() - before) / 1e3 / measured;
        long bytes = usedMemory();
        System.out.printf(
            "{\"micros\": %.3f, \"alerts\": %d, \"alert_times\": %d, \"bytes\": %d, \"base_bytes\": %d, \"grown_bytes\": %d, "
                + "\"micros_per_rule\": %.1f}%n",
            micros, alerts, alertTimes, bytes, base, bytes - base, microsPerRule);
    }

    private static void deploy(
        EPRuntime runtime, Configuration configuration, String rule, int rules, boolean apart) throws Exception {
        var compiler = EPCompilerProvider.getCompiler();
        var settings = new CompilerArguments(configuration);
        EPCompiled parametrized = apart ? null : compiler.compile(rule, settings);
        for (int first = 0; first < rules; first += apart ? 500 : 1) {
            EPCompiled compiled = parametrized;
            DeploymentOptions options = new DeploymentOptions();
            if (apart) {
                StringBuilder texts = new StringBuilder();
                for (int kind = first; kind < Math.min(first + 500, rules); kind++) {
                    texts.append(rule.replace("?:kind:int", Integer.toString(kind))).append(";\n");
                }
                compiled = compiler.compile(texts.toString(), settings);
            } else {
                int kind = first;
                options.setStatementSubstitutionParameter(statement -> statement.setObject("kind", kind));
            }
            for (var statement : runtime.getDeploymentService().deploy(compiled, options).getStatements()) {
                statement.addListener((come, gone, of, from) -> {
                    if (come != null) {
                        alerts += come.length;
                        alertTimes += come.length * now;
                    }
                });
            }
        }
    }

    private static void send(EPRuntime runtime, Traffic traffic, int at) {
        traffic.next();
        now = at;
        runtime.getEventService().advanceTime(at);
        runtime.getEventService().sendEventBean(new Hit(traffic.user, traffic.kind, at), "Hit");
    }

    /** Of the heap, after a collection. */
    private static long usedMemory() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    private static long processorTime() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime();
    }
}
