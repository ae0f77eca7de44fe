//! An abstraction over many events, wherever they are stored.

use std::ops::Range;

use super::arrow::ArrowEvents;
use super::{Event, Unreadable};

/// Events by number.
pub trait EventSource: Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts event `row` in the place of what `event` held.
    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>);

    /// Puts the events of some rows in the places of what `events` held, one for each row.
    fn fill_all<'a>(&'a self, rows: Range<usize>, events: &mut [Event<'a>]) {
        rows.zip(events).for_each(|(row, event)| self.fill(row, event));
    }

    /// The events as columns, if that is how they are stored.
    fn columns(&self) -> Option<&ArrowEvents<'_>> {
        None
    }

    /// What was given for attributes and no value can hold, in the events that were read so far.
    fn unreadable(&self) -> Unreadable {
        Unreadable::default()
    }
}

impl EventSource for ArrowEvents<'_> {
    fn len(&self) -> usize {
        ArrowEvents::len(self)
    }

    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>) {
        ArrowEvents::fill(self, row, event);
    }

    fn columns(&self) -> Option<&ArrowEvents<'_>> {
        Some(self)
    }

    fn unreadable(&self) -> Unreadable {
        ArrowEvents::unreadable(self)
    }
}

/// Events that are resolved already.
impl EventSource for Vec<Event<'_>> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>) {
        event.clone_from(&self[row]);
    }

    fn unreadable(&self) -> Unreadable {
        let mut all = Unreadable::default();
        let unreadable = self.iter().enumerate().filter(|(_, event)| !event.unreadable.is_empty());
        for (row, event) in unreadable {
            let mut here = Unreadable::from(&*event.unreadable);
            if let Some(first) = &mut here.first {
                first.row = Some(row);
            }
            all.add(here);
        }
        all
    }
}
