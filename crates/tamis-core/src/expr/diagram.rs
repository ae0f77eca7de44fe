//! Pictures of expressions: a graph with labels and classes, written as Graphviz DOT or Mermaid.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use super::ast::{Expr, Outcome};
use super::explain::Explanation;
use super::explanation_text::predicate_text;

/// What a node is, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Subscription,
    Connective,
    Predicate,
    True,
    False,
    Undefined,
    Either,
}

impl Class {
    const ALL: [Class; 7] = [
        Class::Subscription,
        Class::Connective,
        Class::Predicate,
        Class::True,
        Class::False,
        Class::Undefined,
        Class::Either,
    ];

    fn name(self) -> &'static str {
        match self {
            Class::Subscription => "subscription",
            Class::Connective => "connective",
            Class::Predicate => "predicate",
            Class::True => "true",
            Class::False => "false",
            Class::Undefined => "undefined",
            Class::Either => "either",
        }
    }

    /// Fill and line.
    fn colours(self) -> (&'static str, &'static str) {
        match self {
            Class::Subscription => ("#e3ecf9", "#2f5fa7"),
            Class::Connective => ("#f2f2f2", "#555555"),
            Class::Predicate => ("#ffffff", "#555555"),
            Class::True => ("#d9f2dc", "#23803a"),
            Class::False => ("#f9dcdc", "#b3261e"),
            Class::Undefined => ("#eeeeee", "#888888"),
            Class::Either => ("#fdf1cf", "#a07a00"),
        }
    }
}

impl From<Outcome> for Class {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::TRUE => Class::True,
            Outcome::FALSE => Class::False,
            Outcome::UNDEFINED => Class::Undefined,
            Outcome::EITHER => Class::Either,
        }
    }
}

/// One node of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// Unique in its graph; any text.
    pub id: String,
    pub label: String,
    pub class: Class,
}

/// A directed graph, ready to be printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    pub nodes: Vec<GraphNode>,
    /// From one node's id to another's.
    pub edges: Vec<(String, String)>,
}

impl Graph {
    /// The tree of an expression as it is written, coloured by outcome where an explanation of the
    /// same expression is given.
    pub fn of_expression(expr: &Expr, explanation: Option<&Explanation>) -> Self {
        let mut graph = Graph::default();
        graph.add_expression(expr, explanation);
        graph
    }

    /// Adds a node.
    pub fn node(&mut self, id: impl Into<String>, label: impl Into<String>, class: Class) {
        self.nodes.push(GraphNode { id: id.into(), label: label.into(), class });
    }

    /// Adds an edge between two nodes, which may be added later.
    pub fn edge(&mut self, from: impl Into<String>, to: impl Into<String>) {
        self.edges.push((from.into(), to.into()));
    }

    fn add_expression(&mut self, expr: &Expr, explanation: Option<&Explanation>) -> String {
        let (label, children): (_, &[Expr]) = match expr {
            Expr::Constant(Outcome::TRUE) => ("TRUE".into(), &[]),
            Expr::Constant(Outcome::FALSE) => ("FALSE".into(), &[]),
            Expr::Constant(_) => ("NULL".into(), &[]),
            Expr::Predicate(predicate) => (predicate_text(predicate), &[]),
            Expr::Not(child) => ("NOT".into(), std::slice::from_ref(child)),
            Expr::And(children) => ("AND".into(), children),
            Expr::Or(children) => ("OR".into(), children),
            Expr::Xor(children) => ("XOR".into(), children),
            Expr::Xnor(children) => ("XNOR".into(), children),
            Expr::AtLeast(least, children) => (format!("AT LEAST {least} OF"), children),
        };
        let class = match explanation {
            Some(explanation) => explanation.outcome.into(),
            None if children.is_empty() => Class::Predicate,
            None => Class::Connective,
        };
        let seen = explanation.and_then(|explanation| explanation.seen.as_ref());
        let label = match seen {
            Some(seen) => format!("{label}\n{} {}", seen.attribute, seen.seen.text()),
            None => label,
        };
        let id = format!("n{}", self.nodes.len());
        self.node(id.clone(), label, class);
        for (at, child) in children.iter().enumerate() {
            let explained = explanation.and_then(|explanation| explanation.children.get(at));
            let child = self.add_expression(child, explained);
            self.edge(id.clone(), child);
        }
        id
    }

