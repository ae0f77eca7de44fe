//! The names of attributes, each known to an index by a small number.

use std::sync::Arc;

use rustc_hash::FxBuildHasher;

/// An attribute of one index. Numbers are given in order of first use and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttrId(pub u32);

type Names = hashbrown::HashMap<Arc<str>, AttrId, FxBuildHasher>;

/// A dictionary of attribute names that is cheap to clone, so that readers can hold one version
/// of it while a writer extends the next.
///
/// Two levels: a large one that clones by reference, and a small one of recent names that clones
/// by value and is folded into the large one when it reaches an eighth of its size.
#[derive(Clone, Default)]
pub struct Attributes {
    settled: Arc<Names>,
    recent: Names,
    by_id: Arc<Vec<Arc<str>>>,
    recent_by_id: Vec<Arc<str>>,
}

impl Attributes {
    pub fn get(&self, name: &str) -> Option<AttrId> {
        self.settled.get(name).or_else(|| self.recent.get(name)).copied()
    }

    pub fn intern(&mut self, name: &str) -> AttrId {
        if let Some(id) = self.get(name) {
            return id;
        }
        let id = AttrId(self.len() as u32);
        let name: Arc<str> = name.into();
        self.recent.insert(name.clone(), id);
        self.recent_by_id.push(name);
        if self.recent.len() > 64 + self.settled.len() / 8 {
            Arc::make_mut(&mut self.settled).extend(self.recent.drain());
            Arc::make_mut(&mut self.by_id).append(&mut self.recent_by_id);
        }
        id
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
        self.by_id.iter().chain(&self.recent_by_id)
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
}
