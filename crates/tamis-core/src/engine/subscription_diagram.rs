//! Draws a subscription inside the index: its expression as stored, and the subscriptions that share parts of it.

use rustc_hash::FxHashMap;

use super::contract::Version;
use super::segment::dag::{Gate, Target};
use super::segment::forms::Forms;
use crate::error::{Error, Result};
use crate::event::Terms;
use crate::expr::ast::Predicate;
use crate::expr::diagram::{Class, Graph};
use crate::expr::explanation_text::predicate_text;
use crate::subscription::Id;

/// The picture of a subscription with at most this many of its neighbours, those with the smallest ids.
pub fn subscription_diagram(reader: &dyn Version, id: &Id, most: usize) -> Result<Graph> {
    let location = reader.locate(id).ok_or_else(|| Error::missing(id))?;
    let mut places = vec![location];
    places.extend(reader.neighbours(location).into_iter().take(most));
    let mut terms = Terms::default();
    let mut forms = Forms::default();
    let mut picture = Picture::default();
    for place in places {
        let subscription = reader.subscription(place)?;
        forms.push(&subscription.expression, &mut terms);
        let root = forms.roots[forms.roots.len() - 1];
        let name = format!("subscription {}", subscription.id);
        picture.graph.node(&name, &name, Class::Subscription);
        if forms.roots.len() == 1 {
            let top = picture.draw(root, &forms, &terms);
            picture.graph.edge(&name, top);
        } else {
            picture.point_at_shared(&name, root, &forms);
        }
    }
    Ok(picture.graph)
}

#[derive(Default)]
struct Picture {
    graph: Graph,
    /// What stands for a node of the forms.
    drawn: FxHashMap<u32, String>,
    /// Predicates that were drawn.
    literals: FxHashMap<u32, String>,
}

impl Picture {
    /// Draws a node and all below it, each once, and returns what stands for it.
    fn draw(&mut self, node: u32, forms: &Forms, terms: &Terms) -> String {
        if let Some(name) = self.drawn.get(&node) {
            return name.clone();
        }
        let name = format!("node {node}");
        let at_least;
        let label = match (forms.dag.gate(node), forms.dag.children(node)) {
            (Gate::And, []) => "TRUE",
            (Gate::Or, []) => "FALSE",
            (Gate::And, _) => "AND",
            (Gate::Or, _) => "OR",
            (Gate::OddParity, _) => "odd",
            (Gate::EvenParity, _) => "even",
            (Gate::AtLeast(least), _) => {
                at_least = format!("AT LEAST {least} OF");
                &at_least
            }
        };
        self.graph.node(&name, label, Class::Connective);
        self.drawn.insert(node, name.clone());
        for child in forms.dag.children(node) {
            let below = match child.target() {
                Target::Node(child) => self.draw(child, forms, terms),
                Target::Literal(literal) => match self.literals.get(&literal.0) {
                    Some(name) => name.clone(),
                    None => {
                        let atom = forms.atoms.atom(literal.atom());
                        let text = predicate_text(&Predicate {
                            term: terms.term(atom.attribute).clone(),
                            operator: atom.operator,
                            negated: literal.is_negated(),
                            operands: atom.operands.clone(),
                            weight: None,
                        });
                        let name = format!("predicate {}", literal.0);
                        self.graph.node(&name, text, Class::Predicate);
                        self.literals.insert(literal.0, name.clone());
                        name
                    }
                },
            };
            self.graph.edge(&name, below);
        }
        name
    }

    /// Draws edges from a neighbour to the largest parts it shares; the rest of it is left out.
    fn point_at_shared(&mut self, from: &str, node: u32, forms: &Forms) {
        if let Some(shared) = self.drawn.get(&node) {
            let edge = (from.to_string(), shared.clone());
            if !self.graph.edges.contains(&edge) {
                self.graph.edges.push(edge);
            }
            return;
        }
        for child in forms.dag.children(node) {
            if let Target::Node(child) = child.target() {
                self.point_at_shared(from, child, forms);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Index, add_many};
    use crate::expr::parser::parse;
    use crate::subscription::Subscription;

    struct Rows(Vec<&'static str>);

    impl add_many::NewRows for Rows {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn id(&self, row: usize) -> Result<Id> {
            Ok(Id::Int(row as i64))
        }

        fn source(&self, row: usize) -> Result<add_many::Source<'_>> {
            Ok(add_many::Source::Parsed(parse(self.0[row])?))
        }

        fn details(&self, _: usize, _: &mut Subscription) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn neighbours_point_at_what_they_share() {
        let index = Index::default();
        let rows = Rows(vec![
            "(a = 1 OR b = 2) AND c = 3",
            "(b = 2 OR a = 1) AND d = 4",
            "e = 5 AND f = 6",
            "c = 3 AND (a = 1 OR b = 2)",
        ]);
        index.add_many(&rows, add_many::OnError::Raise).unwrap_or_else(|error| panic!("{error}"));
        let reader = index.unchecked_reader();
        let picture = |most| {
            subscription_diagram(&*reader, &Id::Int(0), most).unwrap_or_else(|error| panic!("{error}"))
        };
        let subscriptions = |graph: &Graph| -> Vec<String> {
            let shown = graph.nodes.iter().filter(|node| node.class == Class::Subscription);
            shown.map(|node| node.label.clone()).collect()
        };
        assert_eq!(subscriptions(&picture(0)), ["subscription 0"]);
        assert_eq!(subscriptions(&picture(9)), ["subscription 0", "subscription 1", "subscription 3"]);
        let graph = picture(9);
        let label = |id: &String| &graph.nodes.iter().find(|node| node.id == *id).expect("drawn").label;
        let target = |from: &str| {
            let mut edges = graph.edges.iter().filter(|(tail, _)| tail == from);
            label(&edges.next().expect("an edge").1).as_str()
        };
        assert_eq!((target("subscription 1"), target("subscription 3")), ("OR", "AND"));
    }
}
