//! From XML text to [`Document`], within limits.
//!
//! quick-xml finds tags, texts and comments. This module does what quick-xml leaves to its users, as libxml2 does it: it
//! checks that names and characters are valid, attributes distinct, namespaces declared and tags paired, and replaces
//! references.

mod attributes;
mod checks;
mod namespaces;
mod references;

#[cfg(test)]
mod tests;

use memchr::memmem;
use quick_xml::events::Event;

use crate::document::{Attribute, Document, Element, NONE, Text};
use crate::error::DocumentError;
use crate::internal_subset::Entities;
use attributes::{RawAttribute, read_attributes};
use checks::{check_characters, check_declaration, check_instruction, qualified_name};
use namespaces::{NO_NAMESPACE, RawNames, Scope, Scopes, declared_prefix};
use references::push_lines;

/// The limits of a document; beyond them, reading ends with an error.
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
        raw_names: RawNames::default(),
        entities: None,
        expanded: 0,
        joins_text: false,
        raw_attributes: vec![],
    };
    reader
        .all()
        .map_err(|(offset, message)| DocumentError::at(text, offset + (text.len() - body.len()), message))
}

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
    raw_names: RawNames<'t>,
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
}
