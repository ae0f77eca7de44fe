//! This processor in place of a device: threads run one after the other.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::path::Path;

use libloading::Library;
use serde_json::{Value as Json, json};
use tamis_core::engine::device::{DeviceError, DeviceResult};

use crate::driver::{Address, Driver, Kernel, Stream};

type Launch = unsafe extern "C" fn(u32, u64, *const u64);

pub struct Host {
    launch: Launch,
    /// Keeps `launch` where it is.
    _library: Library,
}

impl Host {
    pub fn open(path: &Path) -> DeviceResult<Self> {
        let wrong = |error: libloading::Error| DeviceError(format!("{}: {error}", path.display()));
        // SAFETY: the library is one that the caller compiled from `kernels.cu`; loading it runs nothing.
        let library = unsafe { Library::new(path) }.map_err(wrong)?;
        // SAFETY: `kernels.cu` gives the function this type.
        let launch = *unsafe { library.get::<Launch>(b"tamis_launch\0") }.map_err(wrong)?;
        Ok(Self { launch, _library: library })
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(1), 256).expect("no buffer is so large")
}

impl Driver for Host {
    fn describe(&self) -> Json {
        json!({ "name": "this processor, in place of a device" })
    }

    fn free_memory(&self) -> DeviceResult<u64> {
        Ok(1 << 40)
    }

    fn warps(&self) -> u64 {
        7
    }

    fn allocate(&self, bytes: usize) -> DeviceResult<Address> {
        // SAFETY: the size is not zero.
        let place = unsafe { alloc_zeroed(layout(bytes)) };
        if place.is_null() { Err(DeviceError("out of memory".into())) } else { Ok(place.expose_provenance() as u64) }
    }

    fn release(&self, address: Address, bytes: usize) {
        // SAFETY: it was allocated with this size, and is released once.
        unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address as usize), layout(bytes)) };
    }

    fn new_stream(&self) -> DeviceResult<Stream> {
        Ok(0)
    }

    fn end_stream(&self, _: Stream) {}

    fn upload(&self, _: Stream, to: Address, bytes: &[u8]) -> DeviceResult<()> {
        let to: *mut u8 = std::ptr::with_exposed_provenance_mut(to as usize);
        // SAFETY: callers copy within what they allocated.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn download(&self, _: Stream, from: Address, into: &mut [u8]) -> DeviceResult<()> {
        let from: *const u8 = std::ptr::with_exposed_provenance(from as usize);
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn fill_with_zeros(&self, _: Stream, at: Address, bytes: usize) -> DeviceResult<()> {
        let at: *mut u8 = std::ptr::with_exposed_provenance_mut(at as usize);
        // SAFETY: as above.
        unsafe { at.write_bytes(0, bytes) };
        Ok(())
    }

    fn launch(&self, _: Stream, kernel: Kernel, threads: u64, arguments: &[u64]) -> DeviceResult<()> {
        // SAFETY: the arguments are those of the kernel, and point to what was allocated.
        unsafe { (self.launch)(kernel as u32, threads.next_multiple_of(32), arguments.as_ptr()) };
        Ok(())
    }
}
