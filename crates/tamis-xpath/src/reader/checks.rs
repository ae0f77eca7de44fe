//! The checks that quick-xml omits: names, characters, processing instructions and the declaration.

use memchr::memchr;

use super::attributes::read_attributes;
use super::{Fault, fault};
use crate::names::name_length;

/// The name at the beginning of a tag, with its prefix.
pub(super) fn qualified_name(text: &str, offset: usize) -> Result<&str, Fault> {
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

pub(super) fn check_characters(text: &str, offset: usize) -> Result<(), Fault> {
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

pub(super) fn check_instruction(content: &str, offset: usize) -> Result<(), Fault> {
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

pub(super) fn check_declaration(content: &str, offset: usize) -> Result<(), Fault> {
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
    ) && found.iter().all(|part| match part.name {
        "version" => part.value.starts_with("1."),
        "encoding" => is_encoding_name(part.value),
        _ => matches!(part.value, "yes" | "no"),
    });
    if is_good {
        Ok(())
    } else {
        fault(offset, "the XML declaration has a version 1.x, an encoding and standalone, in this order")
    }
}

fn is_encoding_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}
