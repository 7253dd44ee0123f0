//! The structures and the numbers are those of C, as `tests/abi/layout.c` prints them.

use std::collections::BTreeSet;
use std::mem::{size_of, MaybeUninit};
use std::path::Path;
use std::process::Command;
use std::ptr::addr_of;

use tsvd_sys::*;

fn run(command: &mut Command) -> String {
    let output = command.output().expect("a command does not run");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of C: without alignments and types, and of what the crate declares.
fn of_c() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/abi/layout.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout");
    let flags = run(Command::new("pkg-config").args(["--cflags", "tsvd"]));
    run(Command::new("cc")
        .arg(source)
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program));
    let structures = [
        "error",
        "array",
        "config",
        "options",
        "info",
        "inverse_info",
    ];
    let others = ["TSVD_LEFT", "TSVD_RIGHT", "TSVD_MAX_BATCH_DIMS"];
    run(&mut Command::new(program))
        .lines()
        .filter_map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let name = words[1].split('.').next().unwrap();
            let structure = name.strip_prefix("tsvd_").unwrap_or("");
            match words[0] {
                "enum" if !others.contains(&name) => Some(words[..3].join(" ")),
                "struct" if structures.contains(&structure) => Some(words[..3].join(" ")),
                "field" if structures.contains(&structure) => Some(words[..4].join(" ")),
                _ => None,
            }
        })
        .collect()
}

fn size_behind<T>(_: *const T) -> usize {
    size_of::<T>()
}

#[test]
fn structures_and_numbers_are_those_of_c() {
    let mut ours = BTreeSet::new();
    macro_rules! structure {
        ($name:ident: $($field:ident)*) => {
            ours.insert(format!("struct {} {}", stringify!($name), size_of::<$name>()));
            let place = MaybeUninit::<$name>::uninit();
            let start = place.as_ptr();
            $(
                // SAFETY: only the address is taken.
                let field = unsafe { addr_of!((*start).$field) };
                ours.insert(format!(
                    "field {}.{} {} {}",
                    stringify!($name),
                    stringify!($field),
                    field as usize - start as usize,
                    size_behind(field)
                ));
            )*
        };
    }
    macro_rules! numbers {
        ($($name:ident)*) => {$(
            ours.insert(format!("enum {} {}", stringify!($name), $name));
        )*};
    }

    structure!(tsvd_error: status matrix device sweeps wanted available text advice reserved);
    structure!(tsvd_array: data space dtype ndim shape strides);
    structure!(tsvd_config: size device threads stream blas host_allocator device_allocator
        library_paths library_path_count);
    structure!(tsvd_options: size method lower first count eps max_sweeps check_finite
        givens_blocks givens_threads givens_split fallback dense_stages check check_arg part);
    structure!(tsvd_info: size method sweeps iterations iterations_saved rotations deflated refused
        seconds_iterate seconds_vectors seconds_values seconds_device seconds_reduce seconds_band
        seconds_chase seconds_back seconds_total);
    structure!(tsvd_inverse_info: size rcond matrix seconds_total);
    numbers!(TSVD_OK TSVD_ERR_ARGUMENT TSVD_ERR_NONFINITE TSVD_ERR_MEMORY TSVD_ERR_NO_CONVERGENCE
        TSVD_ERR_INTERRUPTED TSVD_ERR_NO_DEVICE TSVD_ERR_UNSUPPORTED TSVD_ERR_CUDA
        TSVD_ERR_LIBRARY TSVD_ERR_SINGULAR TSVD_HOST TSVD_CUDA TSVD_FLOAT64 TSVD_FLOAT32
        TSVD_COMPLEX128 TSVD_COMPLEX64 TSVD_METHOD_AUTO TSVD_METHOD_DC TSVD_METHOD_QR
        TSVD_METHOD_GIVENS TSVD_METHOD_BISECT TSVD_METHOD_TWISTED TSVD_METHOD_JACOBI
        TSVD_DEVICE_CPU TSVD_MAX_DIMS);

    let theirs = of_c();
    let off: Vec<_> = ours.symmetric_difference(&theirs).collect();
    assert!(off.is_empty(), "{off:#?}");
}
