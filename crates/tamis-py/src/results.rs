//! Matches on their way to Python: lists of ids, and Arrow columns of them.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::PyList;
use rustc_hash::FxHashMap;
use tamis_core::Error;
use tamis_core::engine::production::view::{Location, View};
use tamis_core::engine::{Id, IdKind, IdRef, Reader};

use crate::ids::id_to_python;

/// Matches that outlive the question, without a lock: Python code may run, and change the index, while their
/// ids become Python objects.
pub enum Found {
    InView(Arc<View>, Vec<Location>),
    /// The published algorithms lock what their readers read, so their ids are copied.
    Copied(Vec<Id>),
}

impl Found {
    pub fn new(reader: &Reader, places: Vec<Location>) -> Self {
        match reader {
            Reader::View(view) => Found::InView(view.clone(), places),
            Reader::Classic(_) => {
                Found::Copied(places.iter().map(|place| owned(reader.id(*place))).collect())
            }
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Found::InView(_, places) => places.len(),
            Found::Copied(ids) => ids.len(),
        }
    }

    /// The id of one match.
    pub fn id<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Found::InView(view, places) => id_to_python(py, view.id_ref(places[at])),
            Found::Copied(ids) => id_to_python(py, ids[at].as_ref()),
        }
    }

    pub fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let ids = (0..self.len()).map(|at| self.id(py, at)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, ids)
    }
}

fn owned(id: IdRef<'_>) -> Id {
    match id {
        IdRef::Int(id) => Id::Int(id),
        IdRef::Str(id) => Id::Str(id.into()),
    }
}

/// The Arrow type of a column of ids. An index that never had a subscription has ids of no type yet; strings
/// are as good as any for a column without rows.
pub fn id_type(kind: Option<IdKind>) -> DataType {
    match kind {
        Some(IdKind::Int) => DataType::Int64,
        Some(IdKind::Str) | None => DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()),
    }
}

/// The ids of matches as a column: integers, or a dictionary of the strings that occur.
pub fn id_column(reader: &Reader, places: &[Location]) -> Result<ArrayRef, Error> {
    if reader.id_kind() == Some(IdKind::Int) {
        let ids = places.iter().map(|place| match reader.id(*place) {
            IdRef::Int(id) => id,
            IdRef::Str(_) => unreachable!("an index has ids of one kind"),
        });
        return Ok(Arc::new(Int64Array::from_iter_values(ids)));
    }
    let mut codes = Codes::new(reader, places.len());
    let mut occurring = StringBuilder::new();
    let mut bytes = 0;
    let mut keys = Vec::with_capacity(places.len());
    for place in places {
        let (code, is_new) = codes.code(*place);
        if is_new && let IdRef::Str(id) = reader.id(*place) {
            bytes += id.len();
            if bytes > i32::MAX as usize {
                return Err(Error::Argument(
                    "the ids of these matches take more than 2 GiB; match fewer events at once".into(),
                ));
            }
            occurring.append_value(id);
        }
        keys.push(code);
    }
    let column = DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), Arc::new(occurring.finish()));
    column.map(|column| Arc::new(column) as ArrayRef).map_err(|error| Error::Argument(error.to_string()))
}

/// Numbers places in the order of their first appearance.
enum Codes {
    /// Where most of an index matches: a code per place, -1 for none yet. The buffer comes last.
    Dense { part_starts: Vec<usize>, codes: Vec<i32>, next: i32 },
    /// Where little of it does.
    Sparse(FxHashMap<(usize, u32), i32>),
}

const IN_BUFFER: usize = usize::MAX;

impl Codes {
    fn new(reader: &Reader, places: usize) -> Self {
        let (mut part_starts, mut size) = (vec![], 0);
        match reader {
            Reader::View(view) => {
                for part in view.parts.iter() {
                    part_starts.push(size);
                    size += part.segment.len();
                }
                part_starts.push(size);
                size += view.buffer.len();
            }
            Reader::Classic(state) => {
                part_starts = vec![0, state.rows.len()];
                size = state.rows.len();
            }
        }
        // A probe of a hash table costs about as much as filling sixteen places.
        if places >= size / 16 {
            Codes::Dense { part_starts, codes: vec![-1; size], next: 0 }
        } else {
            Codes::Sparse(FxHashMap::default())
        }
    }

    fn code(&mut self, place: Location) -> (i32, bool) {
        match self {
            Codes::Dense { part_starts, codes, next } => {
                let at = match place {
                    Location::Row { part, row } => part_starts[part as usize] + row as usize,
                    Location::Buffer(at) => part_starts[part_starts.len() - 1] + at as usize,
                };
                if codes[at] >= 0 {
                    return (codes[at], false);
                }
                codes[at] = *next;
                *next += 1;
                (codes[at], true)
            }
            Codes::Sparse(codes) => {
                let key = match place {
                    Location::Row { part, row } => (part as usize, row),
                    Location::Buffer(at) => (IN_BUFFER, at),
                };
                let next = codes.len() as i32;
                let code = *codes.entry(key).or_insert(next);
                (code, code == next)
            }
        }
    }
}
