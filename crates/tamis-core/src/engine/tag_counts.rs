//! Which tags the subscriptions of an index have.

use std::collections::BTreeMap;

use super::reader::Reader;

/// Each tag, with the number of subscriptions that have it.
pub fn tag_counts(reader: &Reader) -> BTreeMap<Box<str>, usize> {
    let mut counts: BTreeMap<Box<str>, usize> = BTreeMap::new();
    let mut count = |tag: &str, subscriptions: usize| match counts.get_mut(tag) {
        Some(counted) => *counted += subscriptions,
        None if subscriptions > 0 => drop(counts.insert(tag.into(), subscriptions)),
        None => {}
    };
    match reader {
        Reader::View(view) => {
            for part in view.parts.iter() {
                let ledger = &part.segment.ledger;
                for tag in (0..ledger.tag_count()).map(|tag| ledger.tag_name(tag)) {
                    let rows = ledger.rows_with_tag(tag);
                    let alive = rows.iter().filter(|row| !part.deaths.is_dead(**row, view.generation));
                    count(tag, alive.count());
                }
            }
            let buffered = view.buffer.iter().flat_map(|buffered| &buffered.subscription.tags);
            buffered.for_each(|tag| count(tag, 1));
        }
        Reader::Classic(state) => {
            state.rows.iter().flatten().flat_map(|held| &held.tags).for_each(|tag| count(tag, 1))
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Id, Index, Subscription};
    use crate::expr::parser::parse;

    #[test]
    fn the_same_in_the_buffer_in_segments_and_in_published_algorithms() {
        for (algorithm, many) in [("auto", 6), ("auto", 900), ("scan", 6)] {
            let index = Index::new(algorithm, None).unwrap();
            for id in 0..many {
                let mut subscription = Subscription::new(Id::Int(id), parse("x > 1").unwrap());
                subscription.tags = match id % 3 {
                    0 => vec!["a".into()],
                    1 => vec!["a".into(), "b".into()],
                    _ => vec![],
                };
                index.add(subscription).unwrap();
            }
            let counted = || tag_counts(&index.reader().unwrap()).into_iter().collect::<Vec<_>>();
            let third = many as usize / 3;
            assert_eq!(counted(), [("a".into(), 2 * third), ("b".into(), third)]);
            (0..many).filter(|id| id % 3 == 1).for_each(|id| index.remove(Id::Int(id)).unwrap());
            assert_eq!(counted(), [("a".into(), third)]);
        }
    }
}
