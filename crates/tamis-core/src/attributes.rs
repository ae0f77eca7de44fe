//! The names of attributes, each known to an index by a small number.

use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use crate::stamp::Stamp;

/// An attribute of one index. Numbers are given in order of first use and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttrId(pub u32);

/// A dictionary of attribute names that is cheap to clone, so that readers can hold one version
/// of it while a writer extends the next.
#[derive(Clone, Default)]
pub struct Attributes {
    ids: Layered<AttrId>,
    /// The records that hold some attribute: `a` and `a.b`, for the attribute `a.b.c`.
    records: Layered<()>,
    by_id: Arc<Vec<Arc<str>>>,
    recent_by_id: Arc<Vec<Arc<str>>>,
    stamp: Stamp,
}

impl Attributes {
    pub fn get(&self, name: &str) -> Option<AttrId> {
        self.ids.get(name).copied()
    }

    /// Whether some attribute is a field of this record, at any depth. What is neither an attribute
    /// nor such a record need not be looked at when an event is read.
    pub fn has_fields(&self, record: &str) -> bool {
        self.records.get(record).is_some()
    }

    pub fn intern(&mut self, name: &str) -> AttrId {
        if let Some(id) = self.get(name) {
            return id;
        }
        let id = AttrId(self.len() as u32);
        self.stamp.renew();
        for (dot, _) in name.rmatch_indices('.') {
            if self.has_fields(&name[..dot]) {
                break;
            }
            self.records.insert(name[..dot].into(), ());
        }
        let name: Arc<str> = name.into();
        Arc::make_mut(&mut self.recent_by_id).push(name.clone());
        if self.ids.insert(name, id) == Folded::Yes {
            Arc::make_mut(&mut self.by_id).append(Arc::make_mut(&mut self.recent_by_id));
        }
        id
    }

    /// Tells this table from every one with other names.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    pub fn name(&self, id: AttrId) -> &Arc<str> {
        let at = id.0 as usize;
        if at < self.by_id.len() { &self.by_id[at] } else { &self.recent_by_id[at - self.by_id.len()] }
    }

    pub fn len(&self) -> usize {
        self.by_id.len() + self.recent_by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_id.iter().chain(self.recent_by_id.iter())
    }
}

type Names<V> = hashbrown::HashMap<Arc<str>, V, FxBuildHasher>;

/// Names on two levels: a new name copies only the small one of recent names, if somebody else holds
/// it, and that is folded into the large one when it reaches an eighth of its size.
#[derive(Clone)]
struct Layered<V> {
    settled: Arc<Names<V>>,
    recent: Arc<Names<V>>,
}

#[derive(PartialEq)]
enum Folded {
    Yes,
    No,
}

impl<V> Default for Layered<V> {
    fn default() -> Self {
        Self { settled: Arc::default(), recent: Arc::default() }
    }
}

impl<V: Clone> Layered<V> {
    fn get(&self, name: &str) -> Option<&V> {
        self.settled.get(name).or_else(|| self.recent.get(name))
    }

    fn insert(&mut self, name: Arc<str>, value: V) -> Folded {
        let recent = Arc::make_mut(&mut self.recent);
        recent.insert(name, value);
        if recent.len() <= 64 + self.settled.len() / 8 {
            return Folded::No;
        }
        Arc::make_mut(&mut self.settled).extend(recent.drain());
        Folded::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_folding_and_clones_stay_as_they_were() {
        let mut attributes = Attributes::default();
        let before = attributes.clone();
        for i in 0..1000 {
            assert_eq!(attributes.intern(&format!("a{i}")), AttrId(i));
        }
        for i in 0..1000 {
            assert_eq!(attributes.get(&format!("a{i}")), Some(AttrId(i)));
            assert_eq!(&**attributes.name(AttrId(i)), format!("a{i}"));
        }
        assert_eq!(attributes.names().count(), 1000);
        assert!(before.is_empty());
    }

    #[test]
    fn the_records_around_an_attribute_are_known() {
        let mut attributes = Attributes::default();
        for name in ["a.b.c", "a.x", "d", "..e"] {
            attributes.intern(name);
        }
        for record in ["a", "a.b", "", "."] {
            assert!(attributes.has_fields(record), "{record:?}");
            assert_eq!(attributes.get(record), None);
        }
        for other in ["a.b.c", "a.x", "d", "e", "b"] {
            assert!(!attributes.has_fields(other), "{other:?}");
        }
    }
}
