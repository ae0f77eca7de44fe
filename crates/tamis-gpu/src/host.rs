//! The processor in place of a device: threads run one after the other.
//!
//! A library may export a function `tamis_fault` next to the kernels. It is called before each operation with
//! the number of the operation, and returns its outcome: 0 for success, 1 for too little memory, 2 for a lost
//! device.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::path::Path;

use libloading::Library;
use serde_json::{Value as Json, json};
use tamis_core::engine::device::{DeviceError, DeviceResult};

use crate::driver::{Address, Driver, Kernel, Stream};

type Launch = unsafe extern "C" fn(u32, u64, *const u64);
type Fault = unsafe extern "C" fn(u32) -> u32;

/// What a fault may befall, by number.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Operation {
    Allocate = 0,
    Upload = 1,
    Download = 2,
    Wait = 3,
    Fill = 4,
    Launch = 5,
    NewStream = 6,
}

pub struct Host {
    launch: Launch,
    fault: Option<Fault>,
    /// Keeps `launch` where it is.
    _library: Library,
}

impl Host {
    pub fn open(path: &Path) -> DeviceResult<Self> {
        let wrong = |error: libloading::Error| DeviceError::new(format!("{}: {error}", path.display()));
        // SAFETY: the library is one that the caller compiled from `kernels.cu`; loading it runs nothing.
        let library = unsafe { Library::new(path) }.map_err(wrong)?;
        // SAFETY: `kernels.cu` gives the function this type.
        let launch = *unsafe { library.get::<Launch>(b"tamis_launch\0") }.map_err(wrong)?;
        // SAFETY: whoever adds faults gives the function this type.
        let fault = unsafe { library.get::<Fault>(b"tamis_fault\0") }.ok().map(|found| *found);
        Ok(Self { launch, fault, _library: library })
    }

    /// Fails if the operation is to.
    fn attempt(&self, operation: Operation) -> DeviceResult<()> {
        // SAFETY: the function takes a number and touches nothing of ours.
        match self.fault.map_or(0, |fault| unsafe { fault(operation as u32) }) {
            0 => Ok(()),
            1 => Err(DeviceError::of_memory("the device failed: out of memory")),
            _ => Err(DeviceError::new("the device failed: it was lost")),
        }
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
        self.attempt(Operation::Allocate)?;
        // SAFETY: the size is not zero.
        let place = unsafe { alloc_zeroed(layout(bytes)) };
        if place.is_null() {
            Err(DeviceError::of_memory("out of memory"))
        } else {
            Ok(place.expose_provenance() as u64)
        }
    }

    fn release(&self, address: Address, bytes: usize) {
        // SAFETY: it was allocated with this size, and is released once.
        unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address as usize), layout(bytes)) };
    }

    fn allocate_pinned(&self, bytes: usize) -> DeviceResult<Address> {
        self.allocate(bytes)
    }

    fn release_pinned(&self, address: Address, bytes: usize) {
        self.release(address, bytes);
    }

    fn new_stream(&self) -> DeviceResult<Stream> {
        self.attempt(Operation::NewStream)?;
        Ok(0)
    }

    fn end_stream(&self, _: Stream) {}

    fn upload(&self, _: Stream, to: Address, bytes: &[u8]) -> DeviceResult<()> {
        self.attempt(Operation::Upload)?;
        let to: *mut u8 = std::ptr::with_exposed_provenance_mut(to as usize);
        // SAFETY: callers copy within what they allocated.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn download(&self, _: Stream, from: Address, into: &mut [u8]) -> DeviceResult<()> {
        self.attempt(Operation::Download)?;
        let from: *const u8 = std::ptr::with_exposed_provenance(from as usize);
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn wait(&self, _: Stream) -> DeviceResult<()> {
        self.attempt(Operation::Wait)
    }

    fn fill_with_zeros(&self, _: Stream, at: Address, bytes: usize) -> DeviceResult<()> {
        self.attempt(Operation::Fill)?;
        let at: *mut u8 = std::ptr::with_exposed_provenance_mut(at as usize);
        // SAFETY: as above.
        unsafe { at.write_bytes(0, bytes) };
        Ok(())
    }

    fn launch(&self, _: Stream, kernel: Kernel, threads: u64, arguments: &[u64]) -> DeviceResult<()> {
        self.attempt(Operation::Launch)?;
        // SAFETY: the arguments are those of the kernel, and point to what was allocated.
        unsafe { (self.launch)(kernel as u32, threads.next_multiple_of(32), arguments.as_ptr()) };
        Ok(())
    }
}
