//! The positions of the values of one event, found by attribute without a search.

use crate::span::{Span, is_exact_number};
use tamis_core::event::{Event, TermId};

/// The interval of one attribute of an event.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Reversed where the attribute is absent.
    span: Span,
    /// Whether the value is a number that the span stands for exactly.
    pub is_exact: bool,
}

impl Place {
    const ABSENT: Place = Place { span: Span { low: 1, high: 0 }, is_exact: false };

    pub fn span(self) -> Option<Span> {
        (self.span.low <= self.span.high).then_some(self.span)
    }

    /// Whether the attribute is there and meets a span.
    pub fn is_within(self, span: Span) -> bool {
        self.span.overlaps(span) && self.span.low <= self.span.high
    }
}

/// The places of an event by attribute. Made once and used for one event after another.
#[derive(Default)]
pub struct Places {
    by_attribute: Vec<Place>,
}

impl Places {
    /// Takes over an event; the one before must have been taken out.
    pub fn put(&mut self, event: &Event<'_>) {
        if let Some((last, _)) = event.values.last()
            && self.by_attribute.len() <= last.0 as usize
        {
            self.by_attribute.resize(last.0 as usize + 1, Place::ABSENT);
        }
        for (attribute, value) in &event.values {
            self.by_attribute[attribute.0 as usize] =
                Place { span: Span::of_value(*value), is_exact: is_exact_number(*value) };
        }
    }

    pub fn take_out(&mut self, event: &Event<'_>) {
        for (attribute, _) in &event.values {
            self.by_attribute[attribute.0 as usize] = Place::ABSENT;
        }
    }

    pub fn get(&self, attribute: TermId) -> Place {
        self.by_attribute.get(attribute.0 as usize).copied().unwrap_or(Place::ABSENT)
    }
}
