//! Arrow data from and to Python without a copy, by the PyCapsule protocol of the Arrow C data interface.
//!
//! This is the only module of the crate with `unsafe` code: a capsule holds a pointer, and we rely on the
//! producer that it points to the structure that its name promises. The contents (offsets, UTF-8) are
//! validated here before anything reads them, column by column (`columns`). Missing parts that the specification
//! allows are added (`empty_offsets`), and elements outside a slice are dropped (`narrowed`).

mod c_array;
mod columns;
mod empty_offsets;
mod narrowed;

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions, make_array};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Whether an object offers Arrow data: a column or a table of pyarrow, pandas, Polars, DuckDB and others.
pub fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    Ok(object.hasattr(intern!(py, "__arrow_c_stream__"))?
        || object.hasattr(intern!(py, "__arrow_c_array__"))?)
}

/// The chunks of a column, or the batches of a table as arrays of structs.
pub fn arrays(object: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    each_chunk(object, column)
}

/// What becomes of each chunk of a column, or of each batch of a table. Other threads may run Python meanwhile: whoever releases
/// what a producer made of Python objects needs the interpreter.
fn each_chunk<T: Send>(
    object: &Bound<'_, PyAny>,
    import: impl Fn(FFI_ArrowArray, &DataType) -> Result<T, ArrowError> + Sync + Send,
) -> PyResult<Vec<T>> {
    let py = object.py();
    // What has both is one chunk, also when it is empty; a stream may leave an empty chunk out.
    if object.hasattr(intern!(py, "__arrow_c_array__"))? {
        let capsules = object.call_method0(intern!(py, "__arrow_c_array__"))?;
        let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = capsules.extract()?;
        let schema = pointer(&schema, SCHEMA)?.cast::<FFI_ArrowSchema>();
        let raw = pointer(&array, ARRAY)?.cast();
        // SAFETY: capsules of these names hold a schema and an array; taking the array leaves an empty one
        // behind, and the schema stays in its capsule, which outlives this call.
        let (array, schema) = unsafe { (FFI_ArrowArray::from_raw(raw.as_ptr()), schema.as_ref()) };
        let of = DataType::try_from(schema).map_err(unreadable)?;
        let imported = py.detach(|| import(array, &of)).map_err(unreadable)?;
        return Ok(vec![imported]);
    }
    let capsule = object.call_method0(intern!(py, "__arrow_c_stream__"))?;
    let raw = pointer(&capsule, STREAM)?.cast();
    // SAFETY: a capsule of this name holds a stream; taking it leaves an empty one behind.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(raw.as_ptr()) };
    py.detach(|| chunks(&mut stream, import)).map_err(unreadable)
}

/// What becomes of each array of a stream.
fn chunks<T>(
    stream: &mut FFI_ArrowArrayStream,
    import: impl Fn(FFI_ArrowArray, &DataType) -> Result<T, ArrowError>,
) -> Result<Vec<T>, ArrowError> {
    let (Some(get_schema), Some(get_next), Some(_)) =
        (stream.get_schema(), stream.get_next(), stream.release())
    else {
        return Err(ArrowError::CDataInterface("the stream was read before".into()));
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the callbacks of a stream that was not released are called with that stream, one at a time.
    succeed(stream, |stream| unsafe { get_schema(stream, &raw mut schema) })?;
    let of = DataType::try_from(&schema)?;
    let mut chunks = vec![];
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the same.
        succeed(stream, |stream| unsafe { get_next(stream, &raw mut array) })?;
        if array.is_released() {
            return Ok(chunks);
        }
        chunks.push(import(array, &of)?);
    }
}

/// Calls a callback of a stream; what it complains about is an error.
fn succeed(
    stream: &mut FFI_ArrowArrayStream,
    call: impl FnOnce(*mut FFI_ArrowArrayStream) -> i32,
) -> Result<(), ArrowError> {
    let code = call(&raw mut *stream);
    if code == 0 {
        return Ok(());
    }
    let complaint = stream.get_last_error().and_then(|last_error| {
        // SAFETY: the last call failed, so that its text may be asked for; it lives until the next call.
        let text = NonNull::new(unsafe { last_error(stream) }.cast_mut())?;
        Some(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    });
    let complaint = complaint.unwrap_or_else(|| format!("error {code} of its producer"));
    Err(ArrowError::CDataInterface(complaint))
}

/// Takes over an array of a producer, and checks its contents before anybody relies on them.
fn column(array: FFI_ArrowArray, of: &DataType) -> Result<ArrayRef, ArrowError> {
    // SAFETY: the producer promises an array of this type.
    let data = unsafe { from_ffi_and_data_type(empty_offsets::with_offsets(array, of)?, of.clone()) }?;
    let data = narrowed::narrowed(data)?;
    data.validate_full()?;
    Ok(make_array(data))
}

/// A chunk of what should be a table.
enum Chunk {
    Table(RecordBatch),
    Column(ArrayRef),
}

/// Takes over a table of a producer, or whatever it is.
fn table(array: FFI_ArrowArray, of: &DataType, threads: usize) -> Result<Chunk, ArrowError> {
    match of {
        // SAFETY: the producer promises an array of this type; what may be missing of it is added.
        DataType::Struct(fields) if unsafe { columns::is_table(&array, of) } => unsafe {
            columns::batch_of(empty_offsets::with_offsets(array, of)?, fields, threads).map(Chunk::Table)
        },
        _ => column(array, of).map(Chunk::Column),
    }
}

/// The batches of a table, validated on so many threads or fewer.
pub fn batches(object: &Bound<'_, PyAny>, threads: usize) -> PyResult<Vec<RecordBatch>> {
    let as_batch = |chunk: Chunk| {
        let array = match chunk {
            Chunk::Table(batch) => return Ok(batch),
            Chunk::Column(array) => array,
        };
        let rows = RecordBatchOptions::new().with_row_count(Some(array.len()));
        let table = array.as_any().downcast_ref::<arrow_array::StructArray>();
        let table = table.filter(|table| table.null_count() == 0).ok_or_else(|| {
            PyValueError::new_err(format!("expected a table, not a column of type {}", array.data_type()))
        })?;
        let (fields, columns, _) = table.clone().into_parts();
        RecordBatch::try_new_with_options(arrow_schema::Schema::new(fields).into(), columns, &rows)
            .map_err(unreadable)
    };
    each_chunk(object, |array, of| table(array, of, threads))?.into_iter().map(as_batch).collect()
}

/// A table on its way to Python: `pyarrow.table(stream)` takes it over without a copy.
#[pyclass(name = "ArrowStream", module = "tamis._kernel", frozen)]
pub struct PyArrowStream {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

#[pymethods]
impl PyArrowStream {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer ignore the schema that was asked for.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}

fn pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<c_void>> {
    capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))
}

pub fn unreadable(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the Arrow data cannot be read: {error}"))
}
