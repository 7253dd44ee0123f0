//! The C library tsvd for Rust: what programs on the CPU need of it, as `tsvd.h` declares it, and a
//! thin safe layer, [`Handle`], [`svd()`] and [`svdvals()`].
//!
//! Structures that may grow begin with their size. Their `default()` sets it.

#![allow(non_camel_case_types)]

use std::ffi::CStr;
use std::fmt;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

// ---- the C interface ----

pub const TSVD_OK: c_int = 0;
pub const TSVD_ERR_ARGUMENT: c_int = 1;
pub const TSVD_ERR_NONFINITE: c_int = 2;
pub const TSVD_ERR_MEMORY: c_int = 3;
pub const TSVD_ERR_NO_CONVERGENCE: c_int = 4;
pub const TSVD_ERR_INTERRUPTED: c_int = 5;
pub const TSVD_ERR_NO_DEVICE: c_int = 6;
pub const TSVD_ERR_UNSUPPORTED: c_int = 7;
pub const TSVD_ERR_CUDA: c_int = 8;
pub const TSVD_ERR_LIBRARY: c_int = 9;
pub const TSVD_ERR_SINGULAR: c_int = 10;

pub const TSVD_HOST: c_int = 1;
pub const TSVD_CUDA: c_int = 2;

pub const TSVD_FLOAT64: c_int = 1;
pub const TSVD_FLOAT32: c_int = 2;
pub const TSVD_COMPLEX128: c_int = 3;
pub const TSVD_COMPLEX64: c_int = 4;

pub const TSVD_METHOD_AUTO: c_int = 0;
pub const TSVD_METHOD_DC: c_int = 1;
pub const TSVD_METHOD_QR: c_int = 2;
pub const TSVD_METHOD_GIVENS: c_int = 3;
pub const TSVD_METHOD_BISECT: c_int = 4;
pub const TSVD_METHOD_TWISTED: c_int = 5;
pub const TSVD_METHOD_JACOBI: c_int = 6;

pub const TSVD_DEVICE_CPU: c_int = -1;
pub const TSVD_MAX_DIMS: usize = 34;

#[repr(C)]
pub struct tsvd_error {
    pub status: c_int,
    pub matrix: i64,
    pub device: c_int,
    pub sweeps: i64,
    pub wanted: u64,
    pub available: u64,
    pub text: [c_char; 1024],
    pub advice: [c_char; 256],
    pub reserved: [u64; 8],
}

#[repr(C)]
pub struct tsvd_array {
    pub data: *mut c_void,
    pub space: c_int,
    pub dtype: c_int,
    pub ndim: c_int,
    pub shape: [i64; TSVD_MAX_DIMS],
    pub strides: [i64; TSVD_MAX_DIMS],
}

#[repr(C)]
pub struct tsvd_config {
    pub size: usize,
    pub device: c_int,
    pub threads: c_int,
    pub stream: *mut c_void,
    pub blas: *const c_void,
    pub host_allocator: *const c_void,
    pub device_allocator: *const c_void,
    pub library_paths: *const *const c_char,
    pub library_path_count: i64,
}

#[repr(C)]
pub struct tsvd_options {
    pub size: usize,
    pub method: c_int,
    pub lower: c_int,
    pub first: i64,
    pub count: i64,
    pub eps: f64,
    pub max_sweeps: i64,
    pub check_finite: c_int,
    pub givens_blocks: i64,
    pub givens_threads: i64,
    pub givens_split: c_int,
    pub fallback: c_int,
    pub dense_stages: c_int,
    pub check: Option<unsafe extern "C" fn(check_arg: *mut c_void, done: f64) -> c_int>,
    pub check_arg: *mut c_void,
    pub part: *const c_void,
}

#[repr(C)]
pub struct tsvd_info {
    pub size: usize,
    pub method: c_int,
    pub sweeps: i64,
    pub iterations: i64,
    pub iterations_saved: i64,
    pub rotations: i64,
    pub deflated: i64,
    pub refused: i64,
    pub seconds_iterate: f64,
    pub seconds_vectors: f64,
    pub seconds_values: f64,
    pub seconds_device: f64,
    pub seconds_reduce: f64,
    pub seconds_band: f64,
    pub seconds_chase: f64,
    pub seconds_back: f64,
    pub seconds_total: f64,
}

#[repr(C)]
pub struct tsvd_inverse_info {
    pub size: usize,
    pub rcond: f64,
    pub matrix: i64,
    pub seconds_total: f64,
}

