//! Paths as they were written, and how they print.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::error::PathError;

/// The namespace that the prefix `xml` always stands for.
pub(crate) const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";

/// An absolute location path: true for a document in which it selects a node.
///
/// ```
/// use tamis_xpath::Path;
/// let path = Path::parse("/news // item[ @lang='en' ]").unwrap();
/// assert_eq!(path.to_string(), "/news//item[@lang = 'en']");
/// let namespaced = Path::parse("declare namespace n = 'urn:news'; /n:news").unwrap();
/// assert_eq!(namespaced.to_string(), "/Q{urn:news}news");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub(crate) steps: Vec<Step>,
}

/// A path inside a predicate, from the node that the predicate is about; without steps it is that node, `.`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RelativePath {
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub axis: Axis,
    pub test: Test,
    /// The weight of a node at this step.
    pub weight: Option<f64>,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Axis {
    Child,
    /// Written `//`. For elements these are descendants; attributes and texts are those of the node itself, too.
    Descendant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Test {
    Element(NameTest),
    Attribute(NameTest),
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NameTest {
    Any,
    AnyIn(Arc<str>),
    Name(Name),
}

/// A name with its namespace, which is empty for none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub namespace: Arc<str>,
    pub local: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Exists(RelativePath),
    Compare(RelativePath, Comparison, Literal),
    Contains(RelativePath, Box<str>),
    StartsWith(RelativePath, Box<str>),
    /// True where the condition is, and counts so much there; never inside another one or inside a NOT.
    Weighted(Box<Condition>, f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Text(Box<str>),
    /// As it was written, and its value.
    Number(Box<str>, f64),
}

impl Path {
    /// Reads a path of the subset; says what else is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        crate::parser::parse(text)
    }
}

impl Comparison {
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    pub fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }

    /// The comparison with its sides exchanged.
    pub fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| write!(f, "{}{step}", step.axis.separator()))
    }
}

impl Axis {
    fn separator(self) -> &'static str {
        match self {
            Axis::Child => "/",
            Axis::Descendant => "//",
        }
    }
}

impl Display for RelativePath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.steps.split_first() else { return f.write_str(".") };
        if first.axis == Axis::Descendant {
            f.write_str(".//")?;
        }
        write!(f, "{first}")?;
        rest.iter().try_for_each(|step| write!(f, "{}{step}", step.axis.separator()))
    }
}

/// Without the slashes before it.
impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.test {
            Test::Element(name) => write!(f, "{name}")?,
            Test::Attribute(name) => write!(f, "@{name}")?,
            Test::Text => f.write_str("text()")?,
        }
        if let Some(weight) = self.weight {
            write!(f, "^{weight}")?;
        }
        self.conditions.iter().try_for_each(|condition| match condition {
            Condition::Weighted(inner, weight) => write!(f, "[{inner}]^{weight}"),
            plain => write!(f, "[{plain}]"),
        })
    }
}

impl Display for NameTest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (namespace, local) = match self {
            Self::Any => return f.write_str("*"),
            Self::AnyIn(namespace) => (namespace, "*"),
            Self::Name(name) => (&name.namespace, &*name.local),
        };
        match &**namespace {
            "" => f.write_str(local),
            XML_NAMESPACE => write!(f, "xml:{local}"),
            namespace => write!(f, "Q{{{namespace}}}{local}"),
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::And(parts) => joined(f, parts, " and ", |part| matches!(part, Self::Or(_) | Self::And(_))),
            Self::Or(parts) => joined(f, parts, " or ", |part| matches!(part, Self::Or(_))),
            Self::Not(inner) => write!(f, "not({inner})"),
            Self::Exists(path) => write!(f, "{path}"),
            Self::Compare(path, comparison, literal) => write!(f, "{path} {} {literal}", comparison.symbol()),
            Self::Contains(path, text) => write!(f, "contains({path}, {})", Quoted(text)),
            Self::StartsWith(path, text) => write!(f, "starts-with({path}, {})", Quoted(text)),
            Self::Weighted(inner, weight) => write!(f, "({inner})^{weight}"),
        }
    }
}

fn joined(
    f: &mut Formatter<'_>,
    parts: &[Condition],
    word: &str,
    needs_parentheses: impl Fn(&Condition) -> bool,
) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(word)?;
        }
        if needs_parentheses(part) { write!(f, "({part})")? } else { write!(f, "{part}")? }
    }
    Ok(())
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Text(text) => Quoted(text).fmt(f),
            Literal::Number(text, _) => f.write_str(text),
        }
    }
}

/// XPath has no escapes: a text has one kind of quote at most.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quote = if self.0.contains('\'') { '"' } else { '\'' };
        write!(f, "{quote}{}{quote}", self.0)
    }
}
