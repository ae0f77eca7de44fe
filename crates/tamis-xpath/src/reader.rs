//! From XML text to [`Document`], within limits.
//!
//! quick-xml finds where tags, texts and comments are; here is what it leaves to its users: that names and characters are
//! valid, attributes distinct, namespaces declared, tags in pairs, and references replaced, each as libxml2 does it.

use hashbrown::HashTable;
use memchr::{memchr, memchr2, memmem};
use quick_xml::events::Event;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

use crate::ast::XML_NAMESPACE;
use crate::document::{Attribute, Document, Element, NONE, Text};
use crate::error::DocumentError;
use crate::internal_subset::{Entities, Entity, character};
use crate::names::name_length;

const XMLNS_NAMESPACE: &str = "http://www.w3.org/2000/xmlns/";
/// Entities inside entities.
const MAX_ENTITY_NESTING: usize = 16;
/// Namespaces of one document, and declarations that hold at one place.
const MAX_NAMESPACES: usize = 1024;
/// Elements with more attributes have them sorted to find one that comes twice.
const FEW_ATTRIBUTES: usize = 8;

/// What a document may have at most; beyond it, reading ends with an error.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Of the text.
    pub bytes: usize,
    /// Elements inside elements.
    pub depth: usize,
    /// Bytes that all references to entities together are replaced by.
    pub expansion: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 64 << 20, depth: 256, expansion: 1 << 20 }
    }
}

pub(crate) fn read(text: &str, limits: &Limits, document: &mut Document) -> Result<(), DocumentError> {
    if text.len() > limits.bytes {
        let message =
            format!("a document of {} bytes is larger than the limit of {}", text.len(), limits.bytes);
        return Err(DocumentError::at(text, 0, message));
    }
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let none = document.names.namespace("");
    debug_assert_eq!(none, NO_NAMESPACE);
    let mut reader = Reader {
        text: body,
        limits,
        document,
        open: vec![],
        scopes: Scopes::default(),
        raw_names: HashTable::new(),
        entities: None,
        expanded: 0,
        joins_text: false,
        raw_attributes: vec![],
    };
    reader
        .all()
        .map_err(|(offset, message)| DocumentError::at(text, offset + (text.len() - body.len()), message))
}

const NO_NAMESPACE: u32 = 0;

/// Where and what.
type Fault = (usize, String);

fn fault<T>(offset: usize, message: impl Into<String>) -> Result<T, Fault> {
    Err((offset, message.into()))
}

struct Reader<'t, 'd> {
    text: &'t str,
    limits: &'d Limits,
    document: &'d mut Document,
    open: Vec<Open<'t>>,
    scopes: Scopes<'t>,
    /// Names as they are written in one scope → their numbers.
    raw_names: HashTable<RawName<'t>>,
    entities: Option<Entities>,
    expanded: usize,
    /// Whether the last thing was character data, which the next continues.
    joins_text: bool,
    raw_attributes: Vec<RawAttribute<'t>>,
}

/// An element that has not ended.
struct Open<'t> {
    element: u32,
    raw_name: &'t str,
    /// Its last text so far.
    last_text: u32,
    outer_scope: Scope,
}

struct RawName<'t> {
    scope: u32,
    is_attribute: bool,
    raw: &'t str,
    number: u32,
}

#[derive(Clone, Copy)]
struct RawAttribute<'t> {
    name: &'t str,
    value: &'t str,
    offset: usize,
}

/// The namespaces that are declared at one place: the first of all bindings, and a number of its own.
#[derive(Clone, Copy, Default)]
struct Scope {
    number: u32,
    bindings: usize,
}

#[derive(Default)]
struct Scopes<'t> {
    current: Scope,
    /// How many there have been.
    last: u32,
    /// Prefix and number of the namespace; the latest is the last.
    bindings: Vec<(&'t str, u32)>,
}

