//! The shape of a pattern's truth, for patterns that are rewritten before they are evaluated.

use super::case_variants::spellings;

/// For which texts a pattern is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextShape {
    /// Exactly this text.
    Whole(String),
    /// Exactly the texts that start with this.
    Prefix(String),
    /// Exactly the texts that end with this.
    Suffix(String),
    /// Exactly the texts that contain this.
    Substring(String),
    /// At most the texts that contain one of these.
    Literals(Vec<String>),
    /// Nothing is known.
    Opaque,
}

impl TextShape {
    /// For a shape of texts in lower case: strings of which one occurs in every text that has this shape, as the
    /// text is written. None if that is not certain.
    pub fn spelt(&self) -> Vec<String> {
        let each: Option<Vec<Vec<String>>> = match self {
            TextShape::Whole(text)
            | TextShape::Prefix(text)
            | TextShape::Suffix(text)
            | TextShape::Substring(text) => spellings(text).map(|spelt| vec![spelt]),
            TextShape::Literals(texts) => texts.iter().map(|text| spellings(text)).collect(),
            TextShape::Opaque => None,
        };
        each.map_or_else(Vec::new, |each| each.concat())
    }
}
