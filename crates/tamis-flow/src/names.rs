//! The field names of records, shared by the records of a stream that have the same ones.

use std::sync::Arc;

use tamis_core::event::{Names, Record};

/// Sets of names that are remembered.
const MOST: usize = 16;

/// The latest names, those of the last record first.
#[derive(Default)]
pub(crate) struct SharedNames {
    latest: Vec<Names>,
    /// The names that the last record came with. Records of one batch share theirs already, so that few are compared.
    given: Names,
}

impl SharedNames {
    /// Lets a record share its names with an earlier one.
    pub fn share(&mut self, record: &mut Record) {
        if let Some(first) = self.latest.first()
            && Arc::ptr_eq(&self.given, record.names())
        {
            return record.share_same_names(first);
        }
        self.given = record.names().clone();
        match self.latest.iter().position(|names| record.share_names(names)) {
            Some(0) => {}
            Some(at) => self.latest[..=at].rotate_right(1),
            None => {
                self.latest.truncate(MOST - 1);
                self.latest.insert(0, record.names().clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(shared.latest.len(), MOST);
    }

    #[test]
    fn records_that_came_with_one_name_share_it_with_earlier_ones() {
        let mut shared = SharedNames::default();
        let mut first = Record::new([("a", Value::Int(1))], []).unwrap();
        shared.share(&mut first);
        let batch = Record::new([("a", Value::Int(2))], []).unwrap();
        let other = Record::new([("b", Value::Int(2))], []).unwrap();
        for given in [&batch, &batch, &other, &other, &batch, &first, &batch] {
            let mut record = given.clone();
            shared.share(&mut record);
            assert_eq!(&record, given);
            assert_eq!(Arc::ptr_eq(record.names(), first.names()), record.get("a").is_some());
        }
    }
}
