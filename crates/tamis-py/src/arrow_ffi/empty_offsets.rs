//! Arrays without elements, made safe to import.
//!
//! An array of `n` strings, lists or maps has `n + 1` offsets, and `arrow-rs` reads them all. For an empty
//! array, producers omit even the single offset: Java writes an empty offsets buffer, also for the elements
//! of lists that are all empty, and null pointers occur as well. The C data interface does not say how long a
//! buffer is, so nothing behind the pointer of an empty array may be read.
//!
//! The structures belong to the producer and must not be modified. So an array with such a part, at any
//! depth, is replaced by a copy of its *structures* (not of its data), in which the offsets of empty parts
//! point to our own zero. Releasing the copy releases the original.

use std::ffi::c_void;
use std::ptr;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_schema::{ArrowError, DataType};

use super::c_array::{CArray, malformed};

/// The offsets of an array without elements, of 32 or of 64 bits.
static NO_OFFSET: i64 = 0;

/// The buffer of offsets, in types that have one; buffer 0 says which elements are null.
const OFFSETS: usize = 1;

/// The same array, whose empty parts have their one offset.
///
/// # Safety
///
/// `array` must agree with the C data interface, but for the offsets of arrays without elements.
pub unsafe fn with_offsets(array: FFI_ArrowArray, of: &DataType) -> Result<FFI_ArrowArray, ArrowError> {
    let original = ptr::from_ref(&array).cast::<CArray>();
    // SAFETY: both types are `struct ArrowArray` of the C data interface; the caller vouches for the contents.
    if !unsafe { (*original).lacks_offsets(of) }? {
        return Ok(array);
    }
    let mut copies = Copies::default();
    // SAFETY: the same.
    let mut root = unsafe { copies.copy(&*original, of) }?;
    copies.original = Some(array);
    root.release = Some(release);
    root.private_data = Box::into_raw(Box::new(copies)).cast();
    // SAFETY: as above; the structure is moved, so that it is released once.
    Ok(unsafe { ptr::read(ptr::from_ref(&root).cast::<FFI_ArrowArray>()) })
}

/// What the copy of an array points to: vectors, which are never changed once something points into them.
#[derive(Default)]
struct Copies {
    arrays: Vec<Vec<CArray>>,
    pointers: Vec<Vec<*mut CArray>>,
    buffers: Vec<Vec<*const c_void>>,
    /// Holds the data; released when it is dropped.
    original: Option<FFI_ArrowArray>,
}

unsafe extern "C" fn release(array: *mut CArray) {
    // SAFETY: this is called once, on the structure that `with_offsets` made.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<Copies>()));
        (*array).release = None;
    }
}

impl CArray {
    /// Whether it, or an array inside it, is an empty one that should have an offset.
    unsafe fn lacks_offsets(&self, of: &DataType) -> Result<bool, ArrowError> {
        self.check_buffers(of)?;
        if self.length == 0 && has_offsets(of) {
            return Ok(true);
        }
        // SAFETY: the same promise holds for the arrays inside.
        for (inside, of) in unsafe { self.inside(of) }? {
            if unsafe { (*inside).lacks_offsets(of) }? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Copies {
    /// A copy of the structures of one array. It is not released: what it points to belongs to `self`.
    unsafe fn copy(&mut self, array: &CArray, of: &DataType) -> Result<CArray, ArrowError> {
        array.check_buffers(of)?;
        let mut copy = CArray { release: None, private_data: ptr::null_mut(), ..array.clone() };
        if array.length == 0 && has_offsets(of) {
            let count = usize::try_from(array.n_buffers).unwrap_or(0);
            if count <= OFFSETS {
                return Err(malformed(of, &format!("has {} buffers", array.n_buffers)));
            }
            // SAFETY: `buffers` has that many pointers.
            let mut buffers = unsafe { std::slice::from_raw_parts(array.buffers, count) }.to_vec();
            buffers[OFFSETS] = ptr::from_ref(&NO_OFFSET).cast();
            copy.buffers = buffers.as_mut_ptr();
            self.buffers.push(buffers);
            // Wherever it was cut out of, nothing of it is left to be read.
            (copy.offset, copy.null_count) = (0, 0);
        }
        // SAFETY: the same promise holds for the arrays inside.
        let inside = unsafe { array.inside(of) }?;
        if inside.is_empty() {
            return Ok(copy);
        }
        let copied = inside.into_iter().map(|(array, of)| unsafe { self.copy(&*array, of) });
        let mut arrays = copied.collect::<Result<Vec<_>, _>>()?;
        let mut pointers: Vec<_> = arrays.iter_mut().map(ptr::from_mut).collect();
        match of {
            DataType::Dictionary(..) => copy.dictionary = pointers[0],
            _ => copy.children = pointers.as_mut_ptr(),
        }
        self.arrays.push(arrays);
        self.pointers.push(pointers);
        Ok(copy)
    }
}

fn has_offsets(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::Map(..)
    )
}
