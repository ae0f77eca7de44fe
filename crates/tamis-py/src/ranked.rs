//! Scored interval indexes: the class behind `tamis.ranked.IntervalIndex`.

use parking_lot::RwLock;
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;
use tamis_algorithms::ranked::{BoxIndex, STRUCTURES, Settings, Side, Sides, Structure};
use tamis_core::fork::Busy;

use crate::errors::{OrRaise, argument_error};

/// The names that `structure` may have, and whether each takes changes.
#[pyfunction]
pub fn interval_structures() -> Vec<(&'static str, bool)> {
    STRUCTURES.iter().map(|(name, structure)| (*name, structure.is_dynamic())).collect()
}

/// Low ends, high ends and weights of one attribute; a low end that is NaN means no interval.
type Columns = (Vec<f64>, Vec<f64>, Vec<f64>);

/// Low end, high end and weight.
type GivenSide = (f64, f64, f64);

fn side((low, high, weight): GivenSide) -> Side {
    Side { low, high, weight }
}

#[pyclass(name = "BoxIndex", module = "tamis._kernel", frozen)]
pub struct PyBoxIndex(RwLock<BoxIndex>);

#[pymethods]
impl PyBoxIndex {
    #[new]
    fn new(
        py: Python<'_>,
        attributes: Vec<String>,
        structure: &str,
        branching: usize,
        ids: Vec<i64>,
        priorities: Vec<f64>,
        columns: Vec<Columns>,
    ) -> PyResult<Self> {
        let lengths = columns.iter().flat_map(|(low, high, weight)| [low.len(), high.len(), weight.len()]);
        if lengths.chain([priorities.len()]).any(|length| length != ids.len()) {
            return Err(argument_error(py, format!("every column must be as long as the {} ids", ids.len())));
        }
        let settings = Settings { structure: Structure::named(structure).or_raise(py)?, branching };
        let sides = |row: usize| -> Sides {
            let side_of = |(low, high, weight): &Columns| (low[row], high[row], weight[row]);
            columns.iter().map(side_of).map(|given| (!given.0.is_nan()).then(|| side(given))).collect()
        };
        let boxes = ids.iter().zip(&priorities).enumerate();
        let boxes = boxes.map(|(row, (id, priority))| (*id, *priority, sides(row)));
        let attributes = attributes.into_iter().map(Into::into).collect();
        py.detach(|| BoxIndex::new(attributes, settings, boxes)).or_raise(py).map(RwLock::new).map(Self)
    }

    fn add(&self, py: Python<'_>, id: i64, priority: f64, sides: Vec<Option<GivenSide>>) -> PyResult<()> {
        let sides = sides.into_iter().map(|given| given.map(side)).collect();
        self.write(py, |index| index.insert(id, priority, sides)).or_raise(py)
    }

    fn remove(&self, py: Python<'_>, id: i64) -> PyResult<()> {
        self.write(py, |index| index.remove(id)).or_raise(py)
    }

    fn contains(&self, py: Python<'_>, id: i64) -> bool {
        self.read(py, |index| index.contains(id))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.read(py, BoxIndex::len)
    }

    fn top_k(&self, py: Python<'_>, event: Vec<Option<f64>>, k: usize, relaxed: bool) -> Vec<(i64, f64)> {
        let best = self.read(py, |index| index.top_k(&event, k, relaxed).0);
        best.into_iter().map(|found| (found.id, found.score)).collect()
    }

    /// Asks for the k best of every event, again and again: what `tamis.ranked` times. Returns how many items a
    /// query read from the lists, on average.
    fn ask(&self, py: Python<'_>, events: Vec<Vec<f64>>, k: usize, relaxed: bool, rounds: usize) -> f64 {
        let events: Vec<Vec<Option<f64>>> =
            events.into_iter().map(|event| event.into_iter().map(Some).collect()).collect();
        self.read(py, |index| {
            let read = |event: &Vec<Option<f64>>| index.top_k(event, k, relaxed).1;
            let reads: u64 = (0..rounds).map(|_| events.iter().map(read).sum::<u64>()).sum();
            reads as f64 / (rounds * events.len()) as f64
        })
    }

    fn bytes(&self, py: Python<'_>) -> Vec<(&'static str, usize)> {
        self.read(py, |index| index.bytes().into())
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.read(py, BoxIndex::check).map_err(PyAssertionError::new_err)
    }
}

/// No thread waits for the lock, nor for a fork, while it holds the interpreter lock; and no fork finds the
/// lock held.
impl PyBoxIndex {
    fn read<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&BoxIndex) -> T + Send) -> T {
        py.detach(|| {
            let _busy = Busy::new();
            work(&self.0.read())
        })
    }

    fn write<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut BoxIndex) -> T + Send) -> T {
        py.detach(|| {
            let _busy = Busy::new();
            work(&mut self.0.write())
        })
    }
}
