//! Layered lists for a table of terms: a new version copies little, although readers hold the previous one.

use std::sync::Arc;

use rustc_hash::FxBuildHasher;

type Names<V> = hashbrown::HashMap<Arc<str>, V, FxBuildHasher>;

/// A level is at least so many times as large as the next.
const GROWTH: usize = 8;
/// The last level holds no more names than this.
const LAST: usize = 32;

/// A map from names on several levels, each much smaller than the one before. A new name copies the last level, if
/// somebody else holds it. A level that is no longer small next to the one before is folded into it, so that a name is
/// copied a few times in all, however many there are.
#[derive(Clone)]
pub(super) struct Layered<V> {
    levels: Vec<Arc<Names<V>>>,
}

impl<V> Default for Layered<V> {
    fn default() -> Self {
        Self { levels: vec![] }
    }
}

impl<V: Clone> Layered<V> {
    #[inline]
    pub fn get(&self, name: &str) -> Option<&V> {
        self.levels.iter().find_map(|level| level.get(name))
    }

    pub fn insert(&mut self, name: Arc<str>, value: V) {
        if self.levels.last().is_none_or(|last| last.len() >= LAST) {
            self.fold();
            self.levels.push(Arc::default());
        }
        if let Some(last) = self.levels.last_mut() {
            Arc::make_mut(last).insert(name, value);
        }
    }

    /// Folds levels into those before them until each is much smaller.
    fn fold(&mut self) {
        while let [.., larger, smaller] = &mut self.levels[..]
            && larger.len() < GROWTH * smaller.len()
        {
            let smaller = std::mem::take(smaller);
            let larger = Arc::make_mut(larger);
            match Arc::try_unwrap(smaller) {
                Ok(names) => larger.extend(names),
                Err(shared) => {
                    larger.extend(shared.iter().map(|(name, value)| (name.clone(), value.clone())))
                }
            }
            self.levels.pop();
        }
    }
}

/// A list that grows at its end, in chunks: a new element copies no more than one chunk, and the list of chunks only when
/// that is full.
#[derive(Clone)]
pub(super) struct Chunked<T> {
    full: Arc<Vec<Arc<Vec<T>>>>,
    last: Arc<Vec<T>>,
}

const CHUNK: usize = 64;

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Self { full: Arc::default(), last: Arc::default() }
    }
}

impl<T: Clone> Chunked<T> {
    pub fn len(&self) -> usize {
        self.full.len() * CHUNK + self.last.len()
    }

    pub fn push(&mut self, element: T) {
        Arc::make_mut(&mut self.last).push(element);
        if self.last.len() == CHUNK {
            let chunk = std::mem::take(&mut self.last);
            Arc::make_mut(&mut self.full).push(chunk);
        }
    }

    /// # Panics
    /// If the list is not that long.
    pub fn at(&self, place: usize) -> &T {
        let chunk = self.full.get(place / CHUNK).unwrap_or(&self.last);
        &chunk[place % CHUNK]
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.full.iter().flat_map(|chunk| chunk.iter()).chain(self.last.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_on_every_level_and_versions_stay_as_they_were() {
        let mut names = Layered::default();
        let mut versions = vec![];
        for number in 0..5000 {
            assert_eq!(names.get(&format!("n{number}")), None);
            names.insert(format!("n{number}").into(), number);
            if number % 700 == 0 {
                versions.push((number, names.clone()));
            }
        }
        assert!((0..5000).all(|number| names.get(&format!("n{number}")) == Some(&number)));
        for (last, version) in versions {
            assert_eq!(version.get(&format!("n{last}")), Some(&last));
            assert_eq!(version.get(&format!("n{}", last + 1)), None);
        }
    }

    /// A reader holds every version: what a new name copies must not grow with the number of names.
    #[test]
    fn a_new_name_copies_few() {
        let mut names = Layered::default();
        let (mut held, mut copied) = (names.clone(), 0);
        let count = 20_000;
        for number in 0..count {
            names.insert(format!("n{number}").into(), ());
            let is_shared = |level: &Arc<Names<()>>| held.levels.iter().any(|old| Arc::ptr_eq(old, level));
            copied +=
                names.levels.iter().filter(|level| !is_shared(level)).map(|level| level.len()).sum::<usize>();
            assert!(names.levels.len() <= 6);
            held = names.clone();
        }
        assert!(copied / count < 80, "{} copies for each name", copied / count);
    }

    #[test]
    fn elements_keep_their_places() {
        let mut list = Chunked::default();
        for number in 0..1000 {
            let before = list.clone();
            list.push(number);
            assert_eq!((before.len(), list.len()), (number, number + 1));
            assert_eq!(*list.at(number), number);
        }
        assert!(list.iter().copied().eq(0..1000));
        assert!((0..1000).all(|place| *list.at(place) == place));
    }
}
