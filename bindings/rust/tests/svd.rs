//! Decompositions against bounds, errors, threads, and the C functions as they are.

use std::ptr;

use tsvd_sys::*;

fn at(a: &[f64], n: usize, i: usize, j: usize) -> f64 {
    a[i * n + j]
}

/// Largest entries of B - L diag(s) R, L^T L - I and R R^T - I.
fn measure(d: &[f64], e: &[f64], svd: &Svd<f64>) -> f64 {
    let n = d.len();
    let (l, s, r) = (&svd.l, &svd.s, &svd.r);
    let scale = s.first().map_or(1.0, |&first| first.max(f64::MIN_POSITIVE));
    let mut most = 0f64;
    for i in 0..n {
        for j in 0..n {
            let same = f64::from(u8::from(i == j));
            let b = if i == j {
                d[i]
            } else {
                e[i.min(n - 2)] * f64::from(u8::from(i + 1 == j))
            };
            let sum = |entry: &dyn Fn(usize) -> f64| (0..n).map(entry).sum::<f64>();
            let product = sum(&|k| at(l, n, i, k) * s[k] * at(r, n, k, j));
            let left = sum(&|k| at(l, n, k, i) * at(l, n, k, j));
            let right = sum(&|k| at(r, n, i, k) * at(r, n, j, k));
            for off in [(b - product) / scale, left - same, right - same] {
                assert!(off.is_finite());
                most = most.max(off.abs());
            }
        }
    }
    most
}

#[test]
fn residuals_and_orthogonality() {
    let n = 80;
    let graded: Vec<f64> = (0..n).map(|i| 10f64.powf(-0.25 * i as f64)).collect();
    let mixed: Vec<f64> = (0..n).map(|i| (i as f64 * 1.7).sin()).collect();
    let close: Vec<f64> = (0..n).map(|i| 1.0 + 1e-15 * i as f64).collect();
    let mut zeros = mixed.clone();
    zeros.iter_mut().step_by(3).for_each(|x| *x = 0.0);
    for d in [
        &graded,
        &mixed,
        &close,
        &zeros,
        &vec![1.0; n],
        &vec![0.0; n],
    ] {
        let e = &d[1..];
        let svd = svd(d, e).unwrap();
        assert!(measure(d, e, &svd) <= 10.0 * n as f64 * f64::EPSILON);
        assert!(svd.s.windows(2).all(|pair| pair[0] >= pair[1]) && svd.s[n - 1] >= 0.0);
        for (one, other) in svdvals(d, e).unwrap().iter().zip(&svd.s) {
            assert!((one - other).abs() <= 8.0 * f64::EPSILON * other);
        }
    }
    assert_eq!(
        svd(&[-2.0], &[]).unwrap(),
        Svd {
            l: vec![1.0],
            s: vec![2.0],
            r: vec![-1.0]
        }
    );
    assert_eq!(
        svd::<f32>(&[], &[]).unwrap(),
        Svd {
            l: vec![],
            s: vec![],
            r: vec![]
        }
    );
    let single = svdvals(&[3f32, 2.0, 1.0], &[1.0, 1.0]).unwrap();
    let double = svdvals(&[3f64, 2.0, 1.0], &[1.0, 1.0]).unwrap();
    for (one, other) in single.iter().zip(&double) {
        assert!((f64::from(*one) - other).abs() <= 1e-6);
    }
}

#[test]
fn errors() {
    let error = svd(&[1.0, f64::NAN], &[1.0]).unwrap_err();
    assert_eq!(error.status, TSVD_ERR_NONFINITE);
    assert!(error.to_string().contains("NaN"));
    assert_eq!(
        svdvals(&[1.0, 2.0], &[]).unwrap_err().status,
        TSVD_ERR_ARGUMENT
    );
    // With n entries in e the matrix has another shape than L and R.
    assert_eq!(
        svd(&[1.0, 2.0], &[1.0, 2.0]).unwrap_err().status,
        TSVD_ERR_ARGUMENT
    );
    assert_eq!(Handle::new(-1).unwrap_err().status, TSVD_ERR_ARGUMENT);
}

#[test]
fn threads() {
    let d: Vec<f64> = (0..50).map(|i| (i as f64).cos()).collect();
    let expected = svdvals(&d, &d[1..]).unwrap();
    let mut handle = Handle::new(1).unwrap();
    let many: Vec<_> = (0..4)
        .map(|_| {
            let d = d.clone();
            std::thread::spawn(move || svdvals(&d, &d[1..]).unwrap())
        })
        .collect();
    for thread in many {
        assert_eq!(thread.join().unwrap(), expected);
    }
    let moved = std::thread::spawn(move || handle.svdvals(&d, &d[1..]).unwrap());
    assert_eq!(moved.join().unwrap(), expected);
}

#[test]
fn the_c_functions() {
    let a = [4f64, 1.0, 2.0, 3.0];
    let (mut x, mut s) = ([0f64; 4], [0f64; 2]);
    let mut handle = ptr::null_mut();
    let mut error = tsvd_error::default();
    let mut info = tsvd_inverse_info::default();
    let options = tsvd_options {
        method: TSVD_METHOD_JACOBI,
        ..Default::default()
    };
    assert_eq!(options.count, -1);
    // SAFETY: arrays of the shapes that they have.
    unsafe {
        let of = |p: *const f64, shape: &[i64]| {
            tsvd_array_of(
                p.cast(),
                TSVD_HOST,
                TSVD_FLOAT64,
                shape.len() as i32,
                shape.as_ptr(),
            )
        };
        let (a, x, s) = (
            of(a.as_ptr(), &[2, 2]),
            of(x.as_mut_ptr(), &[2, 2]),
            of(s.as_mut_ptr(), &[2]),
        );
        assert_eq!(tsvd_create(ptr::null(), &mut handle, &mut error), TSVD_OK);
        let inverted = tsvd_dense_inverse(handle, &a, ptr::null(), 0, &x, &mut info, &mut error);
        let decomposed = tsvd_dense_svd(
            handle,
            &a,
            &options,
            ptr::null(),
            &s,
            ptr::null(),
            ptr::null_mut(),
            &mut error,
        );
        tsvd_destroy(handle);
        assert_eq!((inverted, decomposed), (TSVD_OK, TSVD_OK));
    }
    for (one, other) in x.iter().zip([0.3, -0.1, -0.2, 0.4]) {
        assert!((one - other).abs() <= 1e-15);
    }
    assert!((s[0] * s[1] - 10.0).abs() <= 1e-14 && info.rcond > 0.1);
}

#[test]
fn the_version_is_that_of_the_library() {
    assert_eq!(version(), env!("CARGO_PKG_VERSION"));
}
