//! `xpath(doc, '/news//item[price > 5]')`: whether a path selects something in an XML document.
//!
//! The document is a string. The predicate is undefined for a string that is not well-formed XML, or beyond
//! the limits of a document. An index evaluates all paths on one attribute together (`predicate/paths.rs`).
//!
//! A path may carry weights, `/news/item^2[price > 5]^3`. They change only its score. So an index stores such
//! a path without them, and evaluates the document again to score candidates for the best k.

use std::cell::RefCell;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use tamis_xpath::{Path, Selector};

use super::{Rules, Shape, Syntax, Test};
use crate::expr::ast::Outcome;
use crate::value::Kind;
use crate::value::{Value, ValueRef};
use crate::xml::with_document;

pub struct XPath;

impl Rules for XPath {
    fn name(&self) -> &'static str {
        "xpath"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Function("xpath")
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        match operands.as_slice() {
            [Value::Str(text)] => match Path::parse(text) {
                Ok(path) => Ok(vec![Value::Str(path.to_string().into())]),
                Err(error) => Err(error.to_string()),
            },
            _ => Err("xpath takes a document and a path in quotes: xpath(doc, '/news/item')".into()),
        }
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        matches!(operands, [Value::Str(text)] if Path::parse(text).is_ok())
    }

    fn expects(&self, _operands: &[Value]) -> Option<Kind> {
        Some(Kind::Str)
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        let (Some(ValueRef::Str(text)), [Value::Str(path)]) = (value, operands) else {
            return Outcome::UNDEFINED;
        };
        with_selector(path, |selector| outcome(selector, text)).unwrap_or(Outcome::UNDEFINED)
    }

    fn shape<'a>(&self, _operands: &'a [Value]) -> Shape<'a> {
        Shape::Opaque
    }

    fn is_two_valued(&self, _operands: &[Value]) -> bool {
        false
    }

    fn most_score(&self, operands: &[Value]) -> Option<f64> {
        scored(operands).map(|path| path.most_score())
    }

    fn evaluate_scored(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> (Outcome, f64) {
        let (Some(ValueRef::Str(text)), [Value::Str(path)]) = (value, operands) else {
            return (Outcome::UNDEFINED, 1.0);
        };
        let score = |selector: &Selector| {
            with_document(text, |document| match document.map(|document| selector.score(document)) {
                Some(Some(score)) => (Outcome::TRUE, score),
                Some(None) => (Outcome::FALSE, 1.0),
                None => (Outcome::UNDEFINED, 1.0),
            })
        };
        with_selector(path, score).unwrap_or((Outcome::UNDEFINED, 1.0))
    }

    fn without_weights(&self, operands: &[Value]) -> Option<Box<[Value]>> {
        let path = scored(operands)?;
        Some([Value::Str(path.without_weights().to_string().into())].into())
    }

    fn compile(&self, operands: &[Value]) -> Option<Test> {
        let [Value::Str(path)] = operands else { return None };
        let selector = Selector::new(&Path::parse(path).ok()?);
        Some(Box::new(move |value| match value {
            ValueRef::Str(text) => outcome(&selector, text),
            _ => Outcome::UNDEFINED,
        }))
    }
}

/// The path, if weights are written in it.
fn scored(operands: &[Value]) -> Option<Path> {
    match operands {
        // Nearly all paths have none, and need not be read for that.
        [Value::Str(text)] if text.contains('^') => Path::parse(text).ok().filter(Path::is_scored),
        _ => None,
    }
}

fn outcome(selector: &Selector, text: &str) -> Outcome {
    with_document(text, |document| match document {
        Some(document) => selector.is_true(document).into(),
        None => Outcome::UNDEFINED,
    })
}

/// Paths that a thread keeps ready: what is tried one by one is few, and comes again with the next event.
const KEPT_SELECTORS: usize = 1024;

thread_local! {
    static SELECTORS: RefCell<HashMap<Box<str>, Selector, FxBuildHasher>> = RefCell::default();
}

fn with_selector<R>(path: &str, see: impl FnOnce(&Selector) -> R) -> Option<R> {
    SELECTORS.with_borrow_mut(|kept| {
        if !kept.contains_key(path) {
            if kept.len() >= KEPT_SELECTORS {
                kept.clear();
            }
            kept.insert(path.into(), Selector::new(&Path::parse(path).ok()?));
        }
        kept.get(path).map(see)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_false_and_undefined() {
        let operands = XPath.check(vec![Value::Str("/a[ b = 1 ]".into())]).unwrap();
        assert_eq!(operands, [Value::Str("/a[b = 1]".into())]);
        for (value, truth) in [
            (Some(ValueRef::Str("<a><b>1</b></a>")), Outcome::TRUE),
            (Some(ValueRef::Str("<a><b>2</b></a>")), Outcome::FALSE),
            (Some(ValueRef::Str("<a><b>1</b>")), Outcome::UNDEFINED),
            (Some(ValueRef::Str("")), Outcome::UNDEFINED),
            (Some(ValueRef::Int(1)), Outcome::UNDEFINED),
            (None, Outcome::UNDEFINED),
        ] {
            assert_eq!(XPath.evaluate(value, &operands), truth, "{value:?}");
            if let Some(value) = value {
                assert_eq!(XPath.compile(&operands).unwrap()(value), truth, "{value:?}");
            }
        }
    }

    #[test]
    fn weights_count_where_the_path_is_true() {
        let operands = XPath.check(vec![Value::Str("/a^2[ b=1 or (c)^3 ]".into())]).unwrap();
        assert_eq!(operands, [Value::Str("/a^2[b = 1 or (c)^3]".into())]);
        assert_eq!(XPath.most_score(&operands), Some(5.0));
        let plain = XPath.without_weights(&operands).unwrap();
        assert_eq!(*plain, [Value::Str("/a[b = 1 or c]".into())]);
        assert!(XPath.without_weights(&plain).is_none());
        assert_eq!(XPath.most_score(&plain), None);
        let caret = [Value::Str("/a[. = '^']".into())];
        assert!(XPath.without_weights(&caret).is_none() && XPath.most_score(&caret).is_none());
        for (text, outcome, score) in [
            ("<a><b>1</b></a>", Outcome::TRUE, 2.0),
            ("<a><b>1</b><c/></a>", Outcome::TRUE, 5.0),
            ("<a/>", Outcome::FALSE, 1.0),
            ("<a>", Outcome::UNDEFINED, 1.0),
        ] {
            let value = Some(ValueRef::Str(text));
            assert_eq!(XPath.evaluate_scored(value, &operands), (outcome, score), "{text}");
            assert_eq!(XPath.evaluate(value, &operands), outcome, "{text}");
            assert_eq!(XPath.evaluate_scored(value, &plain), (outcome, 1.0), "{text}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let error = XPath.check(vec![Value::Str("/a[1]".into())]).unwrap_err();
        assert!(error.contains("positions are not supported (at byte 3 of the path)"), "{error}");
        assert!(XPath.check(vec![Value::Null]).is_err());
        assert!(XPath.check(vec![Value::Int(1)]).is_err());
    }
}
