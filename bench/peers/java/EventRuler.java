import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import software.amazon.event.ruler.Machine;

/** Event Ruler: all rules in one machine; a rule of several patterns is added once for each. */
public final class EventRuler implements Driver.Peer {
    private final Machine machine = new Machine();

    @Override
    public void build(List<JsonNode> rules) throws Exception {
        for (JsonNode rule : rules) {
            for (JsonNode pattern : rule.get(1)) machine.addRule(rule.get(0).asText(), pattern.toString());
        }
    }

    @Override
    public int match(String text, JsonNode event) throws Exception {
        return machine.rulesForJSONEvent(text).size();
    }

    public static void main(String[] arguments) throws Exception {
        Driver.drive(EventRuler::new, arguments);
    }
}