    /// The graph in Graphviz DOT.
    pub fn to_dot(&self) -> String {
        let mut text = String::from(
            "digraph tamis {\n  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n",
        );
        for GraphNode { id, label, class } in &self.nodes {
            let (fill, line) = class.colours();
            let (id, label) = (dot_string(id), dot_string(label));
            let _ = writeln!(text, "  {id} [label={label}, fillcolor=\"{fill}\", color=\"{line}\"];");
        }
        for (from, to) in &self.edges {
            let _ = writeln!(text, "  {} -> {};", dot_string(from), dot_string(to));
        }
        text.push_str("}\n");
        text
    }

    /// The graph in Mermaid. Edges to ids that no node has are left out.
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        // Mermaid's ids are bare words, so nodes are renamed by number.
        let mut numbers = FxHashMap::default();
        for (number, GraphNode { id, label, class }) in self.nodes.iter().enumerate() {
            numbers.insert(id.as_str(), number);
            let _ = writeln!(text, "  n{number}[\"{}\"]:::{}", mermaid_text(label), class.name());
        }
        for (from, to) in &self.edges {
            if let (Some(from), Some(to)) = (numbers.get(from.as_str()), numbers.get(to.as_str())) {
                let _ = writeln!(text, "  n{from} --> n{to}");
            }
        }
        for class in Class::ALL {
            if self.nodes.iter().any(|node| node.class == class) {
                let (fill, line) = class.colours();
                let _ = writeln!(text, "  classDef {} fill:{fill},stroke:{line}", class.name());
            }
        }
        text
    }
}

fn dot_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Mermaid reads labels as HTML and as Markdown: whatever means something there becomes an entity.
fn mermaid_text(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("<br/>"),
            c if c.is_control() => escaped.push(' '),
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' | '*' | '_' | ';' => {
                let _ = write!(escaped, "#{};", c as u32);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::explain::explain;
    use crate::expr::testing::{TestEvent, compare, lookup, predicate};
    use crate::value::Value;

    fn example() -> Expr {
        let quoted = Expr::Predicate(predicate("name", "=", &[Value::Str("a\"b\\<i>".into())]));
        Expr::And(vec![compare("age", ">", 3), Expr::Not(Box::new(quoted))])
    }

    #[test]
    fn dot_is_escaped_and_complete() {
        let dot = Graph::of_expression(&example(), None).to_dot();
        assert!(dot.starts_with("digraph tamis {\n") && dot.ends_with("}\n"));
        assert!(dot.contains(r#""n0" [label="AND","#), "{dot}");
        assert!(dot.contains(r#"label="name = 'a\"b\\\\<i>'""#), "{dot}");
        for edge in ["\"n0\" -> \"n1\";", "\"n0\" -> \"n2\";", "\"n2\" -> \"n3\";"] {
            assert!(dot.contains(edge), "{dot}");
        }
    }

    #[test]
    fn mermaid_is_escaped_and_complete() {
        let mermaid = Graph::of_expression(&example(), None).to_mermaid();
        assert!(mermaid.starts_with("flowchart TD\n"));
        assert!(mermaid.contains("n3[\"name = 'a#34;b#92;#92;#60;i#62;'\"]:::predicate\n"), "{mermaid}");
        assert!(mermaid.contains("  n2 --> n3\n"), "{mermaid}");
        assert!(mermaid.contains("classDef connective "), "{mermaid}");
    }

    #[test]
    fn outcomes_are_coloured() {
        let event = TestEvent::from([("age", Value::Int(2))]);
        let explanation = explain(&example(), &lookup(&event));
        let graph = Graph::of_expression(&example(), Some(&explanation));
        let classes: Vec<Class> = graph.nodes.iter().map(|node| node.class).collect();
        assert_eq!(classes, [Class::False, Class::False, Class::Undefined, Class::Undefined]);
        assert!(graph.to_dot().contains("age > 3\\nage is 2"));
        assert!(graph.to_mermaid().contains("age #62; 3<br/>age is 2"));
    }

    #[test]
    fn any_text_can_be_an_id() {
        let mut graph = Graph::default();
        graph.node("sub \"7\"", "ad-7", Class::Subscription);
        graph.node("", "x", Class::Predicate);
        graph.edge("sub \"7\"", "");
        graph.edge("sub \"7\"", "nowhere");
        assert!(graph.to_dot().contains(r#""sub \"7\"" -> "";"#));
        assert!(graph.to_mermaid().contains("n0 --> n1\n") && !graph.to_mermaid().contains("nowhere"));
    }
}
