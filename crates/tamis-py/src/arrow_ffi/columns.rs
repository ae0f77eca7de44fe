//! The columns of a table, taken over one by one, on several threads if there is much to validate.
//!
//! A table comes as one array of structs. Each of its columns becomes an array of its own that keeps the table alive: the data
//! stays where it is until the last column is released. Counting the nulls of wide tables takes most of the time. A whole
//! column of numbers is counted once: by `arrow-rs`, if the producer did not count its nulls, else to check what the producer says.
//! Slices and columns of other types may be counted more often. A producer that says that nothing is null is believed: the bitmap
//! beside it is not read.

use std::ptr;
use std::sync::Arc;
use std::thread;

use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_schema::{ArrowError, DataType, Fields, Schema};

use super::c_array::{CArray, malformed};
use super::narrowed::narrowed;

/// Cells that are worth a thread of their own, and columns, whatever they hold.
const CELLS_PER_THREAD: usize = 1 << 22;
const COLUMNS_PER_THREAD: usize = 1 << 8;
/// And no more than so many threads: they wait for memory.
const MOST_THREADS: usize = 8;

/// Whether no row of an array of structs is null as a whole, as far as that is known without a look at them.
///
/// # Safety
///
/// The array must agree with the C data interface.
pub unsafe fn is_table(array: &FFI_ArrowArray, of: &DataType) -> bool {
    // SAFETY: both types are `struct ArrowArray` of the C data interface; `buffers` has that many pointers.
    unsafe {
        let array = &*ptr::from_ref(array).cast::<CArray>();
        matches!(of, DataType::Struct(_))
            && array.n_buffers == 1
            && !array.buffers.is_null()
            && (*array.buffers).is_null()
    }
}

/// The rows of a table.
///
/// # Safety
///
/// The array must agree with the C data interface, and be a table.
pub unsafe fn batch_of(
    array: FFI_ArrowArray,
    fields: &Fields,
    threads: usize,
) -> Result<RecordBatch, ArrowError> {
    let of = DataType::Struct(fields.clone());
    let table = Arc::new(array);
    // SAFETY: as above.
    let CArray { offset, length, .. } = unsafe { (*ptr::from_ref(&*table).cast::<CArray>()).clone() };
    let (Ok(first), Ok(rows)) = (usize::try_from(offset), usize::try_from(length)) else {
        return Err(malformed(&of, &format!("has {length} rows from {offset} on")));
    };
    // SAFETY: as above.
    let columns: Vec<Column> = unsafe { Column::all_of(&table, &of) }?;
    let wanted = Wanted { first, rows };
    let cells = columns.len().saturating_mul(rows);
    let worthwhile = (cells / CELLS_PER_THREAD).max(columns.len() / COLUMNS_PER_THREAD);
    let arrays = wanted.imported(columns, threads.min(MOST_THREADS).min(worthwhile))?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Schema::new(fields.clone()).into(), arrays, &options)
}

/// One column of a table.
struct Column {
    array: FFI_ArrowArray,
    of: DataType,
    /// Whether the producer says how many elements are null.
    is_counted: bool,
}

impl Column {
    /// The columns of a table, each of which keeps it.
    unsafe fn all_of(table: &Arc<FFI_ArrowArray>, of: &DataType) -> Result<Vec<Self>, ArrowError> {
        // SAFETY: the caller vouches for the table and what is inside; the structure is copied, and released once.
        unsafe {
            let inside = (*ptr::from_ref(&**table).cast::<CArray>()).inside(of)?;
            let columns = inside.into_iter().map(|(array, of)| {
                let keeps = Box::into_raw(Box::new(table.clone())).cast();
                let copy = CArray { release: Some(release), private_data: keeps, ..(*array).clone() };
                let array = ptr::read(ptr::from_ref(&copy).cast::<FFI_ArrowArray>());
                Self { array, of: of.clone(), is_counted: copy.null_count >= 0 }
            });
            Ok(columns.collect())
        }
    }
}

unsafe extern "C" fn release(column: *mut CArray) {
    // SAFETY: this is called once, on a structure that `all_of` made.
    unsafe {
        drop(Box::from_raw((*column).private_data.cast::<Arc<FFI_ArrowArray>>()));
        (*column).release = None;
    }
}

/// The rows that a table has of its columns.
#[derive(Clone, Copy)]
struct Wanted {
    first: usize,
    rows: usize,
}

impl Wanted {
    /// These rows of all columns, validated.
    fn imported(self, mut columns: Vec<Column>, threads: usize) -> Result<Vec<ArrayRef>, ArrowError> {
        if threads <= 1 {
            return columns.into_iter().map(|column| self.of(column)).collect();
        }
        let each = columns.len().div_ceil(threads).max(1);
        let pieces: Vec<Vec<Column>> = std::iter::from_fn(|| {
            let rest = columns.split_off(each.min(columns.len()));
            Some(std::mem::replace(&mut columns, rest)).filter(|piece| !piece.is_empty())
        })
        .collect();
        thread::scope(|scope| {
            let import = |piece: Vec<Column>| piece.into_iter().map(|column| self.of(column)).collect();
            let threads: Vec<_> = pieces
                .into_iter()
                .map(|piece| scope.spawn(move || -> Result<Vec<ArrayRef>, ArrowError> { import(piece) }))
                .collect();
            let mut all = vec![];
            for thread in threads {
                all.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok(all)
        })
    }

    fn of(self, column: Column) -> Result<ArrayRef, ArrowError> {
        let Column { array, of, is_counted } = column;
        // SAFETY: the producer promises an array of this type.
        let mut data = unsafe { from_ffi_and_data_type(array, of) }?;
        if self.first.checked_add(self.rows).is_none_or(|end| end > data.len()) {
            return Err(malformed(data.data_type(), &format!("has {} of {} rows", data.len(), self.rows)));
        }
        data.validate()?; // its buffers are long enough for what follows
        if self.first > 0 || self.rows < data.len() {
            data = data.sliced(self.first, self.rows);
        }
        let data = narrowed(data)?;
        // Values of one size cannot be wrong, and what was counted here is right.
        if is_counted || !data.data_type().is_primitive() {
            data.validate_full()?;
        }
        Ok(make_array(data))
    }
}
