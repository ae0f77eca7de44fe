//! Many events, wherever they are stored.

use super::Event;
use super::arrow::ArrowEvents;

/// Events by number.
pub trait EventSource: Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts event `row` in the place of what `event` held.
    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>);

    /// The events as columns, if that is how they are stored.
    fn columns(&self) -> Option<&ArrowEvents<'_>> {
        None
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
        self.is_columnar().then_some(self)
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
}
