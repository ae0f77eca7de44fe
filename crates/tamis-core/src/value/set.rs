//! A set of values: an attribute of an event that is itself given by a predicate, such as `hours > 15`.
//!
//! In Sadoghi and Jacobsen 2012 an event is an expression, too, and a predicate of a subscription is
//! satisfied if some value satisfies both. Each predicate is evaluated separately, as for closed intervals,
//! which are a special case.
//!
//! A set is a list of pieces of the line of values, in order, each between two ends that may be open or missing:
//!
//! ```text
//! x != 5             ──────────○ ○──────────        two pieces
//! x IN (2, 5)              ●   ●                    two points
//! x BETWEEN 2 AND 5        ●───●                    one piece, written as an interval
//! ```

use super::{Kind, Value, ValueRef};

/// The values that satisfy a predicate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueSet {
    /// At least one, all of one kind, in order and apart.
    pieces: Box<[Piece]>,
    /// The predicate without its attribute.
    text: Box<str>,
}

/// What lies between two ends; `None` where there is no end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    pub low: Option<End>,
    pub high: Option<End>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct End {
    pub value: Value,
    pub inclusive: bool,
}

/// What lies between pieces, before the first and after the last.
pub(crate) fn gaps(pieces: Vec<Piece>) -> Vec<Piece> {
    let turned = |end: End| End { inclusive: !end.inclusive, ..end };
    let mut gaps = vec![];
    let mut low = None;
    for piece in pieces {
        if let Some(end) = piece.low {
            gaps.push(Piece { low: low.take(), high: Some(turned(end)) });
        }
        match piece.high {
            Some(end) => low = Some(turned(end)),
            None => return gaps,
        }
    }
    gaps.push(Piece { low, high: None });
    gaps
}

impl ValueSet {
    /// The values of some pieces, in order and apart: a plain value or an interval where that is what they are,
    /// `None` if there is no value at all.
    pub fn of(pieces: Vec<Piece>, text: impl FnOnce() -> String) -> Option<Value> {
        let pieces: Box<[Piece]> = pieces.into_iter().filter_map(Piece::normal).collect();
        Some(match &*pieces {
            [] => return None,
            [piece] => match piece.closed() {
                Some((low, high)) if low == high => low.clone(),
                Some((low, high)) => Value::Interval(Box::new((low.clone(), high.clone()))),
                None => Value::Set(Box::new(Self { pieces, text: text().into() })),
            },
            _ => Value::Set(Box::new(Self { pieces, text: text().into() })),
        })
    }

    /// The predicate without its attribute, as [`Value::satisfying_text`] reads it.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn kind(&self) -> Option<Kind> {
        let ends = self.pieces.iter().flat_map(|piece| [&piece.low, &piece.high]);
        ends.flatten().next().and_then(|end| end.value.kind())
    }

    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The ends of the whole, as far as it has ends; open ones count as closed.
    pub fn hull(&self) -> (Option<&Value>, Option<&Value>) {
        let low = self.pieces.first().and_then(|piece| piece.low.as_ref());
        let high = self.pieces.last().and_then(|piece| piece.high.as_ref());
        (low.map(|end| &end.value), high.map(|end| &end.value))
    }
}

impl Piece {
    /// The same values with ends that can be compared: closed wherever values have neighbours. `None` if it
    /// holds nothing.
    pub(crate) fn normal(self) -> Option<Self> {
        let kind = [&self.low, &self.high].into_iter().flatten().next()?.value.kind()?;
        let truth = |value| Some(End { value: Value::Bool(value), inclusive: true });
        let (mut low, mut high) = (self.low, self.high);
        if kind == Kind::Bool {
            (low, high) = (low.or(truth(false)), high.or(truth(true)));
        }
        let low = low.map(|end| End::normal(end, 1));
        let high = high.map(|end| End::normal(end, -1));
        let (low, high) = (low.unwrap_or(Some(None))?, high.unwrap_or(Some(None))?);
        let made = Piece { low, high };
        made.is_filled().then_some(made)
    }

    fn is_filled(&self) -> bool {
        let (Some(low), Some(high)) = (&self.low, &self.high) else { return true };
        match low.value.as_ref().compare(high.value.as_ref()) {
            Some(order) => order.is_lt() || order.is_eq() && low.inclusive && high.inclusive,
            None => false,
        }
    }

    /// Its ends, if both are there and belong to it.
    pub(crate) fn closed(&self) -> Option<(&Value, &Value)> {
        match (&self.low, &self.high) {
            (Some(low), Some(high)) if low.inclusive && high.inclusive => Some((&low.value, &high.value)),
            _ => None,
        }
    }

    pub(crate) fn holds(&self, value: ValueRef<'_>) -> bool {
        let is_after = |end: &End| {
            value
                .compare(end.value.as_ref())
                .is_some_and(|order| order.is_gt() || order.is_eq() && end.inclusive)
        };
        let is_before = |end: &End| {
            value
                .compare(end.value.as_ref())
                .is_some_and(|order| order.is_lt() || order.is_eq() && end.inclusive)
        };
        self.low.as_ref().is_none_or(is_after) && self.high.as_ref().is_none_or(is_before)
    }

    /// What lies in both, if they can be compared.
    pub(crate) fn common(&self, other: &Piece) -> Option<Piece> {
        let pick = |a: &Option<End>, b: &Option<End>, outer: std::cmp::Ordering| match (a, b) {
            (Some(a), Some(b)) => {
                let order = a.value.as_ref().compare(b.value.as_ref())?;
                let inner = match order {
                    std::cmp::Ordering::Equal => {
                        if a.inclusive {
                            b
                        } else {
                            a
                        }
                    }
                    order if order == outer => b,
                    _ => a,
                };
                Some(Some(inner.clone()))
            }
            (a, b) => Some(a.as_ref().or(b.as_ref()).cloned()),
        };
        Some(Piece {
            low: pick(&self.low, &other.low, std::cmp::Ordering::Less)?,
            high: pick(&self.high, &other.high, std::cmp::Ordering::Greater)?,
        })
    }
}

impl End {
    /// The nearest value that belongs to a piece, for kinds whose values have neighbours; `step` leads into the
    /// piece. `None` if there is no such value, `Some(None)` for no end at all.
    fn normal(end: End, step: i64) -> Option<Option<End>> {
        let closed = |value: Value| Some(Some(End { value, inclusive: true }));
        match &end.value {
            _ if end.inclusive => Some(Some(end)),
            Value::Bool(truth) if *truth == (step < 0) => closed(Value::Bool(!truth)),
            Value::Bool(_) => None,
            Value::Timestamp(micros) => closed(Value::Timestamp(micros.checked_add(step)?)),
            // After a text comes the same text and a NUL; before it one only if it ends so.
            Value::Str(text) if step > 0 => closed(Value::Str(format!("{text}\0").into())),
            Value::Str(text) => match text.strip_suffix('\0') {
                Some(before) => closed(Value::Str(before.into())),
                None if text.is_empty() => None,
                None => Some(Some(end)),
            },
            // NaN is above every number.
            Value::Float(number) if step > 0 && number.is_nan() => None,
            _ => Some(Some(end)),
        }
    }
}
