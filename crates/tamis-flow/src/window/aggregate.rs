//! Aggregates over the rows in a window, updated as rows come and go.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt::{self, Formatter};
use std::num::NonZeroU64;

use tamis_core::event::{Value, ValueRef};
use tamis_core::term::Term;

use super::deviation::Moments;
use super::exact_sum::ExactSum;
use super::rows_of_key::Rows;
use crate::key::{ByValue, normal};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Aggregate {
    CountRows,
    Count,
    CountDistinct,
    Sum,
    Avg,
    Stddev,
    Min,
    Max,
    First,
    Last,
    /// So many rows before the event.
    Lag(u32),
}

const NAMES: [(&str, Aggregate); 10] = [
    ("count", Aggregate::Count),
    ("sum", Aggregate::Sum),
    ("avg", Aggregate::Avg),
    ("stddev", Aggregate::Stddev),
    ("min", Aggregate::Min),
    ("max", Aggregate::Max),
    ("first", Aggregate::First),
    ("last", Aggregate::Last),
    ("lag", Aggregate::Lag(1)),
    ("mean", Aggregate::Avg),
];

impl Aggregate {
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, aggregate)| *aggregate)
    }

    /// Whether an empty window has the value zero, instead of none.
    pub fn counts(self) -> bool {
        matches!(self, Self::CountRows | Self::Count | Self::CountDistinct)
    }

    /// As it is written, with what it is applied to.
    pub fn write(self, f: &mut Formatter<'_>, argument: Option<&Term>) -> fmt::Result {
        let name = match self {
            Self::CountRows | Self::CountDistinct => "count",
            Self::Lag(_) => "lag",
            _ => NAMES.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name),
        };
        match (self, argument) {
            (Self::CountDistinct, Some(term)) => write!(f, "count(DISTINCT {term})"),
            (Self::Lag(rows), Some(term)) if rows > 1 => write!(f, "lag({term}, {rows})"),
            (_, Some(term)) => write!(f, "{name}({term})"),
            (_, None) => write!(f, "{name}(*)"),
        }
    }
}

/// What is known of the rows from `start` on; the rows themselves are in the store.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    /// The number of the first row in the window.
    pub start: u64,
    state: State,
}

/// Two words, because there is one for every key and window; counts need no more.
#[derive(Clone, Debug)]
enum State {
    /// Nothing but the numbers of the rows.
    Nothing,
    Present(u64),
    Distinct(Box<ByValue<Value, u32>>),
    Sum(Box<Sum>),
    Moments(Box<Moments>),
    /// The numbers of rows that are, or will be, the extreme one.
    #[allow(clippy::box_collection)] // a word, so that counts are small
    Extreme(Box<VecDeque<u64>>),
    /// One more than the number of the first row with a value.
    First(Option<NonZeroU64>),
    /// One more than the number of the last row with a value.
    Last(Option<NonZeroU64>),
}

#[derive(Clone, Debug, Default)]
struct Sum {
    integers: i128,
    floats: ExactSum,
    numbers: u64,
    /// How many of the numbers are floats.
    float_count: u64,
}

impl Running {
    pub fn new(aggregate: Aggregate, start: u64) -> Self {
        let state = match aggregate {
            Aggregate::CountRows | Aggregate::Lag(_) => State::Nothing,
            Aggregate::Count => State::Present(0),
            Aggregate::CountDistinct => State::Distinct(Box::default()),
            Aggregate::Sum | Aggregate::Avg => State::Sum(Box::default()),
            Aggregate::Stddev => State::Moments(Box::default()),
            Aggregate::Min | Aggregate::Max => State::Extreme(Box::default()),
            Aggregate::First => State::First(None),
            Aggregate::Last => State::Last(None),
        };
        Self { start, state }
    }

    /// A row came, and it is in the store.
    pub fn enter(&mut self, aggregate: Aggregate, row: u64, value: &Value, rows: &Rows<'_>) {
        match &mut self.state {
            State::Nothing => {}
            State::Present(count) => *count += u64::from(is_present(value)),
            State::Distinct(counts) => {
                if is_present(value) {
                    *counts.entry(normal(value.clone())).or_insert(0) += 1;
                }
            }
            State::Sum(sum) => sum.put(value, 1),
            State::Moments(moments) => moments.put(value, 1),
            State::Extreme(candidates) => {
                if order_of_kind(value).is_none() {
                    return;
                }
                let beaten = if aggregate == Aggregate::Min { Ordering::Greater } else { Ordering::Less };
                while let Some(last) = candidates.back() {
                    let order = total_order(rows.value(*last), value);
                    if order != beaten && order != Ordering::Equal {
                        break;
                    }
                    candidates.pop_back();
                }
                candidates.push_back(row);
            }
            State::First(first) => {
                if first.is_none() && is_present(value) {
                    *first = NonZeroU64::new(row + 1);
                }
            }
            State::Last(last) => {
                if is_present(value) {
                    *last = NonZeroU64::new(row + 1);
                }
            }
        }
    }

