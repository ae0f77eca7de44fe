//! Python bindings of the Tamis kernel: thin wrappers, no logic. The module is `tamis._kernel`; the public
//! package is in `src/tamis/`.

mod arrow_ffi;
mod batch;
mod convert;
mod device;
mod dict_items;
mod errors;
mod event;
mod event_matcher;
mod expr;
mod flow;
mod fork;
mod id_cache;
mod ids;
mod index;
mod matching;
mod query;
mod ranked;
mod relate;
mod results;
mod rows;
mod seen_names;
mod subscription;
mod weights;
mod why_matched;
mod wrong_values;
mod xml;

use pyo3::prelude::*;

// Dicts are read without locks of their own.
#[pymodule(gil_used = true)]
mod _kernel {
    #[pymodule_export]
    use crate::arrow_ffi::PyArrowStream;
    #[pymodule_export]
    use crate::batch::{ask_batch, contributions, count_batch_by_subscription, time_events};
    #[pymodule_export]
    use crate::device::{device_name, leave_device, use_device};
    #[pymodule_export]
    use crate::event::{PyEvent, PyInterval, PyWhere};
    #[pymodule_export]
    use crate::expr::{PyExpression, PyTerm, predicate, quantified, threshold};
    #[pymodule_export]
    use crate::flow::{PyFlow, parse_interval};
    #[pymodule_export]
    use crate::fork::{after_fork, before_fork};
    #[pymodule_export]
    use crate::index::{PyIds, PyIndex, algorithms};
    #[pymodule_export]
    use crate::query::PyQuery;
    #[pymodule_export]
    use crate::ranked::{PyBoxIndex, interval_structures};
    #[pymodule_export]
    use crate::relate::{
        PyPruningQueue, PySelectivities, access_predicates, decide_covers, decide_overlaps,
        example_of_overlap, prune_many,
    };
    #[pymodule_export]
    use crate::why_matched::{diagram, explain_json, why_not_json};
    #[pymodule_export]
    use crate::wrong_values::wrong_values;
    #[pymodule_export]
    use crate::xml::xml_fault;

    use crate::event_matcher::PyEventMatcher;
    use pyo3::prelude::*;

    /// Adds the class that calls itself by the name of its heir.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("EventMatcher", module.py().get_type::<PyEventMatcher>())
    }
}
