//! A large array of masks, on huge pages if the system has them.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use super::bit_parallel::Mask;

/// Masks that are read and written at random: with small pages, finding an address takes longer than
/// reading what is there.
#[derive(Default)]
pub struct Masks {
    pages: Option<MmapMut>,
    heap: Vec<Mask>,
}

impl Masks {
    /// That many empty masks.
    pub fn new(len: usize) -> Self {
        match MmapMut::map_anon((len * size_of::<Mask>()).max(1)) {
            Ok(pages) => {
                #[cfg(target_os = "linux")]
                let _ = pages.advise(memmap2::Advice::HugePage); // only a wish
                Self { pages: Some(pages), heap: vec![] }
            }
            Err(_) => Self { pages: None, heap: vec![Mask::NONE; len] },
        }
    }
}

impl Deref for Masks {
    type Target = [Mask];

    fn deref(&self) -> &[Mask] {
        match &self.pages {
            Some(pages) => {
                bytemuck::cast_slice(&pages[..pages.len() / size_of::<Mask>() * size_of::<Mask>()])
            }
            None => &self.heap,
        }
    }
}

impl DerefMut for Masks {
    fn deref_mut(&mut self) -> &mut [Mask] {
        match &mut self.pages {
            Some(pages) => {
                let whole = pages.len() / size_of::<Mask>() * size_of::<Mask>();
                bytemuck::cast_slice_mut(&mut pages[..whole])
            }
            None => &mut self.heap,
        }
    }
}