/// A handle of C.
#[repr(C)]
pub struct tsvd_handle {
    private: [u8; 0],
}

extern "C" {
    pub fn tsvd_version() -> *const c_char;
    pub fn tsvd_array_of(
        data: *const c_void,
        space: c_int,
        dtype: c_int,
        ndim: c_int,
        shape: *const i64,
    ) -> tsvd_array;
    pub fn tsvd_config_init(config: *mut tsvd_config, size: usize);
    pub fn tsvd_options_init(options: *mut tsvd_options, size: usize);
    pub fn tsvd_create(
        config: *const tsvd_config,
        handle: *mut *mut tsvd_handle,
        error: *mut tsvd_error,
    ) -> c_int;
    pub fn tsvd_destroy(handle: *mut tsvd_handle);
    pub fn tsvd_svd(
        handle: *mut tsvd_handle,
        d: *const tsvd_array,
        e: *const tsvd_array,
        options: *const tsvd_options,
        l: *const tsvd_array,
        s: *const tsvd_array,
        r: *const tsvd_array,
        info: *mut tsvd_info,
        error: *mut tsvd_error,
    ) -> c_int;
    pub fn tsvd_select(
        handle: *mut tsvd_handle,
        d: *const tsvd_array,
        e: *const tsvd_array,
        options: *const tsvd_options,
        low: f64,
        high: f64,
        first: *mut i64,
        count: *mut i64,
        error: *mut tsvd_error,
    ) -> c_int;
    pub fn tsvd_dense_svd(
        handle: *mut tsvd_handle,
        a: *const tsvd_array,
        options: *const tsvd_options,
        u: *const tsvd_array,
        s: *const tsvd_array,
        vh: *const tsvd_array,
        info: *mut tsvd_info,
        error: *mut tsvd_error,
    ) -> c_int;
    pub fn tsvd_dense_inverse(
        handle: *mut tsvd_handle,
        a: *const tsvd_array,
        options: *const tsvd_options,
        refine: c_int,
        x: *const tsvd_array,
        info: *mut tsvd_inverse_info,
        error: *mut tsvd_error,
    ) -> c_int;
}

impl Default for tsvd_error {
    fn default() -> Self {
        // SAFETY: numbers alone, of which zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

/// A structure that begins with its size: zeros, and the size.
macro_rules! sized {
    ($($structure:ty),*) => {$(
        impl Default for $structure {
            fn default() -> Self {
                // SAFETY: numbers alone, of which zeros are valid.
                let mut all: Self = unsafe { std::mem::zeroed() };
                all.size = std::mem::size_of::<Self>();
                all
            }
        }
    )*};
}
sized!(tsvd_info, tsvd_inverse_info);

/// A structure whose defaults the library knows.
macro_rules! initialised {
    ($($structure:ty, $init:ident);*) => {$(
        impl Default for $structure {
            fn default() -> Self {
                let mut all = std::mem::MaybeUninit::zeroed();
                // SAFETY: it writes as many bytes as it is told, and those make a valid value.
                unsafe {
                    $init(all.as_mut_ptr(), std::mem::size_of::<Self>());
                    all.assume_init()
                }
            }
        }
    )*};
}
initialised!(tsvd_config, tsvd_config_init; tsvd_options, tsvd_options_init);

// ---- the safe layer ----

/// What failed, in the library's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// One of `TSVD_ERR_...`.
    pub status: c_int,
    pub text: String,
    /// What helps; may be empty.
    pub advice: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.advice.as_str() {
            "" => f.write_str(&self.text),
            advice => write!(f, "{}; {}", self.text, advice),
        }
    }
}

impl std::error::Error for Error {}

fn words(text: &[c_char]) -> String {
    let bytes = text.iter().map(|&c| c as u8);
    String::from_utf8_lossy(&bytes.take_while(|&c| c != 0).collect::<Vec<_>>()).into_owned()
}

/// Ok, or what a call has put into its error.
fn checked(status: c_int, error: &tsvd_error) -> Result<(), Error> {
    if status == TSVD_OK {
        return Ok(());
    }
    Err(Error {
        status,
        text: words(&error.text),
        advice: words(&error.advice),
    })
}

/// The version of the library.
pub fn version() -> &'static str {
    // SAFETY: a constant string of the library, in ASCII.
    unsafe { CStr::from_ptr(tsvd_version()) }
        .to_str()
        .unwrap_or("")
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for f32 {}
}

