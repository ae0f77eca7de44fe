//! The names of records, which most records of a stream have in common and then hold once.

use tamis_core::event::{Names, Record};

/// Sets of names that are remembered.
const MOST: usize = 16;

/// The latest names, those of the last record first.
#[derive(Default)]
pub(crate) struct SharedNames(Vec<Names>);

impl SharedNames {
    /// Lets a record share its names with an earlier one.
    pub fn share(&mut self, record: &mut Record) {
        match self.0.iter().position(|names| record.share_names(names)) {
            Some(0) => {}
            Some(at) => self.0[..=at].rotate_right(1),
            None => {
                self.0.truncate(MOST - 1);
                self.0.insert(0, record.names().clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tamis_core::event::Value;

    use super::*;

    #[test]
    fn equal_names_are_one_and_few_are_remembered() {
        let mut shared = SharedNames::default();
        let mut record = |name: String| {
            let mut record = Record::new([(name, Value::Int(1))], []).unwrap();
            shared.share(&mut record);
            record
        };
        let first = record("a".into());
        assert!(Arc::ptr_eq(first.names(), record("a".into()).names()));
        record("b".into());
        assert!(Arc::ptr_eq(first.names(), record("a".into()).names()));
        for number in 0..MOST {
            record(format!("c{number}"));
        }
        assert!(!Arc::ptr_eq(first.names(), record("a".into()).names()));
        assert_eq!(shared.0.len(), MOST);
    }
}
