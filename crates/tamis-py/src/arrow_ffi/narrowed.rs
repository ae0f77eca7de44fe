//! Slices of nested columns, reduced to their own elements.
//!
//! A slice of a column of lists or maps comes with the elements of the whole column. They would all be validated
//! for each slice: reading a table in small slices would take quadratic time.

use arrow_array::{ArrowNativeTypeOp, OffsetSizeTrait};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};

/// The same rows, without elements that no row shows. Of what is left only the lengths are validated.
pub fn narrowed(data: ArrayData) -> Result<ArrayData, ArrowError> {
    if !data.data_type().is_nested() {
        return Ok(data);
    }
    data.validate()?; // buffers and children are long enough for what follows, and offsets begin and end inside
    match data.data_type() {
        DataType::Struct(_) => {
            let [from, rows] = [data.offset(), data.len()];
            let children = data.child_data().iter().map(|child| narrowed(child.slice(from, rows)));
            let children = children.collect::<Result<_, _>>()?;
            data.into_builder().offset(0).child_data(children).build()
        }
        DataType::List(_) | DataType::Map(..) => of_offsets::<i32>(data),
        DataType::LargeList(_) => of_offsets::<i64>(data),
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            let elements = data.child_data()[0].slice(data.offset() * size, data.len() * size);
            data.into_builder().offset(0).child_data(vec![narrowed(elements)?]).build()
        }
        _ => Ok(data),
    }
}

/// Of an array whose rows are the elements between two offsets.
fn of_offsets<O: OffsetSizeTrait + ArrowNativeTypeOp>(data: ArrayData) -> Result<ArrayData, ArrowError> {
    let none = [O::default()]; // an empty array may come without offsets
    let offsets = if data.is_empty() { &none } else { &data.buffer::<O>(0)[..=data.len()] };
    let [first, last] = [offsets[0], offsets[data.len()]];
    let elements = data.child_data()[0].slice(first.as_usize(), last.as_usize() - first.as_usize());
    let offsets: Vec<O> = offsets.iter().map(|offset| offset.sub_wrapping(first)).collect();
    let children = vec![narrowed(elements)?];
    data.into_builder().offset(0).buffers(vec![Buffer::from_vec(offsets)]).child_data(children).build()
}
