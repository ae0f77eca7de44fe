import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import software.amazon.event.ruler.Machine;

/**
 * Event Ruler, measured in turns with somebody else. Arguments: a file of patterns and one of events, a line each. For
 * every line "THREADS SECONDS" it matches events, the same ones over and over, and prints how many in how many seconds;
 * for a line "count" the matches of all events.
 */
public final class EventRulerTurns {
    public static void main(String[] arguments) throws Exception {
        Machine machine = new Machine();
        int number = 0;
        for (String pattern : Files.readAllLines(Path.of(arguments[0]))) {
            machine.addRule("rule" + number++, pattern);
        }
        List<String> events = Files.readAllLines(Path.of(arguments[1]));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = commands.readLine()) != null; ) {
            if (line.equals("count")) {
                long matches = 0;
                for (String event : events) matches += machine.rulesForJSONEvent(event).size();
                System.out.println(matches);
                continue;
            }
            String[] words = line.split(" ");
            int threads = Integer.parseInt(words[0]);
            long nanoseconds = (long) (Double.parseDouble(words[1]) * 1e9);
            AtomicLong done = new AtomicLong();
            long started = System.nanoTime();
            Thread[] running = new Thread[threads];
            for (int thread = 0; thread < threads; thread++) {
                int first = thread * events.size() / threads;
                running[thread] = new Thread(() -> {
                    long own = 0;
                    try {
                        for (int at = first; ; at = (at + 1) % events.size()) {
                            machine.rulesForJSONEvent(events.get(at));
                            own++;
                            if (own % 64 == 0 && System.nanoTime() - started > nanoseconds) break;
                        }
                    } catch (Exception problem) {
                        throw new IllegalStateException(problem);
                    }
                    done.addAndGet(own);
                });
                running[thread].start();
            }
            for (Thread thread : running) thread.join();
            System.out.println(done.get() + " " + (System.nanoTime() - started) / 1e9);
        }
    }
}
