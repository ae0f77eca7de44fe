//! The CUDA driver, loaded at run time. Its library comes with every driver; nothing else is needed.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use libloading::Library;
use serde_json::{Value as Json, json};
use tamis_core::engine::device::{DeviceError, DeviceResult};

use crate::driver::{Address, Driver, Kernel, NAMES, Stream, THREADS_PER_BLOCK};

/// What runs on the device, for devices of compute capability 7.0 and later.
const PTX: &str = concat!(include_str!("kernels.ptx"), "\0");

#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";

type Code = c_int;
type Handle = *mut c_void;

/// Declares the functions that are used, and finds them in the library.
macro_rules! functions {
    ($($name:ident = $symbol:literal ($($type:ty),*);)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) -> Code,)*
            _library: Library,
        }

        impl Functions {
            fn find(library: Library) -> Result<Self, libloading::Error> {
                // SAFETY: these are the types that the driver's header gives the functions.
                unsafe {
                    $(let $name = *library.get(concat!($symbol, "\0").as_bytes())?;)*
                    Ok(Self { $($name,)* _library: library })
                }
            }
        }
    };
}

functions! {
    init = "cuInit"(c_uint);
    driver_version = "cuDriverGetVersion"(*mut c_int);
    device_count = "cuDeviceGetCount"(*mut c_int);
    device_get = "cuDeviceGet"(*mut c_int, c_int);
    device_name = "cuDeviceGetName"(*mut c_char, c_int, c_int);
    device_attribute = "cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
    context_retain = "cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
    context_release = "cuDevicePrimaryCtxRelease_v2"(c_int);
    context_push = "cuCtxPushCurrent_v2"(Handle);
    context_pop = "cuCtxPopCurrent_v2"(*mut Handle);
    module_load = "cuModuleLoadData"(*mut Handle, *const c_void);
    module_unload = "cuModuleUnload"(Handle);
    module_function = "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
    memory_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
    allocate = "cuMemAlloc_v2"(*mut u64, usize);
    free = "cuMemFree_v2"(u64);
    allocate_host = "cuMemAllocHost_v2"(*mut Handle, usize);
    free_host = "cuMemFreeHost"(Handle);
    to_device = "cuMemcpyHtoDAsync_v2"(u64, *const c_void, usize, Handle);
    to_host = "cuMemcpyDtoHAsync_v2"(*mut c_void, u64, usize, Handle);
    set_bytes = "cuMemsetD8Async"(u64, u8, usize, Handle);
    stream_create = "cuStreamCreate"(*mut Handle, c_uint);
    stream_destroy = "cuStreamDestroy_v2"(Handle);
    stream_wait = "cuStreamSynchronize"(Handle);
    launch = "cuLaunchKernel"(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut Handle, *mut Handle);
    error_text = "cuGetErrorString"(Code, *mut *const c_char);
}

/// Numbers of `CUdevice_attribute`.
const MULTIPROCESSORS: c_int = 16;
const PAGEABLE_MEMORY_BY_PAGE_TABLES: c_int = 100;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: Code = 2;
/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: c_uint = 1;

pub struct Cuda {
    functions: Functions,
    device: c_int,
    context: Handle,
    module: Handle,
    kernels: [Handle; NAMES.len()],
    description: Json,
    multiprocessors: u64,
    /// Whether it reads the memory of processes without a copy.
    reads_host_memory: bool,
    /// After a fork, the driver must not be called in the child.
    process: u32,
}

/// The context is that of this thread until this goes; then the one that was is again.
struct Entered<'a>(&'a Cuda);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut popped = null_mut();
        // SAFETY: the function writes one handle.
        unsafe { (self.0.functions.context_pop)(&mut popped) };
    }
}

// SAFETY: handles of the driver may be used from any thread; every call makes the context current first.
unsafe impl Send for Cuda {}
// SAFETY: as above.
unsafe impl Sync for Cuda {}

impl Cuda {
    /// A device by its number. What it holds so far is released if a later step fails.
    pub fn open(number: usize) -> DeviceResult<Self> {
        // SAFETY: loading the driver's library runs its own initialisers only.
        let library = unsafe { Library::new(LIBRARY) }
            .map_err(|error| DeviceError::new(format!("no CUDA driver was found: {error}")))?;
        let functions = Functions::find(library)
            .map_err(|error| DeviceError::new(format!("the CUDA driver is too old: {error}")))?;
        let mut cuda = Self {
            functions,
            device: 0,
            context: null_mut(),
            module: null_mut(),
            kernels: [null_mut(); NAMES.len()],
            description: Json::Null,
            multiprocessors: 1,
            reads_host_memory: false,
            process: std::process::id(),
        };
        cuda.start(number)?;
        Ok(cuda)
    }

