//! One query over the combinations of a join: the rows of its answer, and which of them DISTINCT has seen.

use std::sync::Arc;

use tamis_core::event::Value;
use tamis_core::term::Term;

use super::definition::{Definition, source_and_name};
use super::window_rows::Row;
use crate::flow::Kind;
use crate::key::{ByValue, heap_bytes, normal, value_of};

pub(super) struct JoinQuery {
    /// It sees rows with greater numbers.
    pub birth: u64,
    pub definition: Definition,
    pub names: Vec<Arc<str>>,
    /// How often each row of the answer occurs, for DISTINCT.
    pub distinct: Option<ByValue<Box<[Value]>, u32>>,
    pub bytes: usize,
}

/// The attribute and the row that a column is, if it is nothing else.
fn column_of<'r>(term: &Term, rows: &'r [Row]) -> Option<(Term, &'r Row)> {
    let Term::Attribute(name) = term else { return None };
    let (source, attribute) = source_and_name(name)?;
    Some((Term::attribute(attribute), rows.get(source)?))
}

impl JoinQuery {
    /// The row of the answer that a combination makes.
    pub fn row(&self, rows: &[Row]) -> Vec<(Arc<str>, Value)> {
        if self.names.is_empty() {
            let cells = rows.iter().enumerate().flat_map(|(at, row)| {
                let is_alone = rows.len() == 1;
                row.record.values().map(move |(name, value)| {
                    let name = if is_alone { name.to_owned() } else { format!("{at}.{name}") };
                    (name.into(), value.clone())
                })
            });
            return cells.collect();
        }
        let get = |name: &str| {
            let (source, attribute) = source_and_name(name)?;
            rows.get(source)?.record.get(attribute).map(Value::as_ref)
        };
        let cells = self.definition.columns.iter().zip(&self.names).map(|((_, term), name)| {
            let value = match column_of(term, rows) {
                Some((attribute, row)) => value_of(&attribute, &row.record),
                None => term.with_value(&get, |value| value.map_or(Value::Null, |value| value.to_owned())),
            };
            (name.clone(), value)
        });
        cells.collect()
    }

    /// Counts a row for DISTINCT; says whether the answer changes.
    pub fn counts(&mut self, row: &[(Arc<str>, Value)], kind: Kind) -> bool {
        let Some(counts) = &mut self.distinct else { return true };
        let key: Box<[Value]> = row.iter().map(|(_, value)| normal(value.clone())).collect();
        let bytes = 64 + key.iter().map(|value| size_of::<Value>() + heap_bytes(value)).sum::<usize>();
        match kind {
            Kind::Added => {
                let count = counts.entry(key).or_insert(0);
                *count += 1;
                let is_new = *count == 1;
                self.bytes += if is_new { bytes } else { 0 };
                is_new
            }
            Kind::Retracted => {
                let Some(count) = counts.get_mut(&key) else { return false };
                *count -= 1;
                let is_gone = *count == 0;
                if is_gone {
                    counts.remove(&key);
                    self.bytes -= bytes;
                }
                is_gone
            }
        }
    }
}
