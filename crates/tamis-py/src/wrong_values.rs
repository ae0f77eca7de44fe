//! Values of a kind that no predicate expects, in events from Python.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use tamis_core::engine::ExpectedKinds;
use tamis_core::event::{ArrowEvents, Event, EventSource, Kind};

use crate::batch::Given;
use crate::errors::{OrRaise, argument_error};

/// (attribute, kind of value, how many), sorted by attribute as they were given.
#[pyfunction]
#[pyo3(signature = (expected, events, cells = false))]
pub fn wrong_values(
    expected: Vec<(String, Vec<String>)>,
    events: &Bound<'_, PyAny>,
    cells: bool,
) -> PyResult<Vec<(String, &'static str, u64)>> {
    let py = events.py();
    let mut named = vec![];
    for (name, kinds) in &expected {
        let kinds: Option<Vec<Kind>> = kinds.iter().map(|kind| Kind::named(kind)).collect();
        let kinds = kinds.ok_or_else(|| argument_error(py, format!("`{name}` expects an unknown kind")))?;
        named.push((name.as_str(), kinds));
    }
    let by_name: BTreeMap<String, Vec<Kind>> =
        named.iter().map(|(name, kinds)| (String::from(*name), kinds.clone())).collect();
    let (expected, terms) = ExpectedKinds::named(named);
    let given = Given::from_python(events, vec![], 1)?;
    let counted = py.detach(|| {
        let mut found: Vec<(String, &'static str, u64)> = vec![];
        let mut count = |events: &dyn EventSource| {
            for ((attribute, kind), count) in expected.wrong_values(events) {
                let (name, kind) = (terms.name(attribute), kind.name());
                match found.iter_mut().find(|(known, of, _)| **known == *name && *of == kind) {
                    Some((_, _, total)) => *total += count,
                    None => found.push((name.to_string(), kind, count)),
                }
            }
        };
        match &given {
            Given::Tables { batches, .. } => {
                for batch in batches {
                    count(&match cells {
                        true => ArrowEvents::of_cells(batch, &terms, None, &by_name)?,
                        false => ArrowEvents::new(batch, &terms, None)?,
                    });
                }
            }
            Given::Records(records) => {
                let resolved: Vec<Event<'_>> =
                    records.iter().map(|given| given.record().resolve(&terms)).collect();
                count(&resolved);
            }
        }
        Ok::<_, tamis_core::Error>(found)
    });
    counted.or_raise(py)
}
