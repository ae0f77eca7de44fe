//! Recently parsed attribute names of a thread: few names occur again and again, and another reference costs
//! less than another copy.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::term::Term;

const KEPT: usize = 1024;
/// Longer names are not kept.
const LONGEST: usize = 64;

thread_local! {
    /// By hash; a name takes the place of another one.
    static LATELY: RefCell<Vec<Option<Arc<str>>>> = const { RefCell::new(Vec::new()) };
}

/// The attribute of that name.
pub(super) fn attribute(name: &str) -> Term {
    if name.len() > LONGEST {
        return Term::attribute(name);
    }
    let mut hasher = FxHasher::default();
    name.hash(&mut hasher);
    let place = hasher.finish() as usize % KEPT;
    LATELY.with_borrow_mut(|lately| {
        if lately.is_empty() {
            lately.resize(KEPT, None);
        }
        let kept = &mut lately[place];
        match kept {
            Some(known) if **known == *name => Term::Attribute(known.clone()),
            _ => Term::Attribute(kept.insert(name.into()).clone()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_itself_whatever_was_read_before() {
        for round in 0..2 {
            for number in 0..3 * KEPT {
                let name = format!("a{number}");
                assert_eq!(attribute(&name).name(), name, "round {round}");
            }
        }
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(attribute(&long).name(), long);
    }
}
