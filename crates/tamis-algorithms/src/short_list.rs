//! A list of numbers that usually has at most one: 16 bytes, and no heap memory before the second.

#[derive(Clone, Debug, Default)]
pub enum ShortList {
    #[default]
    Empty,
    One(u32),
    // A boxed vector is one word, so that lists of none and one stay small.
    #[allow(clippy::box_collection)]
    Many(Box<Vec<u32>>),
}

impl ShortList {
    pub fn as_slice(&self) -> &[u32] {
        match self {
            ShortList::Empty => &[],
            ShortList::One(only) => std::slice::from_ref(only),
            ShortList::Many(list) => list,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    pub fn push(&mut self, number: u32) {
        match self {
            ShortList::Empty => *self = ShortList::One(number),
            ShortList::One(first) => *self = ShortList::Many(Box::new(vec![*first, number])),
            ShortList::Many(list) => list.push(number),
        }
    }

    /// Takes out one occurrence and says whether there was one. The order of the others may change.
    pub fn remove(&mut self, number: u32) -> bool {
        match self {
            ShortList::One(only) if *only == number => *self = ShortList::Empty,
            ShortList::Many(list) => {
                let Some(at) = list.iter().position(|other| *other == number) else { return false };
                list.swap_remove(at);
                match list[..] {
                    [] => *self = ShortList::Empty,
                    [only] => *self = ShortList::One(only),
                    _ => {}
                }
            }
            _ => return false,
        }
        true
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            ShortList::Many(list) => size_of::<Vec<u32>>() + list.capacity() * size_of::<u32>(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_shrinks_through_all_sizes() {
        let mut list = ShortList::default();
        assert!(list.is_empty() && !list.remove(1));
        for number in [1, 2, 3, 2] {
            list.push(number);
        }
        assert_eq!(list.as_slice(), [1, 2, 3, 2]);
        assert!(list.heap_bytes() > 0);
        assert!(list.remove(2) && list.remove(1) && !list.remove(1));
        assert_eq!(list.len(), 2);
        assert!(list.remove(2) && list.remove(3) && list.is_empty());
        assert_eq!(list.heap_bytes(), 0);
        assert_eq!(size_of::<ShortList>(), 16);
    }
}
