//! Adds plain text to a document, with references replaced.

use memchr::{memchr, memchr2};

use super::checks::check_characters;
use super::{Fault, Reader, fault};
use crate::internal_subset::{Entity, character};
use crate::names::name_length;

/// Entities inside entities.
const MAX_ENTITY_NESTING: usize = 16;

impl Reader<'_, '_> {
    /// Appends what a reference stands for.
    pub(super) fn replace_reference(
        &mut self,
        reference: &str,
        offset: usize,
        in_attribute: bool,
        nesting: usize,
        out: &mut String,
    ) -> Result<(), Fault> {
        let simple = match reference {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => match reference.strip_prefix('#') {
                None => None,
                Some(number) => match character(number) {
                    Some(c) => Some(c),
                    None => return fault(offset, format!("&{reference}; is not a character")),
                },
            },
        };
        if let Some(c) = simple {
            out.push(c);
            return Ok(());
        }
        if name_length(reference) != reference.len() || reference.is_empty() {
            return fault(offset, "a reference is &name; or &#number;; a lone & is written &amp;");
        }
        let text = match self.entities.as_ref().and_then(|entities| entities.get(reference)) {
            Some(Entity::Internal(text)) => text.clone(),
            Some(Entity::External) => {
                return fault(
                    offset,
                    format!("the entity {reference} is outside of the document, and is not read"),
                );
            }
            None => return fault(offset, format!("the entity {reference} is not declared")),
        };
        if nesting >= MAX_ENTITY_NESTING {
            return fault(offset, format!("entities are nested deeper than {MAX_ENTITY_NESTING} levels"));
        }
        if text.contains('<') {
            return fault(offset, format!("the entity {reference} holds markup, which is not supported"));
        }
        self.expanded += text.len().max(1);
        if self.expanded > self.limits.expansion {
            let message =
                format!("entities expand to more than the limit of {} bytes", self.limits.expansion);
            return fault(offset, message);
        }
        let mut rest = &*text;
        while let Some(at) = memchr(b'&', rest.as_bytes()) {
            push_plain(out, &rest[..at], in_attribute);
            let Some(length) = rest[at..].find(';') else {
                return fault(offset, "a reference in an entity does not end");
            };
            self.replace_reference(&rest[at + 1..at + length], offset, in_attribute, nesting + 1, out)?;
            rest = &rest[at + length + 1..];
        }
        push_plain(out, rest, in_attribute);
        Ok(())
    }

    /// Appends the value of an attribute, normalised.
    pub(super) fn attribute_value(&mut self, raw: &str, offset: usize) -> Result<(), Fault> {
        check_characters(raw, offset)?;
        let mut out = std::mem::take(&mut self.document.values);
        let mut rest = raw;
        let mut done = Ok(());
        while let Some(at) = memchr2(b'&', b'<', rest.as_bytes()) {
            push_plain(&mut out, &rest[..at], true);
            if rest.as_bytes()[at] == b'<' {
                done = fault(offset, "< is not allowed in the value of an attribute; write &lt;");
                break;
            }
            let Some(length) = rest[at..].find(';') else {
                done = fault(offset, "a reference does not end; a lone & is written &amp;");
                break;
            };
            done = self.replace_reference(&rest[at + 1..at + length], offset, true, 0, &mut out);
            if done.is_err() {
                break;
            }
            rest = &rest[at + length + 1..];
        }
        if done.is_ok() {
            push_plain(&mut out, rest, true);
        }
        self.document.values = out;
        done
    }
}

/// Appends text with line ends as XML has them.
pub(super) fn push_lines(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = memchr(b'\r', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = &rest[at + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    out.push_str(rest);
}

/// Appends text without references; in an attribute every kind of space is one.
fn push_plain(out: &mut String, text: &str, in_attribute: bool) {
    if !in_attribute {
        return push_lines(out, text);
    }
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'\t' | b'\n' | b'\r')) {
        out.push_str(&rest[..at]);
        out.push(' ');
        let pair = rest[at..].starts_with("\r\n");
        rest = &rest[at + 1 + usize::from(pair)..];
    }
    out.push_str(rest);
}
