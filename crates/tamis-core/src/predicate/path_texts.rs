//! Finds the texts of `contains` and `starts-with` inside documents, with the index of text predicates.

use tamis_xpath::{TextIndex, TextTest};

use super::patterns::TextPredicates;
use crate::expr::operators::Shape;

struct PathTexts(TextPredicates);

/// The index of some tests that paths make of one subject.
pub fn make_index(tests: &[TextTest<'_>]) -> Box<dyn TextIndex> {
    let shapes = tests.iter().map(|test| match test.at_start {
        true => (test.id, Shape::Prefix(test.text)),
        false => (test.id, Shape::Substring(test.text)),
    });
    Box::new(PathTexts(TextPredicates::new(shapes)))
}

impl TextIndex for PathTexts {
    fn passed(&self, value: &str, found: &mut dyn FnMut(u32)) {
        self.0.satisfied(value, &mut |id, _| found(id));
    }

    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_that_a_value_passes_is_found_once() {
        let tests = [
            TextTest { id: 7, text: "sieve", at_start: false },
            TextTest { id: 3, text: "On", at_start: true },
            TextTest { id: 9, text: "sieve", at_start: true },
            TextTest { id: 4, text: "s", at_start: false },
        ];
        let index = make_index(&tests);
        let passed = |value: &str| {
            let mut ids = vec![];
            index.passed(value, &mut |id| ids.push(id));
            ids.sort_unstable();
            ids
        };
        assert_eq!(passed("On sieves and sieves"), [3, 4, 7]);
        assert_eq!(passed("sieve"), [4, 7, 9]);
        assert_eq!(passed("On"), [3]);
        assert!(passed("").is_empty());
        assert!(index.heap_bytes() > 0);
    }
}
