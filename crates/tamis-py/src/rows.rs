//! The rows of `add_many`: ids and expressions from Arrow columns or from lists, the rest from Arrow columns.
//!
//! Everything is prepared under the interpreter lock; expressions are parsed without it, on all cores, in
//! place.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyList, PyString};
use tamis_core::engine::{NewRows, Source};
use tamis_core::expr::Expr;
use tamis_core::{Error, ExpressionError, Id, Subscription};

use crate::arrow_ffi;
use crate::errors::{argument_error, type_error};
use crate::expr::{Given, expression_or_text, utf8};
use crate::ids::id_from_python;

pub struct Rows {
    ids: Ids,
    expressions: Expressions,
    /// `priority`, `weights`, `tags`, `owner`, `payload`, `expires` and `starts`, those that were given.
    details: Option<RecordBatch>,
}

enum Ids {
    Column(Chunks),
    /// A list of nothing but integers.
    Numbers(Vec<i64>),
    Listed(Vec<Result<Id, String>>),
}

/// Expressions as a caller gave them.
pub enum Expressions {
    Column(Chunks),
    Listed(Vec<Listed>),
}

/// A column in the pieces that it came in: text of gigabytes is not copied to become one piece.
pub struct Chunks {
    chunks: Vec<ArrayRef>,
    /// The number of rows up to and including each chunk.
    ends: Vec<usize>,
}

/// One expression of a list.
pub enum Listed {
    /// Where Python has it.
    Text(PyBackedStr),
    Parsed(Arc<Expr>),
    Refused(Box<ExpressionError>),
}

impl Rows {
    /// Columns are Arrow arrays of type int64 or large_string; the details are one batch.
    pub fn from_python(
        ids: &Bound<'_, PyAny>,
        expressions: &Bound<'_, PyAny>,
        details: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = ids.py();
        let rows = Self {
            ids: Ids::from_python(ids)?,
            expressions: Expressions::from_python(expressions)?,
            details: details.map(the_batch).transpose()?.flatten(),
        };
        let expressions = rows.expressions.len();
        if expressions != rows.len() {
            return Err(argument_error(py, format!("{} ids for {expressions} expressions", rows.len())));
        }
        match &rows.details {
            Some(batch) if batch.num_rows() != rows.len() => Err(argument_error(
                py,
                format!(
                    "{} ids for {} priorities, weights, tags, owners, payloads, expiries or starts",
                    rows.len(),
                    batch.num_rows()
                ),
            )),
            _ => Ok(rows),
        }
    }

    fn detail(&self, name: &str, row: usize) -> Option<&ArrayRef> {
        let column = self.details.as_ref()?.column_by_name(name)?;
        column.is_valid(row).then_some(column)
    }
}

impl Ids {
    fn from_python(ids: &Bound<'_, PyAny>) -> PyResult<Self> {
        if arrow_ffi::is_arrow(ids)? {
            return Chunks::from_python(ids).map(Ids::Column);
        }
        let list = ids.cast::<PyList>()?;
        let number = |id: Bound<'_, PyAny>| match id_from_python(&id) {
            Ok(Id::Int(number)) => Some(number),
            _ => None,
        };
        if let Some(numbers) = list.iter().map(number).collect() {
            return Ok(Ids::Numbers(numbers));
        }
        let id = |id: Bound<'_, PyAny>| id_from_python(&id).map_err(|error| error.to_string());
        Ok(Ids::Listed(list.iter().map(id).collect()))
    }
}

impl Expressions {
    /// An Arrow column of type large_string, or a list.
    pub fn from_python(expressions: &Bound<'_, PyAny>) -> PyResult<Self> {
        if arrow_ffi::is_arrow(expressions)? {
            return Chunks::from_python(expressions).map(Expressions::Column);
        }
        let refused = |message: String| Listed::Refused(Box::new(ExpressionError::new(message)));
        let listed = expressions.cast::<PyList>()?.iter().map(|expression| {
            match expression.cast::<PyString>().map(utf8) {
                Ok(Ok(text)) => Listed::Text(text),
                Ok(Err(error)) => Listed::Refused(Box::new(error)),
                Err(_) => match expression_or_text(&expression) {
                    Ok(Given::Parsed(parsed)) => Listed::Parsed(parsed),
                    Ok(Given::Text(_)) => unreachable!("text is handled above"),
                    Err(error) => refused(error.value(expression.py()).to_string()),
                },
            }
        });
        Ok(Expressions::Listed(listed.collect()))
    }

    pub fn len(&self) -> usize {
        match self {
            Expressions::Column(column) => column.len(),
            Expressions::Listed(items) => items.len(),
        }
    }