impl<'t> Reader<'t, '_> {
    fn all(&mut self) -> Result<(), Fault> {
        let text = self.text;
        let mut source = quick_xml::Reader::from_str(text);
        let config = source.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.check_comments = true;
        let mut before_root = true;
        let mut has_doctype = false;
        // The content of an event as a part of the text, and where it lies.
        let place = |content: &str| {
            let offset = (content.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
            (text.get(offset..offset + content.len()).unwrap_or_default(), offset)
        };
        loop {
            let start = source.buffer_position() as usize;
            let event = match source.read_event() {
                Ok(event) => event,
                Err(error) => return fault(source.error_position() as usize, error.to_string()),
            };
            match event {
                Event::Start(tag) => {
                    let (content, offset) = place(&tag);
                    self.start(content, offset)?;
                    before_root = false;
                }
                Event::Empty(tag) => {
                    let (content, offset) = place(&tag);
                    self.start(content, offset)?;
                    self.end();
                    before_root = false;
                }
                Event::End(tag) => {
                    let (content, offset) = place(&tag);
                    let name = content.trim_end_matches([' ', '\t', '\n', '\r']);
                    match self.open.last() {
                        Some(open) if open.raw_name == name => self.end(),
                        Some(open) => {
                            return fault(
                                offset.saturating_sub(2),
                                format!("</{}> is expected, not </{name}>", open.raw_name),
                            );
                        }
                        None => {
                            return fault(
                                offset.saturating_sub(2),
                                format!("</{name}> ends an element that did not begin"),
                            );
                        }
                    }
                }
                Event::Text(content) => {
                    let (content, offset) = place(&content);
                    self.characters(content, offset, true)?;
                }
                Event::CData(content) => {
                    let (content, offset) = place(&content);
                    if self.open.is_empty() {
                        return fault(offset, "a CDATA section stands outside of the root element");
                    }
                    self.characters(content, offset, false)?;
                }
                Event::GeneralRef(content) => {
                    let (content, offset) = place(&content);
                    self.reference(content, offset)?;
                }
                Event::Comment(content) => {
                    let (content, offset) = place(&content);
                    check_characters(content, offset)?;
                    if content.ends_with('-') {
                        return fault(offset, "-- is not allowed in a comment");
                    }
                    self.joins_text = false;
                }
                Event::PI(content) => {
                    let (content, offset) = place(&content);
                    check_instruction(content, offset)?;
                    self.joins_text = false;
                }
                Event::Decl(content) => {
                    let (content, offset) = place(&content);
                    if offset != 2 {
                        return fault(offset, "the XML declaration is not at the beginning of the document");
                    }
                    check_declaration(content, offset)?;
                }
                Event::DocType(content) => {
                    let (content, offset) = place(&content);
                    if !before_root || has_doctype {
                        return fault(offset, "a document type stands once, before the root element");
                    }
                    has_doctype = true;
                    let entities =
                        Entities::read(content).map_err(|(inside, message)| (offset + inside, message))?;
                    self.entities = Some(entities);
                }
                Event::Eof => {
                    return match self.open.last() {
                        Some(open) => {
                            fault(text.len(), format!("the document ends inside of <{}>", open.raw_name))
                        }
                        None if before_root => fault(start.min(text.len()), "the document has no element"),
                        None => Ok(()),
                    };
                }
            }
        }
    }

    fn start(&mut self, content: &'t str, offset: usize) -> Result<(), Fault> {
        let raw_name = qualified_name(content, offset)?;
        if self.open.is_empty() && !self.document.elements.is_empty() {
            return fault(offset - 1, format!("<{raw_name}> is a second root element"));
        }
        if self.open.len() >= self.limits.depth {
            let message = format!("elements are nested deeper than the limit of {}", self.limits.depth);
            return fault(offset - 1, message);
        }
        let outer_scope = self.scopes.current;
        let mut attributes = std::mem::take(&mut self.raw_attributes);
        attributes.clear();
        read_attributes(&content[raw_name.len()..], offset + raw_name.len(), &mut attributes)?;
        for attribute in &attributes {
            if let Some(prefix) = declared_prefix(attribute.name) {
                self.declare(prefix, attribute)?;
            }
        }
        let name = self.name(raw_name, offset, false)?;
        let element = self.document.elements.len() as u32;
        let first_attribute = self.document.attributes.len();
        for attribute in &attributes {
            if declared_prefix(attribute.name).is_some() {
                continue;
            }
            let name = self.name(attribute.name, attribute.offset, true)?;
            let start = self.document.values.len() as u32;
            self.attribute_value(attribute.value, attribute.offset + attribute.name.len())?;
            let end = self.document.values.len() as u32;
            self.document.attributes.push(Attribute { name, start, end, offset: attribute.offset as u32 });
        }
        self.check_distinct(first_attribute, &attributes)?;
        self.raw_attributes = attributes;
        let text_start = self.document.text.len() as u32;
        self.document.elements.push(Element {
            name,
            parent: self.open.last().map_or(NONE, |open| open.element),
            end: element + 1,
            first_attribute: first_attribute as u32,
            first_text: NONE,
            text_start,
            text_end: text_start,
            offset: offset as u32 - 1,
        });
        self.open.push(Open { element, raw_name, last_text: NONE, outer_scope });
        self.joins_text = false;
        Ok(())
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let end = self.document.elements.len() as u32;
        let element = &mut self.document.elements[open.element as usize];
        element.end = end;
        element.text_end = self.document.text.len() as u32;
        self.scopes.leave(open.outer_scope);
        self.joins_text = false;
    }

    fn declare(&mut self, prefix: &'t str, attribute: &RawAttribute<'t>) -> Result<(), Fault> {
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
    fn name(&mut self, raw: &'t str, offset: usize, is_attribute: bool) -> Result<u32, Fault> {
        let scope = self.scopes.current.number;
        let hash = |scope: u32, raw: &str| FxBuildHasher.hash_one((scope, raw));
        let same = |known: &RawName<'_>| {
            known.raw == raw && known.scope == scope && known.is_attribute == is_attribute
        };
        if let Some(known) = self.raw_names.find(hash(scope, raw), same) {
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
        self.raw_names.insert_unique(hash(scope, raw), known, |known| hash(known.scope, known.raw));
        Ok(number)
    }

    fn check_distinct(&self, first: usize, raw: &[RawAttribute<'_>]) -> Result<(), Fault> {
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

    fn characters(&mut self, content: &str, offset: usize, is_text: bool) -> Result<(), Fault> {
        if content.is_empty() && is_text {
            return Ok(());
        }
        if self.open.is_empty() {
            let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
            return match content.find(|c| !is_space(c)) {
                Some(at) => fault(offset + at, "there is text outside of the root element"),
                None => Ok(()),
            };
        }
        check_characters(content, offset)?;
        if is_text && let Some(at) = memmem::find(content.as_bytes(), b"]]>") {
            return fault(offset + at, "]]> is not allowed in text");
        }
        self.continue_text(offset);
        push_lines(&mut self.document.text, content);
        self.finish_text();
        Ok(())
    }

    /// `&name;` or `&#number;` between tags.
    fn reference(&mut self, reference: &str, offset: usize) -> Result<(), Fault> {
        if self.open.is_empty() {
            return fault(offset, "a reference stands outside of the root element");
        }
        self.continue_text(offset);
        let mut replaced = std::mem::take(&mut self.document.text);
        let found = self.replace_reference(reference, offset, false, 0, &mut replaced);
        self.document.text = replaced;
        found?;
        self.finish_text();
        Ok(())
    }

    /// Begins a text, unless one goes on.
    fn continue_text(&mut self, offset: usize) {
        if self.joins_text {
            return;
        }
        self.joins_text = true;
        let at = self.document.texts.len() as u32;
        let start = self.document.text.len() as u32;
        self.document.texts.push(Text { start, end: start, next: NONE, offset: offset as u32 });
        let open = self.open.last_mut().expect("texts are inside of elements");
        match open.last_text {
            NONE => self.document.elements[open.element as usize].first_text = at,
            last => self.document.texts[last as usize].next = at,
        }
        open.last_text = at;
    }

    fn finish_text(&mut self) {
        let last = self.open.last().map_or(NONE, |open| open.last_text);
        self.document.texts[last as usize].end = self.document.text.len() as u32;
    }

    /// Appends what a reference stands for.
    fn replace_reference(
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
    fn attribute_value(&mut self, raw: &str, offset: usize) -> Result<(), Fault> {
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

impl<'t> Scopes<'t> {
    fn enter(&mut self, prefix: &'t str, namespace: u32) {
        self.last += 1;
        self.bindings.push((prefix, namespace));
        self.current = Scope { number: self.last, bindings: self.bindings.len() };
    }

    fn leave(&mut self, outer: Scope) {
        self.bindings.truncate(outer.bindings);
        self.current = outer;
    }

    fn find(&self, prefix: &str) -> Option<u32> {
        self.bindings.iter().rev().find(|(known, _)| *known == prefix).map(|(_, namespace)| *namespace)
    }
}

/// The prefix that an attribute declares, if it is a declaration: `xmlns:n`, or `xmlns` for no prefix.
fn declared_prefix(name: &str) -> Option<&str> {
    match name.strip_prefix("xmlns")? {
        "" => Some(""),
        rest => rest.strip_prefix(':'),
    }
}

/// The name at the beginning of a tag, with its prefix.
fn qualified_name(text: &str, offset: usize) -> Result<&str, Fault> {
    let mut length = name_length(text);
    if length > 0 && text[length..].starts_with(':') {
        let local = name_length(&text[length + 1..]);
        length = if local == 0 { 0 } else { length + 1 + local };
    }
    if length == 0 || text[length..].starts_with(':') {
        return fault(offset, "a name is expected here");
    }
    Ok(&text[..length])
}

fn read_attributes<'t>(text: &'t str, offset: usize, found: &mut Vec<RawAttribute<'t>>) -> Result<(), Fault> {
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

fn check_characters(text: &str, offset: usize) -> Result<(), Fault> {
    let bytes = text.as_bytes();
    let is_bad = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    // U+FFFE and U+FFFF begin with this byte.
    if !bytes.iter().any(is_bad) && memchr(0xEF, bytes).is_none() {
        return Ok(());
    }
    match text.char_indices().find(|(_, c)| !crate::names::is_xml_char(*c)) {
        Some((at, c)) => fault(offset + at, format!("the character U+{:04X} is not allowed", c as u32)),
        None => Ok(()),
    }
}

fn check_instruction(content: &str, offset: usize) -> Result<(), Fault> {
    let length = name_length(content);
    let target = &content[..length];
    if length == 0 || !content[length..].is_empty() && !content[length..].starts_with([' ', '\t', '\n', '\r'])
    {
        return fault(offset, "a processing instruction begins with a name");
    }
    if target.eq_ignore_ascii_case("xml") {
        return fault(offset, "the XML declaration is not at the beginning of the document");
    }
    check_characters(content, offset)
}

fn check_declaration(content: &str, offset: usize) -> Result<(), Fault> {
    let mut found = vec![];
    let Some(parts) = content.strip_prefix("xml") else { return fault(offset, "this is no XML declaration") };
    read_attributes(parts, offset + 3, &mut found)?;
    let names: Vec<&str> = found.iter().map(|part| part.name).collect();
    let is_good = matches!(
        names.as_slice(),
        ["version"]
            | ["version", "encoding"]
            | ["version", "standalone"]
            | ["version", "encoding", "standalone"]
    ) && found[0].value.starts_with("1.");
    if is_good {
        Ok(())
    } else {
        fault(offset, "the XML declaration has a version 1.x, an encoding and standalone, in this order")
    }
}

/// Appends text with line ends as XML has them.
fn push_lines(out: &mut String, text: &str) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Document, DocumentError> {
        Document::read(text, &Limits::default())
    }

    #[test]
    fn elements_attributes_and_texts_lie_in_document_order() {
        let document = read("<a x='1'>one<b y='2' z='3'>two</b>three<!-- c -->four<c/></a>").unwrap();
        let names: Vec<&str> = document.elements.iter().map(|e| document.names.name(e.name).1).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let texts: Vec<&str> =
            document.texts_of(0).map(|at| document.string_value(crate::document::Node::Text(at))).collect();
        assert_eq!(texts, ["one", "three", "four"]);
        assert_eq!(document.string_value(crate::document::Node::Element(0)), "onetwothreefour");
        assert_eq!(document.attributes_of(1).count(), 2);
        assert_eq!(document.children(0).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn what_libxml2_refuses_is_refused() {
        for text in [
            "",
            " ",
            "x",
            "<a",
            "<a>",
            "</a>",
            "<a></b>",
            "<a><b></a></b>",
            "<a/><b/>",
            "<a/>x",
            "x<a/>",
            "< a/>",
            "<a / >",
            "<a></ a>",
            "<1a/>",
            "<a:/>",
            "<:a/>",
            "<a:b:c/>",
            "<p:a/>",
            "<a p:x='1'/>",
            "<a x='1' x='2'/>",
            "<a x='1'y='2'/>",
            "<a x='<'/>",
            "<a x=1/>",
            "<a x/>",
            "<a ='1'/>",
            "<a x='1/>",
            "<a>]]></a>",
            "<a>\u{1}</a>",
            "<a>\u{ffff}</a>",
            "<a>&x;</a>",
            "<a>&amp</a>",
            "<a>& </a>",
            "<a>&;</a>",
            "<a x='&x;'/>",
            "<a x='&amp'/>",
            "<a>&#0;</a>",
            "<a>&#xD800;</a>",
            "<a>&#x;</a>",
            "<a><!-- -- --></a>",
            "<a><!-- a---></a>",
            "<a><!-- </a>",
            "<a><?xml x?></a>",
            " <?xml version='1.0'?><a/>",
            "<?xml version='1.0' foo='1'?><a/>",
            "<?xml?><a/>",
            "<a><?1?></a>",
            "<?a:b?><a/>",
            "<a><![CDATA[</a>",
            "<![CDATA[x]]><a/>",
            "<a xmlns:p=''/>",
            "<a xmlns:xml='u'/>",
            "<a xmlns:xmlns='u'/>",
            "<a xmlns:x='u' xmlns:y='u' x:a='' y:a=''/>",
            "<a xmlns='u' xmlns='v'/>",
            "<a/><!DOCTYPE a>",
            "<!DOCTYPE a><!DOCTYPE a><a/>",
            "<!DOCTYPE a [<!ENTITY e 'x'><a/>",
            "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>",
            "<!DOCTYPE a SYSTEM 'x.dtd'><a>&e;</a>",
            "&amp;<a/>",
            "<a/>&amp;",
            "<a><b/ ></a>",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_libxml2_accepts_is_accepted() {
        for text in [
            "<a/>",
            "\u{feff}<a/>",
            "<?xml version='1.0' encoding='utf-8' standalone='yes'?>\n<a/>\n",
            "<?xml version=\"1.1\"?><a/>",
            "<a x = '1' />",
            "<a\n>\n</a\n>",
            "<xml/>",
            "<a><!-- - --></a>",
            "<!DOCTYPE b><a/>",
            "<!DOCTYPE a SYSTEM 'x.dtd'><a/>",
            "<!DOCTYPE a [<!ELEMENT a (#PCDATA)><!ATTLIST a x CDATA '>'><!-- ] --> <?p ]?> ]><a/>",
            "<a xmlns:xml='http://www.w3.org/XML/1998/namespace' xml:lang='en'/>",
            "<a><?p q?></a><!-- end --><?p?>",
            "<a xmlns='u' xmlns:p='v'><p:b q='1' p:q='2'/></a>",
            "<é/>",
            "<a é='1'/>",
            "<a>&#9;&#xA;&#13;</a>",
        ] {
            if let Err(error) = read(text) {
                panic!("{text}: {error}");
            }
        }
    }

    #[test]
    fn references_and_line_ends_are_replaced() {
        let text = "<!DOCTYPE a [<!ENTITY e 'v&amp;w'><!ENTITY f '&e;&e;'><!ENTITY g '&#38;#60;'>]>\
            <a x=\"1\t2&#9;3\r\n4&f;\">1\r\n2\r3&#13;&f;<![CDATA[&e;]]>&g;</a>";
        let document = read(text).unwrap();
        assert_eq!(document.text, "1\n2\n3\rv&wv&w&e;<");
        assert_eq!(document.values, "1 2\t3 4v&wv&w");
        assert_eq!(document.texts.len(), 1);
    }

    #[test]
    fn faults_have_a_place() {
        let error = read("<a>\n  <b x='1'\n     y='2' x='3'/>\n</a>").err().unwrap();
        assert_eq!((error.line, error.column), (3, 12), "{error}");
        let error = read("<a>\n\u{e9}\u{e9}<b></a>").err().unwrap();
        assert_eq!((error.line, error.column), (2, 6), "{error}");
    }

    #[test]
    fn bombs_and_depth_are_bounded() {
        let mut text = String::from("<!DOCTYPE a [<!ENTITY e0 'ha'>");
        for level in 1..15 {
            text += &format!("<!ENTITY e{level} '{}'>", format!("&e{};", level - 1).repeat(10));
        }
        text += "]><a>&e14;</a>";
        assert!(read(&text).err().unwrap().message.contains("expand to more"));
        let recursive = "<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><a>&e;</a>";
        assert!(read(recursive).err().unwrap().message.contains("nested deeper"));
        let deep = "<a>".repeat(1_000_000);
        assert!(read(&deep).err().unwrap().message.contains("nested deeper than the limit of 256"));
        let limits = Limits { bytes: 10, ..Limits::default() };
        assert!(Document::read("<a>0123456789</a>", &limits).err().unwrap().message.contains("larger than"));
        let wide: String = (0..100_000).map(|at| format!(" a{at}='1'")).collect();
        assert_eq!(read(&format!("<a{wide}/>")).unwrap().attributes.len(), 100_000);
        assert!(read(&format!("<a{wide} a7='2'/>")).err().unwrap().message.contains("twice"));
    }
}
