//! Columns of arrays. Their elements stay columns: a block of them is looked up field by field, as rows are.
//! They become values only if something uses a whole array.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use super::column::{ColumnView, Data};
use super::place::Place;
use crate::event::error::EventError;
use crate::event::{Value, ValueRef};

/// Row `r` holds the elements from `offsets[r]` to `offsets[r + 1]`.
pub(super) struct Arrays<'b> {
    offsets: Vec<usize>,
    elements: Elements<'b>,
    /// Arrays as values, by row. Most batches never need them.
    values: OnceLock<Box<[MaybeArray]>>,
}

/// One array as values, made when it is first looked at.
type MaybeArray = OnceLock<Box<[Value]>>;

/// The elements of all arrays, one after the other.
pub(super) enum Elements<'b> {
    /// Scalars and nulls.
    Scalars(ColumnView<'b>),
    Records(Records<'b>),
    /// Values that were made of others.
    Made(Vec<Value>),
}

/// Structs as elements of arrays.
pub(super) struct Records<'b> {
    /// Which of them are there.
    pub place: Place,
    /// By path, in the order of the struct. Of two of one path, the first that is present counts.
    pub fields: Vec<(Box<str>, ColumnView<'b>)>,
}

impl<'b> Arrays<'b> {
    pub fn new(offsets: Vec<usize>, elements: Elements<'b>) -> Self {
        Self { offsets, elements, values: OnceLock::new() }
    }

    pub fn made(offsets: Vec<usize>, values: Vec<Value>) -> Self {
        Self::new(offsets, Elements::Made(values))
    }

    pub fn array(&self, row: usize) -> &[Value] {
        if let Elements::Made(values) = &self.elements {
            return &values[self.range(row)];
        }
        let rows = self.values.get_or_init(|| (1..self.offsets.len()).map(|_| OnceLock::new()).collect());
        rows[row].get_or_init(|| self.range(row).map(|at| self.elements.value(at)).collect())
    }

    fn range(&self, row: usize) -> Range<usize> {
        self.offsets[row]..self.offsets[row + 1]
    }

    /// The same arrays, where each is replaced by what it becomes.
    pub fn mapped(&self, convert: impl Fn(Vec<Value>) -> Vec<Value>) -> Self {
        let mut made = vec![];
        let mut offsets = vec![0];
        for row in 0..self.offsets.len() - 1 {
            made.extend(convert(self.array(row).to_vec()));
            offsets.push(made.len());
        }
        Self::made(offsets, made)
    }

    /// The same arrays of records, where each field is replaced by what it becomes; others stay.
    pub fn with_fields(mut self, convert: impl Fn(&str, ColumnView<'b>) -> ColumnView<'b>) -> Self {
        if let Elements::Records(Records { place, fields }) = self.elements {
            let fields = fields.into_iter().map(|(name, view)| {
                let view = convert(&name, view);
                (name, view)
            });
            self.elements = Elements::Records(Records { place, fields: fields.collect() });
            self.values = OnceLock::new();
        }
        self
    }
}

impl Elements<'_> {
    fn value(&self, at: usize) -> Value {
        match self {
            Elements::Scalars(view) => view.value(at).map_or(Value::Null, ValueRef::to_owned),
            Elements::Records(records) => records.record(at),
            Elements::Made(values) => values[at].clone(),
        }
    }
}

impl Records<'_> {
    /// A record with its fields sorted by path.
    fn record(&self, at: usize) -> Value {
        if self.place.element(at).is_none() {
            return Value::Null;
        }
        let present = self.fields.iter().filter_map(|(name, view)| Some((name, view.value(at)?)));
        let mut fields: Vec<(Box<str>, Value)> =
            present.map(|(name, value)| (name.clone(), value.to_owned())).collect();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        fields.dedup_by(|(later, _), (first, _)| later == first);
        Value::Fields(fields.into())
    }

    fn has_each_path_once(&self) -> bool {
        let mut names: Vec<&str> = self.fields.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.windows(2).all(|pair| pair[0] != pair[1])
    }
}

