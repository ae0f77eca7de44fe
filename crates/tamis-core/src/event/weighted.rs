//! Weights for many events, given separately: one set for all events, or one per event.

use std::ops::Range;

use super::{Event, EventSource, TermId, Unreadable};

/// The weights of one attribute.
#[derive(Clone, Debug)]
pub enum Weights {
    Same(f64),
    /// `None` where the event gives none.
    PerEvent(Vec<Option<f64>>),
}

/// Events with separate weights. An event's own weight for an attribute comes first.
pub struct WeightedEvents<'e> {
    pub events: &'e dyn EventSource,
    /// Each attribute at most once.
    pub weights: Vec<(TermId, Weights)>,
}

impl EventSource for WeightedEvents<'_> {
    fn len(&self) -> usize {
        self.events.len()
    }

    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>) {
        event.weights.clear();
        self.events.fill(row, event);
        self.weigh(row, event);
    }

    fn fill_all<'a>(&'a self, rows: Range<usize>, events: &mut [Event<'a>]) {
        events.iter_mut().for_each(|event| event.weights.clear());
        self.events.fill_all(rows.clone(), events);
        rows.zip(events).for_each(|(row, event)| self.weigh(row, event));
    }

    fn unreadable(&self) -> Unreadable {
        self.events.unreadable()
    }
}

impl WeightedEvents<'_> {
    /// Gives an event the weights of its row.
    fn weigh(&self, row: usize, event: &mut Event<'_>) {
        for (attribute, weights) in &self.weights {
            let weight = match weights {
                Weights::Same(weight) => Some(*weight),
                Weights::PerEvent(all) => all[row],
            };
            if let (Some(weight), Err(place)) =
                (weight, event.weights.binary_search_by_key(attribute, |(known, _)| *known))
            {
                event.weights.insert(place, (*attribute, weight));
            }
        }
    }
}
