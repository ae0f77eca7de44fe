//! Returns freed memory from the allocator to the system.

/// Returns to the system what was freed. Building a segment leaves many small holes, which the large arrays that follow do not
/// fit, and the allocator of GNU/Linux returns only what lies at the end of its memory. Others return it by themselves.
pub fn give_back_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes the allocator's own locks and has no other requirement.
    unsafe {
        libc::malloc_trim(0);
    }
}
