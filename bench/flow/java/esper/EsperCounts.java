import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import java.lang.management.ManagementFactory;

/** Windowed counts in Esper: arguments are the number of rules, of events to warm up with, and of events to measure. */
public final class EsperCounts {
    public static final class Hit {
        private final int user;
        private final int kind;

        Hit(int user, int kind) {
            this.user = user;
            this.kind = kind;
        }

        public int getUser() {
            return user;
        }

        public int getKind() {
            return kind;
        }
    }

    private static long alerts;

    public static void main(String[] arguments) throws Exception {
        int rules = Integer.parseInt(arguments[0]);
        int warm = Integer.parseInt(arguments[1]);
        int measured = Integer.parseInt(arguments[2]);
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType(Hit.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPRuntime runtime = EPRuntimeProvider.getRuntime("bench", configuration);
        runtime.getEventService().clockExternal();
        runtime.getEventService().advanceTime(0);
        long compiling = System.nanoTime();
        for (int first = 0; first < rules; first += 500) {
            StringBuilder text = new StringBuilder();
            for (int rule = first; rule < Math.min(first + 500, rules); rule++) {
                text.append("select user from Hit(kind = ").append(rule)
                    .append(")#time(60 sec) group by user having count(*) >= 8;\n");
            }
            CompilerArguments settings = new CompilerArguments(configuration);
            EPCompiled compiled = EPCompilerProvider.getCompiler().compile(text.toString(), settings);
            for (var statement : runtime.getDeploymentService().deploy(compiled).getStatements()) {
                statement.addListener((come, gone, of, from) -> {
                    if (come != null) {
                        alerts += come.length;
                    }
                });
            }
        }
        double microsPerRule = (System.nanoTime() - compiling) / 1e3 / rules;
        Traffic traffic = new Traffic(rules);
        for (int at = 0; at < warm; at++) {
            send(runtime, traffic, at);
        }
        alerts = 0;
        long before = processorTime();
        for (int at = warm; at < warm + measured; at++) {
            send(runtime, traffic, at);
        }
        double micros = (processorTime() - before) / 1e3 / measured;
        System.gc();
        long bytes = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
        System.out.printf(
            "{\"micros\": %.3f, \"alerts\": %d, \"bytes\": %d, \"micros_per_rule\": %.1f}%n",
            micros, alerts, bytes, microsPerRule);
    }

    private static void send(EPRuntime runtime, Traffic traffic, int at) {
        traffic.next();
        runtime.getEventService().advanceTime(at);
        runtime.getEventService().sendEventBean(new Hit(traffic.user, traffic.kind), "Hit");
    }

    private static long processorTime() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime();
    }
}
