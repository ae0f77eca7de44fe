//! `xpath(doc, '/news//item[price > 5]')`: whether a path selects something in an XML document.
//!
//! The document is a string. The predicate is undefined for a string that is not well-formed XML, or beyond the limits of
//! a document. An index asks all paths on one attribute together (`predicate/paths.rs`).

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

    fn compile(&self, operands: &[Value]) -> Option<Test> {
        let [Value::Str(path)] = operands else { return None };
        let selector = Selector::new(&Path::parse(path).ok()?);
        Some(Box::new(move |value| match value {
            ValueRef::Str(text) => outcome(&selector, text),
            _ => Outcome::UNDEFINED,
        }))
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
    fn what_is_no_path_is_refused() {
        let error = XPath.check(vec![Value::Str("/a[1]".into())]).unwrap_err();
        assert!(error.contains("positions are not supported (at byte 3 of the path)"), "{error}");
        assert!(XPath.check(vec![Value::Null]).is_err());
        assert!(XPath.check(vec![Value::Int(1)]).is_err());
    }
}
