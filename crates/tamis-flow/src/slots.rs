//! A list of items referred to by number; the number of a removed item is reused.

#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: vec![], free: vec![] }
    }
}

impl<T> Slots<T> {
    pub fn insert(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = Some(thing);
                id
            }
            None => {
                // Trees have few nodes, and there may be as many trees as sequences: no room for four of each.
                if self.slots.len() < 4 {
                    self.slots.reserve_exact(1);
                }
                self.slots.push(Some(thing));
                self.slots.len() as u32 - 1
            }
        }
    }

    pub fn remove(&mut self, id: u32) -> Option<T> {
        let gone = self.slots.get_mut(id as usize)?.take();
        if gone.is_some() {
            self.free.push(id);
        }
        gone
    }

    pub fn get(&self, id: u32) -> Option<&T> {
        self.slots.get(id as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.slots.get_mut(id as usize)?.as_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots.iter().enumerate().filter_map(|(id, slot)| Some((id as u32, slot.as_ref()?)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(id, slot)| Some((id as u32, slot.as_mut()?)))
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// One more than the greatest number there ever was.
    pub fn bound(&self) -> usize {
        self.slots.len()
    }
}

impl<T> std::ops::Index<u32> for Slots<T> {
    type Output = T;

    fn index(&self, id: u32) -> &T {
        self.get(id).expect("the number of something that is there")
    }
}

impl<T> std::ops::IndexMut<u32> for Slots<T> {
    fn index_mut(&mut self, id: u32) -> &mut T {
        self.get_mut(id).expect("the number of something that is there")
    }
}
