import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.core.KeywordAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.LongPoint;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorConfiguration;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.monitor.TermFilteredPresearcher;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;

/** Lucene Monitor: every rule a stored query, every event a document; values are terms, numbers also points. */
public final class LuceneMonitor implements Driver.Peer {
    private final Monitor monitor;

    LuceneMonitor() throws Exception {
        monitor = new Monitor(new KeywordAnalyzer(), new TermFilteredPresearcher(), new MonitorConfiguration());
    }

    @Override
    public void build(List<JsonNode> rules) throws Exception {
        List<MonitorQuery> some = new ArrayList<>();
        for (JsonNode rule : rules) {
            some.add(new MonitorQuery(rule.get(0).asText(), query(rule.get(1))));
            if (some.size() == 5_000) {
                monitor.register(some);
                some.clear();
            }
        }
        monitor.register(some);
    }

    private static Query query(JsonNode tree) {
        String operator = tree.get(0).asText();
        if (operator.equals("and") || operator.equals("or")) {
            BooleanQuery.Builder group = new BooleanQuery.Builder();
            Occur occur = operator.equals("and") ? Occur.MUST : Occur.SHOULD;
            for (int i = 1; i < tree.size(); i++) group.add(query(tree.get(i)), occur);
            return group.build();
        }
        String attribute = tree.get(1).asText();
        if (operator.equals("=") || operator.equals("IN")) return anyOf(attribute, tree);
        if (operator.equals("!=") || operator.equals("NOT IN")) {
            return new BooleanQuery.Builder()
                .add(new TermQuery(new Term("present", attribute)), Occur.MUST)
                .add(anyOf(attribute, tree), Occur.MUST_NOT)
                .build();
        }
        long bound = tree.get(2).asLong();
        return switch (operator) {
            case "<" -> LongPoint.newRangeQuery(attribute, Long.MIN_VALUE, bound - 1);
            case "<=" -> LongPoint.newRangeQuery(attribute, Long.MIN_VALUE, bound);
            case ">" -> LongPoint.newRangeQuery(attribute, bound + 1, Long.MAX_VALUE);
            default -> LongPoint.newRangeQuery(attribute, bound, Long.MAX_VALUE);
        };
    }

    private static Query anyOf(String attribute, JsonNode tree) {
        BooleanQuery.Builder any = new BooleanQuery.Builder();
        for (int i = 2; i < tree.size(); i++) {
            Query one = new TermQuery(new Term(attribute + "=", tree.get(i).asText()));
            if (tree.size() == 3) return one;
            any.add(one, Occur.SHOULD);
        }
        return any.build();
    }

    @Override
    public int match(String text, JsonNode event) throws Exception {
        Document document = new Document();
        event.fields().forEachRemaining(field -> {
            document.add(new StringField("present", field.getKey(), Field.Store.NO));
            document.add(new StringField(field.getKey() + "=", field.getValue().asText(), Field.Store.NO));
            if (field.getValue().isNumber()) document.add(new LongPoint(field.getKey(), field.getValue().asLong()));
        });
        return monitor.match(document, QueryMatch.SIMPLE_MATCHER).getMatchCount();
    }

    public static void main(String[] arguments) throws Exception {
        Driver.drive(LuceneMonitor::new, arguments);
    }
}
