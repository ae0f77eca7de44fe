//! Documents: the text of one attribute, parsed once for all paths that look into it.
//!
//! An XML document reaches the kernel as a string. The last document that a thread parsed is cached, keyed by its whole
//! text, so that several segments of an index, and predicates that are evaluated one by one, parse it once.

use std::cell::Cell;

use tamis_xpath::{Document, DocumentError, Limits};

/// Larger documents are not kept.
const MOST_KEPT_BYTES: usize = 4 << 20;

#[derive(Default)]
struct Kept {
    text: String,
    document: Document,
    is_well_formed: bool,
}

thread_local! {
    // Taken out while in use.
    static KEPT: Cell<Option<Box<Kept>>> = const { Cell::new(None) };
}

/// Shows the document of a text; `None` if it is not well-formed or beyond the limits.
pub fn with_document<R>(text: &str, see: impl FnOnce(Option<&Document>) -> R) -> R {
    let kept = KEPT.take();
    let mut kept = match kept {
        Some(kept) if kept.text == text && !text.is_empty() => kept,
        kept => {
            let mut kept = kept.unwrap_or_default();
            kept.is_well_formed = kept.document.replace(text, &Limits::default()).is_ok();
            kept.text.clear();
            kept.text.push_str(text);
            kept
        }
    };
    let seen = see(kept.is_well_formed.then_some(&kept.document));
    if kept.text.capacity() + kept.document.heap_bytes() > MOST_KEPT_BYTES {
        *kept = Kept::default();
    }
    KEPT.set(Some(kept));
    seen
}

/// What is wrong with a document, if anything.
pub fn check(text: &str) -> Result<(), DocumentError> {
    Document::read(text, &Limits::default()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_document_is_known_by_its_text() {
        let count = |text: &str| with_document(text, |document| document.map(Document::element_count));
        for _ in 0..2 {
            assert_eq!(count("<a><b/></a>"), Some(2));
        }
        assert_eq!(count("<a><b/></a"), None);
        assert_eq!(count("<a><b/><c/></a>"), Some(3));
        assert_eq!(count(""), None);
        let inner = with_document("<a/>", |_| count("<a><a/></a>"));
        assert_eq!(inner, Some(2), "a document may be asked for while another is in use");
    }
}
