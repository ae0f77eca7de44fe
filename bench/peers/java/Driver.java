import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/** What the Java adapters have in common; the same as common.py: arguments RULES EVENTS SECONDS, one line out. */
final class Driver {
    static final ObjectMapper JSON = new ObjectMapper();
    /** Rules that are tried before anything is measured, with one event. */
    private static final int TRIED = 100;

    interface Peer {
        void build(List<JsonNode> rules) throws Exception;

        /** How many rules the event satisfies; it comes as text and parsed, each peer takes what it wants. */
        int match(String text, JsonNode event) throws Exception;
    }

    static void drive(Callable<Peer> create, String[] arguments) throws Exception {
        List<JsonNode> rules = new ArrayList<>();
        try (var lines = Files.lines(Path.of(arguments[0]))) {
            for (var line : (Iterable<String>) lines::iterator) rules.add(JSON.readTree(line));
        }
        List<String> texts = Files.readAllLines(Path.of(arguments[1]));
        List<JsonNode> events = new ArrayList<>();
        for (String text : texts) events.add(JSON.readTree(text));
        double seconds = Double.parseDouble(arguments[2]);
        Peer tried = create.call();
        tried.build(rules.subList(0, Math.min(TRIED, rules.size())));
        tried.match(texts.get(0), events.get(0));
        long idleHeap = usedHeap();
        // Reset the peak of resident memory.
        Files.writeString(Path.of("/proc/self/clear_refs"), "5");
        long idle = resident("VmRSS:");
        Peer peer = create.call();

        long started = System.nanoTime();
        peer.build(rules);
        double buildSeconds = (System.nanoTime() - started) / 1e9;

        // A quarter of the time goes to warming up, so that compiled code is measured.
        int size = events.size();
        long warm = System.nanoTime() + (long) (seconds * 0.25e9);
        for (int i = 0; i < size && System.nanoTime() < warm; i++) peer.match(texts.get(i), events.get(i));

        List<Double> micros = new ArrayList<>();
        List<Integer> counts = new ArrayList<>();
        long deadline = System.nanoTime() + (long) (seconds * 1e9);
        for (int i = 0; i < size; i++) {
            long before = System.nanoTime();
            counts.add(peer.match(texts.get(i), events.get(i)));
            long after = System.nanoTime();
            micros.add((after - before) / 1e3);
            if (after > deadline) break;
        }
        System.out.println(JSON.writeValueAsString(Map.of(
            "build_seconds", buildSeconds, "micros", micros, "counts", counts,
            "peak_bytes", resident("VmHWM:") - idle, "settled_bytes", usedHeap() - idleHeap)));
        // Some peers keep threads that would keep the process.
        System.exit(0);
    }

    private static long resident(String key) throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith(key)) return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
        }
        return 0;
    }

    /** What objects take once garbage is collected; a Java process gives hardly any memory back. */
    private static long usedHeap() throws Exception {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(50);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }
}
