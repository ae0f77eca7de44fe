//! The structure of the C data interface, to be read and copied field by field. `arrow-rs` keeps the fields of its own to itself.

use std::ffi::c_void;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_schema::{ArrowError, DataType};

/// `struct ArrowArray` of the C data interface.
#[repr(C)]
#[derive(Clone)]
pub struct CArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *mut *const c_void,
    pub children: *mut *mut CArray,
    pub dictionary: *mut CArray,
    pub release: Option<unsafe extern "C" fn(*mut CArray)>,
    pub private_data: *mut c_void,
}

const _: () = assert!(size_of::<CArray>() == size_of::<FFI_ArrowArray>());
const _: () = assert!(align_of::<CArray>() == align_of::<FFI_ArrowArray>());

impl CArray {
    /// Refuses an array that says it has buffers, but not where.
    pub fn check_buffers(&self, of: &DataType) -> Result<(), ArrowError> {
        match self.n_buffers > 0 && self.buffers.is_null() {
            true => Err(malformed(of, "has no pointers to its buffers")),
            false => Ok(()),
        }
    }

    /// The arrays inside it, with their types: its children, or its dictionary.
    pub unsafe fn inside<'t>(
        &self,
        of: &'t DataType,
    ) -> Result<Vec<(*mut CArray, &'t DataType)>, ArrowError> {
        let types: Vec<&DataType> = match of {
            DataType::List(field)
            | DataType::LargeList(field)
            | DataType::ListView(field)
            | DataType::LargeListView(field)
            | DataType::FixedSizeList(field, _)
            | DataType::Map(field, _) => vec![field.data_type()],
            DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
            DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
            DataType::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
            DataType::Dictionary(_, values) => {
                return match self.dictionary.is_null() {
                    true => Err(malformed(of, "has no dictionary")),
                    false => Ok(vec![(self.dictionary, values)]),
                };
            }
            _ => vec![],
        };
        if usize::try_from(self.n_children) != Ok(types.len()) {
            return Err(malformed(of, &format!("has {} children, not {}", self.n_children, types.len())));
        }
        if types.is_empty() {
            return Ok(vec![]);
        }
        // SAFETY: `children` has that many pointers to arrays.
        let children = unsafe { std::slice::from_raw_parts(self.children, types.len()) };
        Ok(children.iter().copied().zip(types).collect())
    }
}

pub fn malformed(of: &DataType, wrong: &str) -> ArrowError {
    ArrowError::CDataInterface(format!("an array of type {of} {wrong}"))
}
