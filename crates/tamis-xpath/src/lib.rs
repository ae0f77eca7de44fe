//! Many XPath expressions on one XML document, all at once.
//!
//! ```text
//! text ─parser─> Path ─┐
//!                      ├─> PathSet ──matches──> which paths select something
//! XML ─reader─> Document ┘
//! ```
//!
//! A [`Path`] is true for a document when it selects at least one node. The language is a subset of XPath 1.0, with the
//! meaning that libxml2 gives it: steps to children and descendants, attributes, `text()`, and predicates made of paths,
//! comparisons, `contains`, `starts-with`, `and`, `or` and `not`. Everything else is refused, with its position.
//!
//! A [`Document`] is read once, without recursion and within [`Limits`], into a few flat arrays. [`PathSet`] holds many
//! paths in one immutable structure; its cost grows with the document and the paths that nearly match it, not with the
//! number of paths.
//!
//! ```
//! use tamis_xpath::{Document, Limits, Path, PathSet};
//!
//! let paths = ["/news//item[price > 5 and @lang = 'en']/title", "//item[not(title)]", "/news/item/@lang"];
//! let paths: Vec<Path> = paths.iter().map(|text| Path::parse(text).unwrap()).collect();
//! let set = PathSet::new(&paths);
//! let text = "<news><item lang='en'><title>On sieves</title><price>7</price></item></news>";
//! let document = Document::read(text, &Limits::default()).unwrap();
//! let mut found = vec![];
//! set.matches(&document, &mut |path| found.push(path));
//! found.sort();
//! assert_eq!(found, [0, 2]);
//! ```

mod ast;
mod compiled;
mod document;
mod error;
mod evaluation;
mod explanation;
mod internal_subset;
mod names;
mod number;
mod parser;
mod reader;
mod scoring;
mod set;
#[cfg(test)]
mod testing;
mod weights;

pub use ast::Path;
pub use document::Document;
pub use error::{DocumentError, PathError};
pub use evaluation::Selector;
pub use explanation::{Explanation, StepReached};
pub use reader::Limits;
pub use set::{MakeTextIndex, PathSet, PathSetBuilder, TextIndex, TextTest};