    pub fn source(&self, row: usize) -> Result<Source<'_>, Error> {
        match self {
            Expressions::Column(column) => match column.at(row) {
                (chunk, at) if chunk.is_null(at) => {
                    Err(ExpressionError::new("the expression is null").into())
                }
                (chunk, at) => Ok(Source::Text(chunk.as_string::<i64>().value(at))),
            },
            Expressions::Listed(items) => match &items[row] {
                Listed::Text(text) => Ok(Source::Text(text)),
                Listed::Parsed(expr) => Ok(Source::Parsed(Expr::clone(expr))),
                Listed::Refused(error) => Err(ExpressionError::clone(error).into()),
            },
        }
    }
}

impl NewRows for Rows {
    fn len(&self) -> usize {
        match &self.ids {
            Ids::Column(column) => column.len(),
            Ids::Numbers(ids) => ids.len(),
            Ids::Listed(ids) => ids.len(),
        }
    }

    fn id(&self, row: usize) -> Result<Id, Error> {
        match &self.ids {
            Ids::Column(column) => match column.at(row) {
                (chunk, at) if chunk.is_null(at) => Err(Error::Id("the id is null".into())),
                (chunk, at) if *chunk.data_type() == DataType::Int64 => {
                    Ok(Id::Int(chunk.as_primitive::<Int64Type>().value(at)))
                }
                (chunk, at) => Ok(Id::Str(chunk.as_string::<i64>().value(at).into())),
            },
            Ids::Numbers(ids) => Ok(Id::Int(ids[row])),
            Ids::Listed(ids) => ids[row].clone().map_err(Error::Id),
        }
    }

    fn source(&self, row: usize) -> Result<Source<'_>, Error> {
        self.expressions.source(row)
    }

    fn details(&self, row: usize, subscription: &mut Subscription) -> Result<(), Error> {
        if let Some(column) = self.detail("priority", row) {
            subscription.priority = column.as_primitive::<Float64Type>().value(row);
        }
        if let Some(column) = self.detail("weights", row) {
            let entries = column.as_map().value(row);
            let (names, weights) = (entries.column(0).as_string::<i32>(), entries.column(1));
            let given = weights.as_primitive::<Float64Type>();
            subscription.weights = (0..entries.len())
                .filter(|at| given.is_valid(*at))
                .map(|at| (names.value(at).into(), given.value(at)))
                .collect();
        }
        if let Some(column) = self.detail("tags", row) {
            let tags = column.as_list::<i32>().value(row);
            subscription.tags = tags.as_string::<i32>().iter().flatten().map(Into::into).collect();
        }
        if let Some(column) = self.detail("owner", row) {
            subscription.owner = Some(column.as_string::<i32>().value(row).into());
        }
        if let Some(column) = self.detail("payload", row) {
            subscription.payload = Some(column.as_binary::<i64>().value(row).into());
        }
        if let Some(column) = self.detail("expires", row) {
            subscription.expires = Some(column.as_primitive::<TimestampMicrosecondType>().value(row));
        }
        if let Some(column) = self.detail("starts", row) {
            subscription.starts = Some(column.as_primitive::<TimestampMicrosecondType>().value(row));
        }
        Ok(())
    }
}

impl Chunks {
    fn from_python(column: &Bound<'_, PyAny>) -> PyResult<Self> {
        let chunks = arrow_ffi::arrays(column)?;
        let is_known = |chunk: &ArrayRef| matches!(chunk.data_type(), DataType::Int64 | DataType::LargeUtf8);
        if let Some(other) = chunks.iter().find(|chunk| !is_known(chunk)) {
            let kind = other.data_type();
            return Err(type_error(format!("expected a column of int64 or large_string, not {kind}")));
        }
        let mut end = 0;
        let ends = chunks.iter().map(|chunk| {
            end += chunk.len();
            end
        });
        Ok(Self { ends: ends.collect(), chunks })
    }

    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The chunk that holds a row, and where.
    fn at(&self, row: usize) -> (&ArrayRef, usize) {
        let chunk = self.ends.partition_point(|end| *end <= row);
        (&self.chunks[chunk], row - chunk.checked_sub(1).map_or(0, |before| self.ends[before]))
    }
}

/// The details of the rows; none at all when there are no rows.
fn the_batch(table: &Bound<'_, PyAny>) -> PyResult<Option<RecordBatch>> {
    let chunks = arrow_ffi::batches(table, 1)?;
    if chunks.is_empty() { Ok(None) } else { only(chunks).map(Some) }
}

fn only<T>(mut chunks: Vec<T>) -> PyResult<T> {
    match chunks.pop() {
        Some(chunk) if chunks.is_empty() => Ok(chunk),
        _ => Err(type_error("expected one chunk")),
    }
}
