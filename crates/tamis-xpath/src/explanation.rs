//! Why a path is true or not: the nodes at each of its steps, and where it ends.

use std::fmt::{self, Display, Formatter};

use hashbrown::{HashMap, HashSet};

use crate::ast::{Condition, Name, NameTest, Path, Step as WrittenStep};
use crate::compiled::Step;
use crate::document::{Document, NONE, Node};
use crate::evaluation::{Selector, View};
use crate::scoring::Scores;

/// How far a path goes in a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The steps that some node satisfies, from the first.
    pub reached: Vec<StepReached>,
    /// The first step that no node satisfies; `None` if the path is true.
    pub missed: Option<StepMissed>,
    pub steps: usize,
    /// The score of a path with weights, if it is true. Then the nodes are those of its best embedding.
    pub score: Option<f64>,
}

/// A step that leads somewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReached {
    /// With the slashes before it.
    pub text: String,
    /// How many nodes it leads to.
    pub nodes: usize,
    /// One of them, such as `/news/item[2]`: one that the next steps lead on from.
    pub example: String,
    /// The score of the step there.
    pub counts: f64,
}

/// A step that leads nowhere.
#[derive(Clone, Debug, PartialEq)]
pub struct StepMissed {
    /// With the slashes before it, without its predicates.
    pub text: String,
    /// How many nodes there are that fail its predicates only.
    pub nodes: usize,
    /// Its predicates, each with how many of these nodes satisfy it.
    pub conditions: Vec<(String, usize)>,
}

impl Explanation {
    /// Follows a path step by step.
    ///
    /// ```
    /// use tamis_xpath::{Document, Explanation, Limits, Path};
    /// let document = Document::read("<news><item/><item><price>3</price></item></news>", &Limits::default()).unwrap();
    /// let path = Path::parse("/news/item[price > 5]/title").unwrap();
    /// assert_eq!(
    ///     Explanation::new(&path, &document).to_string(),
    ///     "reaches step 1 of 3, /news; of 2 nodes at /item none satisfies [price > 5]",
    /// );
    /// let path = Path::parse("//item[price]").unwrap();
    /// assert_eq!(Explanation::new(&path, &document).to_string(), "satisfies //item[price] at /news/item[2]");
    /// let path = Path::parse("/news^1/item[price or (.)^0.5]^2").unwrap();
    /// assert_eq!(
    ///     Explanation::new(&path, &document).to_string(),
    ///     "satisfies /news^1 at /news (1), /item[price or (.)^0.5]^2 at /news/item[1] (2.5) (2 nodes in all); scores 3.5",
    /// );
    /// ```
    pub fn new(path: &Path, document: &Document) -> Self {
        let selector = Selector::new(path);
        selector.with_view(document, |view| {
            let scores = Scores::new(view);
            let levels = levels(view, &selector.steps, &scores);
            let examples = embedding(view, &selector.steps, &levels);
            let written = |at: usize| &path.steps[at];
            let reached = examples.iter().enumerate().map(|(at, node)| StepReached {
                text: with_slashes(written(at)),
                nodes: levels[at + 1].len(),
                example: location(document, *node),
                counts: scores.of_step(*node, &selector.steps[at]).unwrap_or(0.0),
            });
            let reached: Vec<StepReached> = reached.collect();
            let missed = (reached.len() < path.steps.len())
                .then(|| missed(view, written(reached.len()), &selector.steps[reached.len()], &levels));
            let is_scored = selector.is_scored && missed.is_none();
            let score = is_scored.then(|| levels.last().and_then(best)).flatten().map(|(_, score)| score);
            Self { reached, missed, steps: path.steps.len(), score }
        })
    }
}

fn with_slashes(step: &WrittenStep) -> String {
    Path { steps: vec![step.clone()] }.to_string()
}

/// Nodes, each with the score of the best embedding of the steps so far that ends there.
type Level = Vec<(Node, f64)>;

