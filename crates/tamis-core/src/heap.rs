//! What the system is told about memory of the allocator: what it may take back, and where huge pages are better.

use std::mem::MaybeUninit;

/// Returns to the system what was freed. Building a segment leaves many small holes, which the large arrays that follow do not
/// fit, and the allocator of GNU/Linux returns only what lies at the end of its memory. Others return it by themselves.
pub fn give_back_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes the allocator's own locks and has no other requirement.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Pages are huge if they have so many bytes.
const HUGE_PAGE: usize = 2 << 20;

/// Asks the system for huge pages, if that many bytes are about to be written for the first time: a fault for every small page
/// takes longer than writing it.
pub fn prefer_huge_pages<T>(room: &mut [MaybeUninit<T>]) {
    #[cfg(target_os = "linux")]
    if size_of_val(room) >= 2 * HUGE_PAGE {
        let start = room.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(HUGE_PAGE);
        let length = (size_of_val(room) - skipped) / HUGE_PAGE * HUGE_PAGE;
        // SAFETY: the pages lie inside the room, and advice changes nothing of what they hold. It is only a wish.
        unsafe {
            libc::madvise(start.add(skipped).cast(), length, libc::MADV_HUGEPAGE);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (room, HUGE_PAGE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_on_huge_pages_holds_what_is_written() {
        for bytes in [0, 1, HUGE_PAGE, 2 * HUGE_PAGE - 1, 2 * HUGE_PAGE, 9 * HUGE_PAGE + 17] {
            let mut values: Vec<u8> = Vec::with_capacity(bytes);
            prefer_huge_pages(values.spare_capacity_mut());
            values.extend((0..bytes).map(|at| at as u8));
            assert!(values.iter().enumerate().all(|(at, value)| *value == at as u8));
        }
    }
}
