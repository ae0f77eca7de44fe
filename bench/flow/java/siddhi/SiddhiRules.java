import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.lang.management.ManagementFactory;
import java.util.Map;

/**
 * Rules with memory in Siddhi: arguments are the case, the number of rules, of events to warm up with, and of events to
 * measure.
 */
public final class SiddhiRules {
    private static final Map<String, String> RULES = Map.of(
        "counts",
        "from Hit[kind == RULE]#window.time(60 sec) select user, count() as n group by user having n >= 8L "
            + "insert into Alerts;\n",
        "sequences",
        "from Hit[kind == RULE] insert into HitRULE;\n"
            + "partition with (user of HitRULE) begin from every e1=HitRULE<6> -> e2=HitRULE[ts > e1[last].ts] "
            + "within 60 sec select e2.user as user, 7L as n insert into Alerts; end;\n",
        "joins",
        "from Hit#window.length(1) as y unidirectional join Hit[kind == RULE]#window.time(60 sec) as x "
            + "on x.user == y.user and y.ts - x.ts >= 1L and y.ts - x.ts <= 40L "
            + "select x.user as user, y.ts - x.ts as n insert into Alerts;\n");

    private static long alerts;

    public static void main(String[] arguments) throws Exception {
        int rules = Integer.parseInt(arguments[1]);
        int warm = Integer.parseInt(arguments[2]);
        int measured = Integer.parseInt(arguments[3]);
        StringBuilder text = new StringBuilder("@app:playback define stream Hit (user int, kind int, ts long);\n");
        for (int rule = 0; rule < rules; rule++) {
            text.append(RULES.get(arguments[0]).replace("RULE", Integer.toString(rule)));
        }
        long base = usedMemory();
        long compiling = System.nanoTime();
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime(text.toString());
        runtime.addCallback("Alerts", new StreamCallback() {
            @Override
            public void receive(Event[] events) {
                alerts += events.length;
            }
        });
        InputHandler handler = runtime.getInputHandler("Hit");
        runtime.start();
        double microsPerRule = (System.nanoTime() - compiling) / 1e3 / rules;
        Traffic traffic = new Traffic(rules);
        for (int at = 0; at < warm; at++) {
            send(handler, traffic, at);
        }
        alerts = 0;
        long before = processorTime();
        for (int at = warm; at < warm + measured; at++) {
            send(handler, traffic, at);
        }
        double micros = (processorTime() - before) / 1e3 / measured;
        long bytes = usedMemory();
        System.out.printf(
            "{\"micros\": %.3f, \"alerts\": %d, \"bytes\": %d, \"base_bytes\": %d, \"grown_bytes\": %d, "
                + "\"micros_per_rule\": %.1f}%n",
            micros, alerts, bytes, base, bytes - base, microsPerRule);
        System.exit(0);
    }

    private static void send(InputHandler handler, Traffic traffic, int at) throws InterruptedException {
        traffic.next();
        long time = 1_000_000L + at;
        handler.send(time, new Object[] {traffic.user, traffic.kind, time});
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