    fn start(&mut self, number: usize) -> DeviceResult<()> {
        let Functions { init, driver_version, device_count, device_get, device_name, context_retain, .. } =
            self.functions;
        let Functions { module_load, module_function, .. } = self.functions;
        let (mut version, mut count) = (0, 0);
        let mut name = [0 as c_char; 256];
        // SAFETY: pointers lead to values of the types that the functions write.
        unsafe {
            self.check("cuInit", init(0))?;
            self.check("cuDriverGetVersion", driver_version(&mut version))?;
            self.check("cuDeviceGetCount", device_count(&mut count))?;
            if number >= count as usize {
                return Err(DeviceError::new(format!("there is no CUDA device {number}; {count} are there")));
            }
            let mut device = 0;
            self.check("cuDeviceGet", device_get(&mut device, number as c_int))?;
            self.device = device;
            self.check("cuDeviceGetName", device_name(name.as_mut_ptr(), name.len() as c_int, self.device))?;
            let mut context = null_mut();
            self.check("cuDevicePrimaryCtxRetain", context_retain(&mut context, self.device))?;
            self.context = context;
            let mut module = null_mut();
            let loaded = self.enter().map(|_entered| module_load(&mut module, PTX.as_ptr().cast()))?;
            self.check("cuModuleLoadData", loaded)?;
            self.module = module;
            for (at, name) in NAMES.iter().enumerate() {
                let name = format!("{name}\0");
                let mut kernel = null_mut();
                let found = module_function(&mut kernel, module, name.as_ptr().cast());
                self.check("cuModuleGetFunction", found)?;
                self.kernels[at] = kernel;
            }
        }
        self.multiprocessors = self.attribute(MULTIPROCESSORS)? as u64;
        self.reads_host_memory = self.attribute(PAGEABLE_MEMORY_BY_PAGE_TABLES)? != 0;
        // SAFETY: the driver ended the name with a zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        self.description = json!({
            "name": name,
            "driver": format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
            "compute_capability": format!(
                "{}.{}", self.attribute(CAPABILITY_MAJOR)?, self.attribute(CAPABILITY_MINOR)?
            ),
            "multiprocessors": self.multiprocessors,
        });
        Ok(())
    }

    fn attribute(&self, attribute: c_int) -> DeviceResult<c_int> {
        let mut value = 0;
        // SAFETY: the function writes one integer.
        let code = unsafe { (self.functions.device_attribute)(&mut value, attribute, self.device) };
        self.check("cuDeviceGetAttribute", code)?;
        Ok(value)
    }

    /// Makes the context that of this thread. Other libraries may have one of their own there.
    fn enter(&self) -> DeviceResult<Entered<'_>> {
        if self.process != std::process::id() {
            return Err(DeviceError::new("a device cannot be used on both sides of a fork"));
        }
        // SAFETY: the context is retained until this is dropped.
        self.check("cuCtxPushCurrent", unsafe { (self.functions.context_push)(self.context) })?;
        Ok(Entered(self))
    }

    fn check(&self, what: &str, code: Code) -> DeviceResult<()> {
        if code == 0 {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the function writes a pointer to a text that lives as long as the library, or null.
        let said = unsafe {
            (self.functions.error_text)(code, &mut text);
            if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy() }
        };
        let text = format!("the CUDA device failed: {what}: {said} (code {code})");
        Err(DeviceError { text, is_memory: code == OUT_OF_MEMORY })
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // SAFETY: whatever is not null was made by the driver and is released once. Failures here have no remedy.
        unsafe {
            if self.context.is_null() || self.process != std::process::id() {
                return;
            }
            if let Ok(_entered) = self.enter()
                && !self.module.is_null()
            {
                (self.functions.module_unload)(self.module);
            }
            (self.functions.context_release)(self.device);
        }
    }
}

/// A stream as the driver knows it.
fn handle(stream: Stream) -> Handle {
    std::ptr::with_exposed_provenance_mut(stream as usize)
}

impl Driver for Cuda {
    fn describe(&self) -> Json {
        self.description.clone()
    }

    fn free_memory(&self) -> DeviceResult<u64> {
        let _entered = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the function writes two sizes.
        self.check("cuMemGetInfo", unsafe { (self.functions.memory_info)(&mut free, &mut total) })?;
        Ok(free as u64)
    }

    fn warps(&self) -> u64 {
        // As many as a multiprocessor has registers for: see `__launch_bounds__` in `kernels.cu`.
        self.multiprocessors * 32
    }