    /// The first row of the window leaves it.
    pub fn leave(&mut self, rows: &Rows<'_>) {
        let row = self.start;
        let value = rows.value(row);
        self.start += 1;
        match &mut self.state {
            State::Nothing => {}
            State::Present(count) => *count -= u64::from(is_present(value)),
            State::Distinct(counts) => {
                if is_present(value) {
                    let value = normal(value.clone());
                    if let Some(count) = counts.get_mut(&value) {
                        *count -= 1;
                        if *count == 0 {
                            counts.remove(&value);
                        }
                    }
                }
            }
            State::Sum(sum) => sum.put(value, -1),
            State::Moments(moments) => moments.put(value, -1),
            State::Extreme(candidates) => {
                if candidates.front() == Some(&row) {
                    candidates.pop_front();
                }
            }
            State::First(first) => {
                // Rows without a value are passed over once: the next search starts behind what this one finds.
                if *first == NonZeroU64::new(row + 1) {
                    let next = (self.start..rows.end()).find(|row| is_present(rows.value(*row)));
                    *first = next.and_then(|row| NonZeroU64::new(row + 1));
                }
            }
            State::Last(last) => {
                if *last == NonZeroU64::new(row + 1) {
                    *last = None;
                }
            }
        }
    }

    /// The value of the aggregate. `is_fed` says that the last row is the event itself.
    pub fn value(&self, aggregate: Aggregate, rows: &Rows<'_>, is_fed: bool) -> Option<Value> {
        let found = |row: u64| Some(rows.value(row).clone()).filter(is_present);
        match (&self.state, aggregate) {
            (State::Nothing, Aggregate::Lag(before)) => {
                let row = (rows.end() - u64::from(is_fed)).checked_sub(before.into())?;
                (row >= self.start).then(|| found(row)).flatten()
            }
            (State::Nothing, _) => Some(Value::Int((rows.end() - self.start) as i64)),
            (State::Present(count), _) => Some(Value::Int(*count as i64)),
            (State::Distinct(counts), _) => Some(Value::Int(counts.len() as i64)),
            (State::Sum(sum), Aggregate::Avg) => sum.average(),
            (State::Sum(sum), _) => sum.value(),
            (State::Moments(moments), _) => moments.deviation(),
            (State::Extreme(candidates), _) => candidates.front().and_then(|row| found(*row)),
            (State::First(row) | State::Last(row), _) => (*row).and_then(|after| found(after.get() - 1)),
        }
    }

    /// What the contents take. An exact sum has few parts, and how many depends on what left it: they are not counted.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.state {
                State::Nothing | State::Present(_) | State::First(_) | State::Last(_) => 0,
                State::Distinct(counts) => counts.len() * (size_of::<(Value, u32)>() + 8),
                State::Sum(_) => size_of::<Sum>(),
                State::Moments(_) => size_of::<Moments>(),
                State::Extreme(candidates) => candidates.len() * 8,
            }
    }
}

fn is_present(value: &Value) -> bool {
    !matches!(value, Value::Null)
}

impl Sum {
    fn put(&mut self, value: &Value, more: i64) {
        let float = match value {
            Value::Int(i) => {
                self.integers += i128::from(*i) * i128::from(more);
                self.numbers = self.numbers.saturating_add_signed(more);
                return;
            }
            Value::Float(_) | Value::Decimal(_) => value.as_ref().nearest_float().unwrap_or(f64::NAN),
            _ => return,
        };
        if more > 0 {
            self.floats.add(float)
        } else {
            self.floats.subtract(float)
        }
        self.numbers = self.numbers.saturating_add_signed(more);
        self.float_count = self.float_count.saturating_add_signed(more);
    }

    fn value(&self) -> Option<Value> {
        match (self.numbers, self.float_count) {
            (0, _) => None,
            (_, 0) => Some(match i64::try_from(self.integers) {
                Ok(sum) => Value::Int(sum),
                Err(_) => Value::Float(self.integers as f64),
            }),
            _ => Some(Value::Float(self.total())),
        }
    }

    /// The exact sum of integers and floats, rounded once.
    fn total(&self) -> f64 {
        if self.float_count == 0 {
            return self.integers as f64;
        }
        if self.integers == 0 {
            return self.floats.value();
        }
        let mut sum = self.floats.clone();
        let mut left = self.integers;
        while left != 0 {
            // The cast may round up to 2^127, which the cast back saturates: the next turn takes care of the rest.
            let part = left as f64;
            sum.add(part);
            left = left.wrapping_sub(part as i128);
        }
        sum.value()
    }

    fn average(&self) -> Option<Value> {
        (self.numbers > 0).then(|| Value::Float(self.total() / self.numbers as f64))
    }
}

/// The place of a kind among kinds that have an order; `None` for what has none.
fn order_of_kind(value: &Value) -> Option<u8> {
    match value {
        Value::Bool(_) => Some(0),
        Value::Int(_) | Value::Float(_) | Value::Decimal(_) => Some(1),
        Value::Str(_) => Some(2),
        Value::Timestamp(_) => Some(3),
        _ => None,
    }
}

fn total_order(a: &Value, b: &Value) -> Ordering {
    let compare = |a: ValueRef<'_>, b: ValueRef<'_>| a.compare(b).unwrap_or(Ordering::Equal);
    order_of_kind(a).cmp(&order_of_kind(b)).then_with(|| compare(a.as_ref(), b.as_ref()))
}