/// The nodes before the first step and after each, up to the last step that leads somewhere; in document order.
fn levels(view: &View<'_>, steps: &[Step], scores: &Scores<'_, '_>) -> Vec<Level> {
    let mut levels = vec![vec![(Node::Document, 0.0)]];
    for at in 0..steps.len() {
        let mut next: HashMap<Node, f64> = HashMap::new();
        for (node, score) in &levels[at] {
            view.select(*node, &steps[at..=at], &mut |found| {
                let score = score + scores.of_step(found, &steps[at]).unwrap_or(0.0);
                let known = next.entry(found).or_insert(score);
                *known = known.max(score);
                false
            });
        }
        if next.is_empty() {
            break;
        }
        let mut next: Level = next.into_iter().collect();
        next.sort_by_key(|(node, _)| view.document.offset(*node));
        levels.push(next);
    }
    levels
}

/// The first of the nodes with the highest score.
fn best(level: &Level) -> Option<(Node, f64)> {
    level.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// One node for each step that leads somewhere, each reached from the one before: a best embedding.
fn embedding(view: &View<'_>, steps: &[Step], levels: &[Level]) -> Vec<Node> {
    let mut chosen: Vec<Node> = levels.last().and_then(best).map(|(node, _)| node).into_iter().collect();
    for at in (1..levels.len()).rev() {
        let target = chosen[chosen.len() - 1];
        let leads = |node: Node| view.select(node, &steps[at - 1..at], &mut |found| found == target);
        let leading: Level = levels[at - 1].iter().copied().filter(|(node, _)| leads(*node)).collect();
        if at > 1
            && let Some((node, _)) = best(&leading)
        {
            chosen.push(node);
        }
    }
    chosen.reverse();
    if levels.len() == 1 { vec![] } else { chosen }
}

fn missed(view: &View<'_>, written: &WrittenStep, step: &Step, levels: &[Level]) -> StepMissed {
    let bare = Step { conditions: [].into(), ..step.clone() };
    let mut nodes = HashSet::new();
    for (node, _) in levels.last().into_iter().flatten() {
        view.select(*node, std::slice::from_ref(&bare), &mut |found| {
            nodes.insert(found);
            false
        });
    }
    let conditions = written.conditions.iter().zip(&step.conditions).map(|(text, condition)| {
        let text = match text {
            Condition::Weighted(inner, _) => inner,
            plain => plain,
        };
        (text.to_string(), nodes.iter().filter(|node| view.holds(**node, condition)).count())
    });
    let text = with_slashes(&WrittenStep { weight: None, conditions: vec![], ..written.clone() });
    StepMissed { text, conditions: conditions.collect(), nodes: nodes.len() }
}

/// The way from the root to a node, with positions where siblings have the same name.
fn location(document: &Document, node: Node) -> String {
    let name = |name: u32| {
        let (namespace, local) = document.names.name(name);
        NameTest::Name(Name { namespace: namespace.into(), local: local.into() })
    };
    let leaf = match node {
        Node::Document => return "/".into(),
        Node::Element(element) => return element_location(document, element, &name),
        Node::Attribute(at) => format!("/@{}", name(document.attributes[at as usize].name)),
        Node::Text(_) => "/text()".into(),
    };
    let owner = match node {
        Node::Attribute(at) => {
            document.elements.partition_point(|element| element.first_attribute <= at) as u32 - 1
        }
        _ => {
            let offset = document.offset(node);
            let inside = document.elements.partition_point(|element| element.offset < offset) as u32 - 1;
            let mut owner = inside;
            while !document.texts_of(owner).any(|text| Node::Text(text) == node) {
                owner = document.elements[owner as usize].parent;
            }
            owner
        }
    };
    element_location(document, owner, &name) + &leaf
}

fn element_location(document: &Document, element: u32, name: &dyn Fn(u32) -> NameTest) -> String {
    let mut parts = vec![];
    let mut at = element;
    while at != NONE {
        let own = &document.elements[at as usize];
        let mut part = format!("/{}", name(own.name));
        if own.parent != NONE {
            let alike = |child: &u32| document.elements[*child as usize].name == own.name;
            let siblings: Vec<u32> = document.children(own.parent).filter(alike).collect();
            if siblings.len() > 1 {
                let position = siblings.iter().position(|sibling| *sibling == at).map_or(0, |at| at + 1);
                part += &format!("[{position}]");
            }
        }
        parts.push(part);
        at = own.parent;
    }
    parts.reverse();
    parts.concat()
}

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(missed) = &self.missed else {
            f.write_str("satisfies ")?;
            for (at, step) in self.reached.iter().enumerate() {
                write!(f, "{}{} at {}", if at > 0 { ", " } else { "" }, step.text, step.example)?;
                if self.score.is_some() {
                    write!(f, " ({})", step.counts)?;
                }
            }
            if let Some(last) = self.reached.last().filter(|last| last.nodes > 1) {
                write!(f, " ({} nodes in all)", last.nodes)?;
            }
            return self.score.map_or(Ok(()), |score| write!(f, "; scores {score}"));
        };
        match self.reached.last() {
            Some(last) => {
                write!(f, "reaches step {} of {}, {}; ", self.reached.len(), self.steps, last.text)?;
            }
            None => write!(f, "reaches none of {} steps; ", self.steps)?,
        }
        let StepMissed { text, nodes, conditions } = missed;
        let conditions: Vec<String> = match conditions.as_slice() {
            _ if *nodes == 0 => return write!(f, "there is no {text}"),
            [(condition, _)] => vec![format!("[{condition}]")],
            several => several.iter().map(|(condition, count)| format!("[{condition}] ({count})")).collect(),
        };
        let plural = if *nodes == 1 { "" } else { "s" };
        write!(f, "of {nodes} node{plural} at {text} none satisfies {}", conditions.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Limits;

    fn explained(path: &str) -> String {
        let text = "<n><i l='en'><t>x</t><p>7</p></i><i><t>y<b/>z</t></i><i l='de'><p>3</p></i></n>";
        let document = Document::read(text, &Limits::default()).unwrap();
        let path = Path::parse(path).unwrap();
        let explanation = Explanation::new(&path, &document);
        assert_eq!(explanation.missed.is_none(), Selector::new(&path).is_true(&document));
        assert_eq!(explanation.score, Selector::new(&path).score(&document).filter(|_| path.is_scored()));
        explanation.to_string()
    }

    #[test]
    fn steps_that_hold_name_their_nodes() {
        assert_eq!(explained("/n"), "satisfies /n at /n");
        assert_eq!(
            explained("/n/i/@l"),
            "satisfies /n at /n, /i at /n/i[1], /@l at /n/i[1]/@l (2 nodes in all)"
        );
        assert_eq!(explained("//i[p < 5]/@l"), "satisfies //i[p < 5] at /n/i[3], /@l at /n/i[3]/@l");
        assert_eq!(
            explained("//t/text()[. = 'z']"),
            "satisfies //t at /n/i[2]/t, /text()[. = 'z'] at /n/i[2]/t/text()"
        );
    }

    #[test]
    fn paths_with_weights_name_their_best_embedding() {
        assert_eq!(
            explained("/n^1/i[t or (@l = 'de')^3]/p"),
            "satisfies /n^1 at /n (1), /i[t or (@l = 'de')^3] at /n/i[3] (3), /p at /n/i[3]/p (0) \
             (2 nodes in all); scores 4"
        );
        assert_eq!(
            explained("/n/i[p > 9]^2"),
            "reaches step 1 of 2, /n; of 3 nodes at /i none satisfies [p > 9]"
        );
    }

    #[test]
    fn the_deepest_step_is_named() {
        assert_eq!(explained("/x/y"), "reaches none of 2 steps; there is no /x");
        assert_eq!(explained("/n/i/q/r"), "reaches step 2 of 4, /i; there is no /q");
        assert_eq!(
            explained("/n/i[p > 9]"),
            "reaches step 1 of 2, /n; of 3 nodes at /i none satisfies [p > 9]"
        );
        assert_eq!(
            explained("/n/i[p < 5][@l = 'en']"),
            "reaches step 1 of 2, /n; of 3 nodes at /i none satisfies [p < 5] (1) and [@l = 'en'] (1)"
        );
    }
}
