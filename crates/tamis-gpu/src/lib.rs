//! Blocks of events on a CUDA device.
//!
//! CUDA is not needed to build or import this crate: the driver is loaded when a device is requested
//! ([`cuda_device`]). The device code is in `kernels.cu`, shipped as PTX. In tests, the same source, compiled
//! for the processor, replaces a device ([`host_device`]).

mod cuda;
mod driver;
mod evaluator;
mod host;
mod lane;
mod pinned;
mod shared;

use std::path::Path;
use std::sync::Arc;

use tamis_core::engine::device::{Device, DeviceResult};

use cuda::Cuda;
use evaluator::Evaluator;
use host::Host;

/// A CUDA device by its number; an error says why there is none. It takes no more than `memory` bytes there, or nine tenths of what is
/// free.
pub fn cuda_device(number: usize, memory: Option<u64>, timed: bool) -> DeviceResult<Arc<dyn Device>> {
    Ok(Arc::new(Evaluator::new(Box::new(Cuda::open(number)?), memory, timed)?))
}

/// This processor in place of a device, with a library that was compiled from `kernels.cu`.
pub fn host_device(library: &Path, memory: Option<u64>, timed: bool) -> DeviceResult<Arc<dyn Device>> {
    Ok(Arc::new(Evaluator::new(Box::new(Host::open(library)?), memory, timed)?))
}
