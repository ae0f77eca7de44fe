//! Resolves the namespace of a name: declarations and their scope, and names as numbers.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::attributes::RawAttribute;
use super::{Fault, Reader, fault};
use crate::ast::XML_NAMESPACE;

const XMLNS_NAMESPACE: &str = "http://www.w3.org/2000/xmlns/";
/// Namespaces of one document, and declarations that hold at one place.
const MAX_NAMESPACES: usize = 1024;
pub(super) const NO_NAMESPACE: u32 = 0;

/// Names as they are written in one scope, with their numbers. A document chooses its names, so that the hash has a key that
/// nobody knows.
#[derive(Default)]
pub(super) struct RawNames<'t> {
    known: HashTable<RawName<'t>>,
    hasher: DefaultHashBuilder,
}

struct RawName<'t> {
    scope: u32,
    is_attribute: bool,
    raw: &'t str,
    number: u32,
}

/// The namespaces that are declared at one place: the first of all bindings, and a number of its own.
#[derive(Clone, Copy, Default)]
pub(super) struct Scope {
    number: u32,
    bindings: usize,
}

#[derive(Default)]
pub(super) struct Scopes<'t> {
    pub current: Scope,
    /// How many there have been.
    last: u32,
    /// Prefix and number of the namespace; the latest is the last.
    bindings: Vec<(&'t str, u32)>,
}

impl<'t> Scopes<'t> {
    fn enter(&mut self, prefix: &'t str, namespace: u32) {
        self.last += 1;
        self.bindings.push((prefix, namespace));
        self.current = Scope { number: self.last, bindings: self.bindings.len() };
    }

    pub fn leave(&mut self, outer: Scope) {
        self.bindings.truncate(outer.bindings);
        self.current = outer;
    }

    fn find(&self, prefix: &str) -> Option<u32> {
        self.bindings.iter().rev().find(|(known, _)| *known == prefix).map(|(_, namespace)| *namespace)
    }
}

/// The prefix that an attribute declares, if it is a declaration: `xmlns:n`, or `xmlns` for no prefix.
pub(super) fn declared_prefix(name: &str) -> Option<&str> {
    match name.strip_prefix("xmlns")? {
        "" => Some(""),
        rest => rest.strip_prefix(':'),
    }
}

impl<'t> Reader<'t, '_> {
    pub(super) fn declare(&mut self, prefix: &'t str, attribute: &RawAttribute<'t>) -> Result<(), Fault> {
        let (at, offset) = (self.document.values.len(), attribute.offset);
        self.attribute_value(attribute.value, offset + attribute.name.len())?;
        let uri = self.document.values.split_off(at);
        match (prefix, &*uri) {
            ("xmlns", _) => return fault(offset, "the prefix xmlns cannot be declared"),
            ("xml", XML_NAMESPACE) => return Ok(()),
            ("xml", _) => return fault(offset, "the prefix xml stands for another namespace"),
            (_, XML_NAMESPACE | XMLNS_NAMESPACE) => {
                return fault(offset, format!("the namespace {uri} cannot be declared"));
            }
            ("", _) => {}
            (_, "") => return fault(offset, format!("the namespace of the prefix {prefix} is empty")),
            _ => {}
        }
        let namespace = self.document.names.namespace(&uri);
        if namespace as usize > MAX_NAMESPACES || self.scopes.bindings.len() >= MAX_NAMESPACES {
            return fault(offset, format!("more than {MAX_NAMESPACES} namespaces are declared"));
        }
        self.scopes.enter(prefix, namespace);
        Ok(())
    }

    /// The number of a name as it is written here.
    pub(super) fn name(&mut self, raw: &'t str, offset: usize, is_attribute: bool) -> Result<u32, Fault> {
        let scope = self.scopes.current.number;
        let RawNames { known: names, hasher } = &mut self.raw_names;
        let hash = |scope: u32, raw: &str| hasher.hash_one((scope, raw));
        let same = |known: &RawName<'_>| {
            known.raw == raw && known.scope == scope && known.is_attribute == is_attribute
        };
        if let Some(known) = names.find(hash(scope, raw), same) {
            return Ok(known.number);
        }
        let (namespace, local) = match raw.split_once(':') {
            Some(("xml", local)) => (self.document.names.namespace(XML_NAMESPACE), local),
            Some((prefix, local)) => match self.scopes.find(prefix) {
                Some(namespace) => (namespace, local),
                None => return fault(offset, format!("the prefix {prefix} of {raw} is not declared")),
            },
            None if is_attribute => (NO_NAMESPACE, raw),
            None => (self.scopes.find("").unwrap_or(NO_NAMESPACE), raw),
        };
        let number = self.document.names.intern(namespace, local);
        let known = RawName { scope, is_attribute, raw, number };
        names.insert_unique(hash(scope, raw), known, |known| hash(known.scope, known.raw));
        Ok(number)
    }
}
