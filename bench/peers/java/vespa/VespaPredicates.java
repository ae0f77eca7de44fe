import com.fasterxml.jackson.databind.JsonNode;
import com.yahoo.document.predicate.Conjunction;
import com.yahoo.document.predicate.Disjunction;
import com.yahoo.document.predicate.FeatureRange;
import com.yahoo.document.predicate.FeatureSet;
import com.yahoo.document.predicate.Negation;
import com.yahoo.document.predicate.Predicate;
import com.yahoo.search.predicate.Config;
import com.yahoo.search.predicate.PredicateIndex;
import com.yahoo.search.predicate.PredicateIndexBuilder;
import com.yahoo.search.predicate.PredicateQuery;
import java.util.ArrayList;
import java.util.List;

/** Vespa's predicate search: every rule a document, every event a query; which attributes are present is a feature, too. */
public final class VespaPredicates implements Driver.Peer {
    private static final int ARITY = 8;
    private static final String PRESENT = "present";
    private PredicateIndex.Searcher searcher;

    @Override
    public void build(List<JsonNode> rules) {
        PredicateIndexBuilder builder = new PredicateIndexBuilder(new Config.Builder().setArity(ARITY).build());
        for (JsonNode rule : rules) builder.indexDocument(rule.get(0).asInt(), predicate(rule.get(1)));
        PredicateIndex index = builder.build();
        // Its counters of documents for each feature; searches without them do not skip.
        index.rebuildPostingListCache();
        searcher = index.searcher();
    }

    private static Predicate predicate(JsonNode tree) {
        String operator = tree.get(0).asText();
        if (operator.equals("and") || operator.equals("or")) {
            List<Predicate> children = new ArrayList<>();
            for (int i = 1; i < tree.size(); i++) children.add(predicate(tree.get(i)));
            return operator.equals("and") ? new Conjunction(children) : new Disjunction(children);
        }
        String attribute = tree.get(1).asText();
        if (operator.equals("=") || operator.equals("IN")) return anyOf(attribute, tree);
        if (operator.equals("!=") || operator.equals("NOT IN")) {
            return new Conjunction(new FeatureSet(PRESENT, attribute), new Negation(anyOf(attribute, tree)));
        }
        long bound = tree.get(2).asLong();
        return switch (operator) {
            case "<" -> new FeatureRange(attribute, null, bound - 1);
            case "<=" -> new FeatureRange(attribute, null, bound);
            case ">" -> new FeatureRange(attribute, bound + 1, null);
            default -> new FeatureRange(attribute, bound, null);
        };
    }

    private static Predicate anyOf(String attribute, JsonNode tree) {
        List<String> values = new ArrayList<>();
        for (int i = 2; i < tree.size(); i++) values.add(tree.get(i).asText());
        return new FeatureSet(attribute + "=", values);
    }

    @Override
    public int match(String text, JsonNode event) {
        PredicateQuery query = new PredicateQuery();
        event.fields().forEachRemaining(field -> {
            query.addFeature(PRESENT, field.getKey());
            query.addFeature(field.getKey() + "=", field.getValue().asText());
            if (field.getValue().isNumber()) query.addRangeFeature(field.getKey(), field.getValue().asLong());
        });
        return (int) searcher.search(query).count();
    }

    public static void main(String[] arguments) throws Exception {
        Driver.drive(VespaPredicates::new, arguments);
    }
}