/// The numbers of bidiagonal matrices: `f64` and `f32`.
pub trait Real: Copy + Default + sealed::Sealed {
    const DTYPE: c_int;
}

impl Real for f64 {
    const DTYPE: c_int = TSVD_FLOAT64;
}

impl Real for f32 {
    const DTYPE: c_int = TSVD_FLOAT32;
}

/// B = L diag(s) R, for all n values. L and R are n x n, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Svd<T> {
    pub l: Vec<T>,
    pub s: Vec<T>,
    pub r: Vec<T>,
}

/// The CPU, and memory that calls share. A call takes it alone, which `&mut` says; any thread may.
#[derive(Debug)]
pub struct Handle(*mut tsvd_handle);

// SAFETY: the library takes calls from any thread, one at a time with the same handle.
unsafe impl Send for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: new() made it, and nothing uses it any more.
        unsafe { tsvd_destroy(self.0) }
    }
}

/// C-contiguous numbers of the host.
fn array<T: Real>(numbers: *const T, shape: &[i64]) -> tsvd_array {
    // SAFETY: it reads the shape alone.
    unsafe {
        tsvd_array_of(
            numbers.cast(),
            TSVD_HOST,
            T::DTYPE,
            shape.len() as c_int,
            shape.as_ptr(),
        )
    }
}

impl Handle {
    /// threads: of the host; 0: as many as OpenMP uses.
    pub fn new(threads: c_int) -> Result<Handle, Error> {
        let config = tsvd_config {
            threads,
            ..Default::default()
        };
        let mut handle = ptr::null_mut();
        let mut error = tsvd_error::default();
        // SAFETY: all three live until it returns.
        let status = unsafe { tsvd_create(&config, &mut handle, &mut error) };
        checked(status, &error).map(|()| Handle(handle))
    }

    /// Calls the library; l and r have n^2 numbers, or are NULL.
    fn call<T: Real>(
        &mut self,
        d: &[T],
        e: &[T],
        s: &mut [T],
        l: *mut T,
        r: *mut T,
    ) -> Result<(), Error> {
        let n = d.len() as i64;
        let d = array(d.as_ptr(), &[n]);
        let e = array(e.as_ptr(), &[e.len() as i64]);
        let s = array(s.as_mut_ptr(), &[n]);
        let sides = [array(l, &[n, n]), array(r, &[n, n])];
        let side = |i: usize| match l.is_null() {
            true => ptr::null(),
            false => &sides[i] as *const tsvd_array,
        };
        let mut error = tsvd_error::default();
        // SAFETY: the arrays say how many numbers there are, and the library refuses an e, an L or
        // an R of another shape than that of d asks for. `&mut self` keeps other calls away.
        let status = unsafe {
            tsvd_svd(
                self.0,
                &d,
                &e,
                ptr::null(),
                side(0),
                &s,
                side(1),
                ptr::null_mut(),
                &mut error,
            )
        };
        checked(status, &error)
    }

    /// The SVD of the upper bidiagonal matrix with the diagonals d and e.
    pub fn svd<T: Real>(&mut self, d: &[T], e: &[T]) -> Result<Svd<T>, Error> {
        let n = d.len();
        let mut svd = Svd {
            l: vec![T::default(); n * n],
            s: vec![T::default(); n],
            r: vec![T::default(); n * n],
        };
        let (l, r) = (svd.l.as_mut_ptr(), svd.r.as_mut_ptr());
        self.call(d, e, &mut svd.s, l, r)?;
        Ok(svd)
    }

    /// Its singular values alone.
    pub fn svdvals<T: Real>(&mut self, d: &[T], e: &[T]) -> Result<Vec<T>, Error> {
        let mut s = vec![T::default(); d.len()];
        self.call(d, e, &mut s, ptr::null_mut(), ptr::null_mut())?;
        Ok(s)
    }
}

/// [`Handle::svd()`] with a handle for this call.
pub fn svd<T: Real>(d: &[T], e: &[T]) -> Result<Svd<T>, Error> {
    Handle::new(0)?.svd(d, e)
}

/// [`Handle::svdvals()`] with a handle for this call.
pub fn svdvals<T: Real>(d: &[T], e: &[T]) -> Result<Vec<T>, Error> {
    Handle::new(0)?.svdvals(d, e)
}
