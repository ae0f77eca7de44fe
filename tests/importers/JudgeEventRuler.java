import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import software.amazon.event.ruler.Machine;

/** Reads JSON lines [pattern, event] and writes, for each, whether Event Ruler matches, or its error. */
public final class JudgeEventRuler {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode pair = mapper.readTree(line);
            try {
                Machine machine = new Machine();
                machine.addRule("r", pair.get(0).toString());
                System.out.println(!machine.rulesForJSONEvent(pair.get(1).toString()).isEmpty());
            } catch (Exception error) {
                System.out.println(mapper.writeValueAsString(error.getMessage()));
            }
        }
    }
}
