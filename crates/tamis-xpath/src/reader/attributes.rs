//! Reads the attributes of a tag, and checks that they are distinct.

use memchr::memchr;

use super::checks::qualified_name;
use super::{Fault, Reader, fault};
use crate::document::Attribute;

/// Elements with more attributes have them sorted to find one that comes twice.
const FEW_ATTRIBUTES: usize = 8;

#[derive(Clone, Copy)]
pub(super) struct RawAttribute<'t> {
    pub name: &'t str,
    pub value: &'t str,
    pub offset: usize,
}

/// Finds name and value of each.
pub(super) fn read_attributes<'t>(
    text: &'t str,
    offset: usize,
    found: &mut Vec<RawAttribute<'t>>,
) -> Result<(), Fault> {
    let mut rest = text;
    let is_space = [' ', '\t', '\n', '\r'];
    loop {
        let trimmed = rest.trim_start_matches(is_space);
        if trimmed.is_empty() {
            return Ok(());
        }
        let here = offset + text.len() - trimmed.len();
        if trimmed.len() == rest.len() {
            return fault(here, "a space is expected before an attribute");
        }
        let name = qualified_name(trimmed, here)?;
        let after = trimmed[name.len()..].trim_start_matches(is_space);
        let Some(after) = after.strip_prefix('=') else {
            return fault(here, format!("the attribute {name} has no value"));
        };
        let after = after.trim_start_matches(is_space);
        let quote = match after.as_bytes().first() {
            Some(quote @ (b'"' | b'\'')) => *quote,
            _ => return fault(here, format!("the value of the attribute {name} is not in quotes")),
        };
        let Some(length) = memchr(quote, &after.as_bytes()[1..]) else {
            return fault(here, format!("the value of the attribute {name} does not end"));
        };
        found.push(RawAttribute { name, value: &after[1..1 + length], offset: here });
        rest = &after[length + 2..];
    }
}

impl Reader<'_, '_> {
    /// Whether the attributes of an element, which begin at `first`, are distinct: as written, and with their namespaces.
    pub(super) fn check_distinct(&self, first: usize, raw: &[RawAttribute<'_>]) -> Result<(), Fault> {
        let added = &self.document.attributes[first..];
        let twice = |attribute: &Attribute| {
            fault(attribute.offset as usize, "an attribute is given twice".to_string())
        };
        if raw.len() <= FEW_ATTRIBUTES {
            for (at, attribute) in added.iter().enumerate() {
                if added[..at].iter().any(|before| before.name == attribute.name) {
                    return twice(attribute);
                }
            }
            for (at, attribute) in raw.iter().enumerate() {
                if raw[..at].iter().any(|before| before.name == attribute.name) {
                    return fault(attribute.offset, "an attribute is given twice");
                }
            }
            return Ok(());
        }
        let mut names: Vec<(u32, u32)> =
            added.iter().zip(0..).map(|(attribute, at)| (attribute.name, at)).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return twice(&added[pair[1].1 as usize]);
        }
        let mut names: Vec<(&str, usize)> =
            raw.iter().map(|attribute| (attribute.name, attribute.offset)).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => fault(pair[1].1, "an attribute is given twice"),
            None => Ok(()),
        }
    }
}