    fn allocate(&self, bytes: usize) -> DeviceResult<Address> {
        let _entered = self.enter()?;
        let mut address = 0;
        // SAFETY: the function writes one address.
        let code = unsafe { (self.functions.allocate)(&mut address, bytes.max(1)) };
        self.check(&format!("allocating {bytes} bytes"), code)?;
        Ok(address)
    }

    fn release(&self, address: Address, _: usize) {
        if let Ok(_entered) = self.enter() {
            // SAFETY: it was allocated, and is released once.
            unsafe { (self.functions.free)(address) };
        }
    }

    fn allocate_pinned(&self, bytes: usize) -> DeviceResult<Address> {
        let _entered = self.enter()?;
        let mut place = null_mut();
        // SAFETY: the function writes one pointer.
        let code = unsafe { (self.functions.allocate_host)(&mut place, bytes) };
        self.check("cuMemAllocHost", code)?;
        // SAFETY: so many bytes were allocated.
        unsafe { place.cast::<u8>().write_bytes(0, bytes) };
        Ok(place.expose_provenance() as u64)
    }

    fn release_pinned(&self, address: Address, _: usize) {
        if let Ok(_entered) = self.enter() {
            // SAFETY: it was allocated, and is released once.
            unsafe { (self.functions.free_host)(handle(address)) };
        }
    }

    fn new_stream(&self) -> DeviceResult<Stream> {
        let _entered = self.enter()?;
        let mut stream = null_mut();
        // SAFETY: the function writes one handle.
        self.check("cuStreamCreate", unsafe { (self.functions.stream_create)(&mut stream, NON_BLOCKING) })?;
        Ok(stream.expose_provenance() as u64)
    }

    fn end_stream(&self, stream: Stream) {
        if let Ok(_entered) = self.enter() {
            // SAFETY: the driver made it, and it is ended once.
            unsafe { (self.functions.stream_destroy)(handle(stream)) };
        }
    }

    fn upload(&self, stream: Stream, to: Address, bytes: &[u8]) -> DeviceResult<()> {
        let _entered = self.enter()?;
        // SAFETY: the driver has read memory that is pageable when it returns; where it reads such memory directly, it is waited
        // for. Pinned memory stays as it is until the caller has waited.
        let code =
            unsafe { (self.functions.to_device)(to, bytes.as_ptr().cast(), bytes.len(), handle(stream)) };
        self.check("copying to the device", code)?;
        if self.reads_host_memory { self.wait(stream) } else { Ok(()) }
    }

    fn download(&self, stream: Stream, from: Address, into: &mut [u8]) -> DeviceResult<()> {
        let _entered = self.enter()?;
        // SAFETY: it is waited for until the copy has ended, or failed.
        unsafe {
            let code = (self.functions.to_host)(into.as_mut_ptr().cast(), from, into.len(), handle(stream));
            self.check("copying from the device", code)?;
        }
        self.wait(stream)
    }

    fn wait(&self, stream: Stream) -> DeviceResult<()> {
        let _entered = self.enter()?;
        // SAFETY: the driver made the stream.
        self.check("waiting for the device", unsafe { (self.functions.stream_wait)(handle(stream)) })
    }

    fn fill_with_zeros(&self, stream: Stream, at: Address, bytes: usize) -> DeviceResult<()> {
        let _entered = self.enter()?;
        // SAFETY: callers fill what they allocated.
        self.check("cuMemsetD8Async", unsafe { (self.functions.set_bytes)(at, 0, bytes, handle(stream)) })
    }

    fn launch(&self, stream: Stream, kernel: Kernel, threads: u64, arguments: &[u64]) -> DeviceResult<()> {
        if threads == 0 {
            return Ok(());
        }
        let _entered = self.enter()?;
        let mut values: Vec<u64> = arguments.to_vec();
        let mut pointers: Vec<Handle> =
            values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        let blocks = c_uint::try_from(threads.div_ceil(THREADS_PER_BLOCK))
            .map_err(|_| DeviceError::new("a block of events is too large for the device"))?;
        // SAFETY: the kernel takes as many values of 64 bits as there are pointers.
        let code = unsafe {
            (self.functions.launch)(
                self.kernels[kernel as usize],
                blocks,
                1,
                1,
                THREADS_PER_BLOCK as c_uint,
                1,
                1,
                0,
                handle(stream),
                pointers.as_mut_ptr(),
                null_mut(),
            )
        };
        self.check(&format!("starting {}", NAMES[kernel as usize]), code)
    }
}