/// The elements of the arrays of a batch, one after the other, as rows of columns.
pub struct ElementColumns<'s> {
    /// Where those of each row end; `None` where a row has no array.
    ranges: Vec<Option<Range<u32>>>,
    /// How many there are.
    pub len: usize,
    /// The elements themselves: records, or scalars.
    pub element: ColumnView<'s>,
    /// The fields of records, by path.
    pub fields: Vec<(&'s str, ColumnView<'s>)>,
}

impl ElementColumns<'_> {
    /// The elements of a row, if it has an array.
    pub fn of_row(&self, row: usize) -> Option<Range<usize>> {
        let range = self.ranges[row].clone()?;
        Some(range.start as usize..range.end as usize)
    }

    /// The value that a column has in the row around each element.
    pub fn repeated<'s>(&self, column: &'s ColumnView<'_>) -> Option<ColumnView<'s>> {
        let rows = self.ranges.iter().enumerate();
        let row_of_each = rows
            .flat_map(|(row, range)| std::iter::repeat_n(row, range.as_ref().map_or(0, |range| range.len())));
        column.at_places(Some(row_of_each))
    }
}

/// More elements than this are not held as columns: an array of the event, for each element of another, may be that
/// many.
const MOST: usize = 1 << 24;

impl<'b> ColumnView<'b> {
    /// The elements of its arrays as columns; `None` if it is not made of arrays, or if these are better asked one by one.
    pub fn elements<'a>(&'a self) -> Option<ElementColumns<'a>> {
        let Data::Arrays(arrays) = &self.data else { return None };
        let arrays: &'a Arrays<'b> = arrays;
        let (mut ranges, mut len, mut is_in_order) = (Vec::with_capacity(self.len()), 0, true);
        for row in 0..self.len() {
            let Some(at) = self.place.element(row) else {
                ranges.push(None);
                continue;
            };
            let there = arrays.range(at);
            is_in_order &= there.start == len || there.is_empty();
            ranges.push(Some(len as u32..(len + there.len()) as u32));
            len += there.len();
            if len > MOST {
                return None;
            }
        }
        let rows = (0..self.len()).filter_map(|row| self.place.element(row));
        let places = (!is_in_order).then(|| rows.flat_map(|at| arrays.range(at)));
        let made =
            |place: &Place, data| Some(ColumnView { place: place.through(places.clone()).ok()?, data });
        let (element, fields) = match &arrays.elements {
            Elements::Scalars(view) => (view.at_places(places)?, vec![]),
            Elements::Made(values) => {
                if values.iter().any(|value| matches!(value, Value::Fields(_) | Value::Cell(_))) {
                    return None;
                }
                (made(&Place::same(values.len()), Data::Computed(Cow::Borrowed(values)))?, vec![])
            }
            Elements::Records(records) => {
                if !records.has_each_path_once() {
                    return None;
                }
                let of_field = |(name, view): &'a (Box<str>, ColumnView<'b>)| {
                    Some((&**name, view.at_places(places.clone())?))
                };
                let fields = records.fields.iter().map(of_field);
                (made(&records.place, Data::Same(ValueRef::Record))?, fields.collect::<Option<_>>()?)
            }
        };
        Some(ElementColumns { ranges, len, element, fields })
    }

    /// The same column, without a copy; `None` for intervals.
    pub fn borrowed(&self) -> Option<ColumnView<'_>> {
        self.at_places(None::<std::iter::Empty<usize>>)
    }

    /// The values of other rows: one row for each of these places, or the same ones. `None` for intervals.
    fn at_places(&self, places: Option<impl Iterator<Item = usize>>) -> Option<ColumnView<'_>> {
        let place: Result<Place, EventError> = self.place.through(places);
        Some(ColumnView { place: place.ok()?, data: self.data.borrowed()? })
    }
}
