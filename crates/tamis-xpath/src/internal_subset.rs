//! The entities that a document declares for itself, between `<!DOCTYPE` and its end.
//!
//! Only internal entities of character data are supported. Nothing outside the document is ever read. Entities with
//! markup and parameter entities are refused, and declarations of elements and attributes are skipped.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::names::{is_xml_char, name_length};

#[derive(Default)]
pub(crate) struct Entities(HashMap<Box<str>, Entity, FxBuildHasher>);

pub(crate) enum Entity {
    /// Its replacement text, in which character references are replaced and others are not.
    Internal(Box<str>),
    External,
}

/// What is wrong, and how far into the declaration.
pub(crate) type Refused = (usize, String);

impl Entities {
    pub fn get(&self, name: &str) -> Option<&Entity> {
        self.0.get(name)
    }

    /// Reads what stands between `<!DOCTYPE` and `>`.
    pub fn read(text: &str) -> Result<Self, Refused> {
        let mut reader = Declarations { text, at: 0, found: Self::default() };
        reader.document_type()?;
        Ok(reader.found)
    }
}

struct Declarations<'t> {
    text: &'t str,
    at: usize,
    found: Entities,
}

impl<'t> Declarations<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn refuse<T>(&self, message: impl Into<String>) -> Result<T, Refused> {
        Err((self.at, message.into()))
    }

    fn space(&mut self) -> bool {
        let before = self.at;
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
        self.at > before
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn name(&mut self) -> Result<&'t str, Refused> {
        match name_length(self.rest()) {
            0 => self.refuse("a name is expected"),
            mut length => {
                // A colon is allowed in the name of the root.
                while self.rest()[length..].starts_with(':') {
                    length += 1 + name_length(&self.rest()[length + 1..]);
                }
                let name = &self.rest()[..length];
                self.at += length;
                Ok(name)
            }
        }
    }

    fn quoted(&mut self) -> Result<&'t str, Refused> {
        let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '\'' | '"')) else {
            return self.refuse("a text in quotes is expected");
        };
        let Some(length) = self.rest()[1..].find(quote) else {
            return self.refuse("this text has no closing quote");
        };
        let text = &self.rest()[1..1 + length];
        self.at += length + 2;
        Ok(text)
    }

    fn skip_past(&mut self, end: &str, what: &str) -> Result<(), Refused> {
        match self.rest().find(end) {
            Some(length) => {
                self.at += length + end.len();
                Ok(())
            }
            None => self.refuse(format!("{what} does not end")),
        }
    }

    fn document_type(&mut self) -> Result<(), Refused> {
        self.space();
        self.name()?;
        self.space();
        self.external_id()?;
        self.space();
        if self.take("[") {
            while !self.declaration()? {}
            self.space();
        }
        if self.rest().is_empty() { Ok(()) } else { self.refuse("the document type is not well-formed") }
    }

    /// Where something lies that is not read.
    fn external_id(&mut self) -> Result<bool, Refused> {
        let texts = if self.take("SYSTEM") {
            1
        } else if self.take("PUBLIC") {
            2
        } else {
            return Ok(false);
        };
        for _ in 0..texts {
            if !self.space() {
                return self.refuse("a space is expected");
            }
            self.quoted()?;
        }
        Ok(true)
    }

    /// Reads one declaration; says whether it was the end of all.
    fn declaration(&mut self) -> Result<bool, Refused> {
        self.space();
        if self.take("]") {
            return Ok(true);
        }
        if self.take("<!--") {
            self.skip_past("-->", "a comment")?;
        } else if self.take("<?") {
            self.skip_past("?>", "a processing instruction")?;
        } else if self.take("<!ENTITY") {
            self.entity()?;
        } else if self.take("<!ELEMENT") || self.take("<!ATTLIST") || self.take("<!NOTATION") {
            self.skip_declaration()?;
        } else if self.rest().starts_with('%') {
            return self.refuse("parameter entities are not supported");
        } else {
            return self.refuse("the document type is not well-formed");
        }
        Ok(false)
    }

    fn entity(&mut self) -> Result<(), Refused> {
        if !self.space() {
            return self.refuse("a space is expected");
        }
        if self.rest().starts_with('%') {
            return self.refuse("parameter entities are not supported");
        }
        let name = self.name()?;
        if !self.space() {
            return self.refuse("a space is expected");
        }
        let entity = if self.external_id()? {
            self.space();
            if self.take("NDATA") {
                self.space();
                self.name()?;
            }
            Entity::External
        } else {
            let at = self.at;
            let text = self.quoted()?;
            Entity::Internal(replacement(text).map_err(|message| (at, message))?)
        };
        self.space();
        if !self.take(">") {
            return self.refuse("the declaration of an entity does not end");
        }
        // The first declaration counts.
        self.found.0.entry(name.into()).or_insert(entity);
        Ok(())
    }

    fn skip_declaration(&mut self) -> Result<(), Refused> {
        loop {
            match self.rest().find(['>', '\'', '"']) {
                None => return self.refuse("a declaration does not end"),
                Some(length) => self.at += length,
            }
            if self.take(">") {
                return Ok(());
            }
            self.quoted()?;
        }
    }
}

/// The text of an entity with its character references replaced.
fn replacement(text: &str) -> Result<Box<str>, String> {
    if text.contains('%') {
        return Err("parameter entities are not supported".into());
    }
    if let Some(bad) = text.chars().find(|c| !is_xml_char(*c)) {
        return Err(format!("the character U+{:04X} is not allowed", bad as u32));
    }
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        replaced.push_str(&rest[..at]);
        let Some(length) = rest[at..].find(';') else {
            return Err("a reference in an entity does not end".into());
        };
        let reference = &rest[at + 1..at + length];
        match reference.strip_prefix('#') {
            Some(number) => replaced.push(character(number).ok_or("a character reference is not valid")?),
            None if name_length(reference) == reference.len() && !reference.is_empty() => {
                replaced.push_str(&rest[at..=at + length]);
            }
            None => return Err("a reference in an entity is not well-formed".into()),
        }
        rest = &rest[at + length + 1..];
    }
    replaced.push_str(rest);
    Ok(replaced.replace("\r\n", "\n").replace('\r', "\n").into())
}

/// The character of a reference, without `&#` and `;`.
pub(crate) fn character(reference: &str) -> Option<char> {
    let (digits, base) = match reference.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (reference, 10),
    };
    if digits.is_empty() || digits.len() > 16 || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let code = u32::from_str_radix(digits.trim_start_matches('0'), base).ok()?;
    char::from_u32(code).filter(|c| is_xml_char(*c))
}
