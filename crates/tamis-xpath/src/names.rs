//! Which characters a name may contain (XML 1.0, fifth edition).

fn starts_name(c: char) -> bool {
    matches!(c, 'a'..='z' | 'A'..='Z' | '_' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}'
        | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
        | '\u{10000}'..='\u{EFFFF}')
}

fn continues_name(c: char) -> bool {
    starts_name(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// How many bytes at the beginning are a name without a colon; 0 if it does not begin with one.
pub fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut plain = 0;
    if bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
        plain = 1;
        while bytes
            .get(plain)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
        {
            plain += 1;
        }
        if bytes.get(plain).is_none_or(u8::is_ascii) {
            return plain;
        }
    }
    let mut chars = text.char_indices();
    if !chars.next().is_some_and(|(_, c)| starts_name(c)) {
        return plain;
    }
    chars.find(|(_, c)| !continues_name(*c)).map_or(text.len(), |(at, _)| at)
}

/// Whether a document may contain the character.
pub fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..='\u{10FFFF}')
}

#[cfg(test)]
mod tests {
    use super::name_length;

    #[test]
    fn names_end_where_they_should() {
        for (text, length) in
            [("a", 1), ("a-b.c_1 x", 7), ("é:x", 2), ("aé1>", 4), ("1a", 0), ("", 0), ("-a", 0), (":a", 0)]
        {
            assert_eq!(name_length(text), length, "{text:?}");
        }
    }
}
