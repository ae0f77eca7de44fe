//! Finds which of many texts occur in a value, or begin it, for `contains` and `starts-with` on the first
//! node of a subject.
//!
//! This crate has no such index: a caller that has one passes it to the builder
//! ([`PathSetBuilder::with_text_index`](super::PathSetBuilder::with_text_index)). Without one, texts are tried one by one.

/// A text that a value is searched for.
#[derive(Clone, Copy, Debug)]
pub struct TextTest<'t> {
    pub id: u32,
    /// Never empty.
    pub text: &'t str,
    /// Whether the value must begin with it.
    pub at_start: bool,
}

/// Knows which of some tests a value passes.
pub trait TextIndex: Send + Sync {
    /// Calls `found` with the id of each test that the value passes, once.
    fn passed(&self, value: &str, found: &mut dyn FnMut(u32));

    fn heap_bytes(&self) -> usize;
}

/// Makes an index of some tests.
pub type MakeTextIndex = fn(&[TextTest<'_>]) -> Box<dyn TextIndex>;

/// Tries all.
struct OneByOne(Box<[(u32, Box<str>, bool)]>);

pub(super) fn one_by_one(tests: &[TextTest<'_>]) -> Box<dyn TextIndex> {
    Box::new(OneByOne(tests.iter().map(|test| (test.id, test.text.into(), test.at_start)).collect()))
}

impl TextIndex for OneByOne {
    fn passed(&self, value: &str, found: &mut dyn FnMut(u32)) {
        for (id, text, at_start) in &self.0 {
            if if *at_start { value.starts_with(&**text) } else { value.contains(&**text) } {
                found(*id);
            }
        }
    }

    fn heap_bytes(&self) -> usize {
        self.0.iter().map(|(_, text, _)| size_of::<(u32, Box<str>, bool)>() + text.len()).sum()
    }
}
