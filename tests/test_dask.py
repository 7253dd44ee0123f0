"""tsvd.dask: lazily, chunk by chunk, with the bits that the chunks fix."""

import importlib.util
import os
import sys
import threading
import time

import numpy as np
import pytest

import tsvd
from testing import fake_cupy
from testing.families import make
from testing.measures import BOUNDS, orthogonality, residual
from testing.processes import run
from testing.ranks import numbers
from tsvd import linalg

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
lazy = pytest.importorskip("tsvd.dask")

SCHEDULERS = ["synchronous", "threads"]
DTYPES = [np.float64, np.float32, np.complex128, np.complex64]


def hold(A, U, S, Vh):
    """The bounds of tsvd.linalg.svd."""
    eps = np.finfo(S.dtype).eps
    unit = (max(A.shape) + 8) * eps
    scale = S[0] if len(S) and S[0] > 0 else 1
    assert np.linalg.norm((A - U * S @ Vh) / scale) <= 4 * unit
    for Q in (U, Vh.conj().T):
        assert np.linalg.norm(Q.conj().T @ Q - np.eye(Q.shape[1])) <= 4 * unit
    assert (S >= 0).all() and (np.diff(S) <= 0).all()


def same(x, y):
    return np.array_equal(np.asarray(x), np.asarray(y))


@pytest.fixture(params=SCHEDULERS)
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield request.param


# ---- tall matrices ----


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("rows", [600, 300, 86])  # 1, 2 and 7 blocks
@pytest.mark.parametrize("dtype", DTYPES)
def test_chunks_in_rows(dtype, rows, again, scheduler):
    A = numbers((600, 20), dtype)
    a = da.from_array(A, chunks=(rows, -1))
    results = lazy.linalg_svd(a, full_matrices=False, again=again)
    assert results.U.chunks == (a.chunks[0], (20,))
    assert [x.dtype for x in results] == [A.dtype, A.real.dtype, A.dtype]
    U, S, Vh = dask.compute(*results)
    assert [x.shape for x in (U, S, Vh)] == [(600, 20), (20,), (20, 20)]
    hold(A, U, S, Vh)
    repeated = dask.compute(*lazy.linalg_svd(a, full_matrices=False, again=again))
    assert all(same(x, y) for x, y in zip((U, S, Vh), repeated, strict=True))
    s = lazy.linalg_svdvals(a).compute()
    assert np.allclose(s, linalg.svdvals(A), rtol=0, atol=100 * np.finfo(s.dtype).eps * s[0])


def test_many_blocks():
    """Three levels of the tree, whose last node has fewer triangles, and blocks of few rows."""
    A = numbers((600, 20))
    hold(A, *dask.compute(*lazy.linalg_svd(da.from_array(A, chunks=(7, -1)), False)))


def test_blocks_that_are_made_again(scheduler):
    """Each block is made twice, and by tasks of its own."""
    A, made = numbers((120, 5)), []

    def make_block(i):
        made.append(i)
        return A[i : i + 40]

    blocks = [
        da.from_delayed(dask.delayed(make_block)(i), (40, 5), dtype=float) for i in (0, 40, 80)
    ]
    found = []
    for again, count in ((False, 3), (True, 6)):
        made.clear()
        results = lazy.linalg_svd(da.concatenate(blocks), full_matrices=False, again=again)
        found.append(dask.compute(*results))
        hold(A, *found[-1])
        assert len(made) == count
    assert all(same(x, y) for x, y in zip(*found, strict=True))


def test_the_scheduler_changes_no_bit():
    a = da.from_array(numbers((1000, 30)), chunks=(90, -1))
    found = []
    for scheduler in SCHEDULERS:
        with dask.config.set(scheduler=scheduler):
            found.append(dask.compute(*lazy.linalg_svd(a, full_matrices=False)))
    assert all(same(x, y) for x, y in zip(*found, strict=True))


def test_chunks_in_columns(scheduler):
    A = numbers((20, 600), np.complex128)
    a = da.from_array(A, chunks=(-1, 100))
    U, S, Vh = lazy.linalg_svd(a, full_matrices=False)
    assert Vh.chunks == ((20,), a.chunks[1])
    hold(A, *dask.compute(U, S, Vh))
    P = lazy.linalg_pinv(a)
    assert P.chunks == (a.chunks[1], (20,)) and np.allclose(P.compute(), np.linalg.pinv(A))


@pytest.mark.parametrize("shape", [(5, 12), (40, 40), (3, 1), (0, 4), (9, 0)])
def test_other_shapes(shape, scheduler):
    A = numbers(shape)
    for rows in (1, 2, 40):
        a = da.from_array(A, chunks=(rows, -1))
        hold(A, *dask.compute(*lazy.linalg_svd(a, full_matrices=False)))


FAMILIES = {
    "graded": lambda A: A * 10.0 ** -np.arange(A.shape[1]),
    "rows graded": lambda A: A * 10.0 ** -np.linspace(0, 12, len(A))[:, None],
    "deficient": lambda A: A[:, :3] @ A[:3, :],
    "constant": lambda A: np.full_like(A, 1.3),
    "zeros": np.zeros_like,
    "equal values": lambda A: np.linalg.qr(A)[0],
    "overflow": lambda A: A * 1e306,
    "underflow": lambda A: A * 1e-306,
    "subnormal": lambda A: A * 1e-310,
    "blocks far apart": lambda A: A * np.where(np.arange(len(A)) < 100, 1e300, 1e-300)[:, None],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family):
    A = FAMILIES[family](numbers((400, 12)))
    a = da.from_array(A, chunks=(60, -1))
    U, S, Vh = dask.compute(*lazy.linalg_svd(a, full_matrices=False))
    power = 2.0 ** np.floor(np.log2(abs(A).max())) if A.any() else 1.0
    rounding = 5e-324 / power  # of subnormal values
    assert np.linalg.norm(A / power - U * (S / power) @ Vh) <= 1e-11 + 100 * rounding
    assert np.linalg.norm(U.T @ U - np.eye(12)) <= 1e-12
    right = linalg.svdvals(A)
    assert np.allclose(S / power, right / power, rtol=0, atol=1e-12 + 100 * rounding)


def test_parts(scheduler):
    A = numbers((300, 15))
    a = da.from_array(A, chunks=(50, -1))
    U, S, Vh = dask.compute(*lazy.linalg_svd(a, select="i", select_range=(2, 6)))
    assert U.shape == (300, 5) and Vh.shape == (5, 15)
    assert np.allclose(S, linalg.svdvals(A)[2:7]) and np.allclose(A @ Vh.T, U * S)
    s = lazy.linalg_svdvals(a, select="i", select_range=(0, 1)).compute()
    assert np.allclose(s, linalg.svdvals(A)[:2])


def test_signs():
    a = da.from_array(numbers((300, 9), np.complex128), chunks=(50, -1))
    Vh = lazy.linalg_svd(a, full_matrices=False).Vh.compute()
    most = Vh[np.arange(9), abs(Vh).argmax(1)]
    assert np.allclose(most.imag, 0, atol=1e-15) and (most.real > 0).all()


def test_integers(scheduler):
    A = np.arange(60).reshape(20, 3) ** 2 % 17
    a = da.from_array(A, chunks=(6, -1))
    U, S, Vh = lazy.linalg_svd(a, full_matrices=False)
    assert U.dtype == np.float64
    hold(A, *dask.compute(U, S, Vh))


# ---- batches ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
def test_batches(full, dtype, scheduler):
    A = numbers((10, 3, 6, 4), dtype)
    a = da.from_array(A, chunks=(4, 2, -1, -1))
    found = lazy.linalg_svd(a, full_matrices=full)
    right = linalg.svd(A, full_matrices=full)
    for x, y in zip(found, right, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype and x.chunks[:2] == a.chunks[:2]
        assert same(x.compute(), y)
    assert same(lazy.linalg_svdvals(a), linalg.svdvals(A))
    part = {"select": "i", "select_range": (1, 2)}
    assert lazy.linalg_svd(a, **part).U.compute().shape == (10, 3, 6, 2)


def test_inverses(scheduler):
    A = numbers((7, 5, 5)) + 5 * np.eye(5)
    a = da.from_array(A, chunks=(3, -1, -1))
    X = lazy.linalg_inv(a)
    assert X.chunks == a.chunks and same(X, linalg.inv(A))
    A[4] = 0
    with pytest.raises(np.linalg.LinAlgError):
        lazy.linalg_inv(da.from_array(A, chunks=(3, -1, -1))).compute()


# ---- equations ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("flat", [False, True])
def test_lstsq(flat, dtype, scheduler):
    A, B = numbers((200, 6), dtype), numbers((200,) if flat else (200, 3), dtype, 1)
    a, b = (da.from_array(x, chunks=(n, *x.shape[1:])) for x, n in ((A, 30), (B, 45)))
    x, residuals, rank, s = lazy.linalg_lstsq(a, b)
    right = np.linalg.lstsq(A, B, rcond=None)
    tolerance = 1e3 * float(np.finfo(A.dtype).eps)
    assert x.shape == right[0].shape and np.allclose(x, right[0], atol=tolerance)
    assert np.allclose(residuals, np.squeeze(right[1]), rtol=tolerance)
    assert rank.compute() == 6 and np.allclose(s, right[3], rtol=tolerance)


def test_lstsq_of_deficient_rank_and_far_scales():
    A, B = numbers((90, 3)) @ numbers((3, 5), seed=1), numbers((90, 2), seed=2)
    a, b = da.from_array(A * 1e200, chunks=(20, -1)), da.from_array(B * 1e-100, chunks=(20, -1))
    x, residuals, rank, _ = dask.compute(*lazy.linalg_lstsq(a, b))
    right = np.linalg.pinv(A, rcond=1e-12) @ B
    assert rank == 3 and np.allclose(x * 1e300, right)
    assert np.allclose(residuals * 1e200, (abs(B - A @ right) ** 2).sum(0))


def test_pinv(scheduler):
    A = numbers((120, 4)) @ numbers((4, 7), seed=1)
    a = da.from_array(A, chunks=(50, -1))
    for again in (False, True):
        assert np.allclose(lazy.linalg_pinv(a, again=again), np.linalg.pinv(A, rcond=1e-12))


# ---- a few values ----


def test_svds(scheduler):
    A = numbers((800, 120)) * 0.5 ** np.arange(120)
    a = da.from_array(A, chunks=(300, -1))
    U, s, Vh = lazy.linalg_svds(a, 5)
    assert np.allclose(s, np.linalg.svd(A, compute_uv=False)[:5], rtol=1e-12)
    assert np.allclose(A @ Vh.T, U * s, atol=1e-10)
    again = lazy.linalg_svds(a, 5)
    assert all(same(x, y) for x, y in zip((U, s, Vh), again, strict=True))
    assert same(linalg.svds(a, 5)[1], s)


def test_svds_of_sparse_chunks():
    sparse = pytest.importorskip("scipy.sparse")
    A = sparse.random_array((500, 80), density=0.1, rng=np.random.default_rng(0)).tocsr()
    a = da.from_array(A.toarray(), chunks=(100, -1)).map_blocks(sparse.csr_array)
    s = lazy.linalg_svds(a, 3, return_singular_vectors=False)
    assert np.allclose(s, np.linalg.svd(A.toarray(), compute_uv=False)[:3])


# ---- bidiagonal matrices ----


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("chunks", [500, 170, "auto", (100, 300, 100)])
def test_slabs(chunks, extra, lower, scheduler):
    n = 500
    d, e = make("chi", n)
    e = np.append(e, 0.5)[: n - 1 + extra]
    found = lazy.svd(d, da.from_array(e, chunks=99), chunks=chunks, lower=lower)
    L, s, R = dask.compute(*found)
    rows, columns = n + (extra and lower), n + (extra and not lower)
    assert [x.shape for x in found] == [(rows, n), (n,), (n, columns)]
    assert [x.shape for x in (L, s, R)] == [(rows, n), (n,), (n, columns)]
    B = np.zeros((rows, columns))
    B[np.arange(n), np.arange(n)] = d
    at = np.arange(len(e))
    B[(at + 1, at) if lower else (at, at + 1)] = e
    hold(B, L, s, R)
    again = dask.compute(*lazy.svd(d, e, chunks=chunks, lower=lower))
    assert all(same(x, y) for x, y in zip((L, s, R), again, strict=True))


@pytest.mark.parametrize("family", ["ladders_repeated", "walk_of_exponents", "wilkinson_glued"])
@pytest.mark.parametrize("chunks", [30, 120])
def test_slabs_of_close_values(chunks, family):
    """Some slabs alone would be taken by "twisted", and others not; their vectors would not fit."""
    d, e = make(family, 600)
    L, s, R = dask.compute(*lazy.svd(d, e, chunks=chunks))
    assert residual(d, e, L, s, R) <= BOUNDS["residual"](600)
    assert orthogonality(L, R) <= BOUNDS["orthogonality"](600)
    with pytest.raises(np.linalg.LinAlgError, match=r"refused values \d+ to .*use method="):
        dask.compute(*lazy.svd(d, e, chunks=chunks, method="twisted"))


@pytest.mark.parametrize("method", ["auto", "twisted", "dc"])
def test_slabs_of_a_method(method):
    d, e = make("toeplitz", 200)
    found = dask.compute(*lazy.svd(d, e, chunks=50, method=method))
    right = tsvd.svd(d, e, method="dc" if method == "dc" else "twisted")
    assert np.allclose(found[0], right.L, atol=1e-12) and same(found[1], right.s)


def test_slabs_that_are_too_large():
    """By "dc" each slab takes the memory of all vectors."""
    n = 10**6
    found = lazy.svd(np.ones(n), np.ones(n - 1), chunks=n // 2, method="dc")
    with pytest.raises(MemoryError, match=r"the slab of values \d+ to \d+: .*bytes"):
        dask.compute(*found, scheduler="synchronous")


def test_a_part_of_the_slabs():
    d, e = make("uniform_1", 300)
    L, s, R = lazy.svd(d, e, chunks=20, select="i", select_range=(5, 64))
    assert L.chunks == ((300,), (20, 20, 20)) and R.numblocks == (3, 1)
    assert residual(d, e, *dask.compute(L, s, R)) <= BOUNDS["residual"](300)
    assert np.allclose(lazy.svdvals(d, e)[5:65], s, rtol=1e-13)
    empty = dask.compute(*lazy.svd([], []))
    assert [x.shape for x in empty] == [(0, 0), (0,), (0, 0)]


STORED = r"""
import re, resource
from pathlib import Path
import dask, numpy as np, tsvd.dask

def store(n, folder):
    L, s, R = tsvd.dask.svd(np.ones(n), np.ones(n - 1), chunks=100, threads=1)
    stored = [x.to_zarr(f"{folder}/{name}", compute=False) for x, name in ((L, "L"), (R, "R"))]
    with dask.config.set(scheduler="threads", num_workers=2):
        return dask.compute(s, *stored)[0]

store(600, FOLDER / "first")  # libraries are loaded then, and threads have their stacks
used = int(re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (used + (40 << 20),) * 2)
try:
    np.ones((3000, 3000))
except MemoryError:
    np.save(FOLDER / "s.npy", store(3000, FOLDER))
"""


def test_vectors_that_are_larger_than_memory(tmp_path):
    """Both sides go to files of zarr, 144 MB, by a process that may take 40 MB."""
    pytest.importorskip("zarr")
    n = 3000
    run(STORED.replace("FOLDER", f"Path({str(tmp_path)!r})"))
    L, R = (da.from_zarr(tmp_path / name).compute() for name in "LR")
    s = np.load(tmp_path / "s.npy")
    d, e = np.ones(n), np.ones(n - 1)
    assert residual(d, e, L, s, R) <= BOUNDS["residual"](n)
    assert orthogonality(L, R) <= BOUNDS["orthogonality"](n)


# ---- arguments, and the functions of tsvd.linalg ----


def test_the_functions_of_linalg():
    A = numbers((100, 6))
    a = da.from_array(A, chunks=(30, -1))
    for x in (*linalg.svd(a, full_matrices=False), linalg.svdvals(a), linalg.pinv(a)):
        assert isinstance(x, da.Array)
    assert all(isinstance(x, da.Array) for x in linalg.lstsq(a, a[:, 0]))
    assert isinstance(linalg.inv(a[:6].rechunk(-1)), da.Array)
    assert isinstance(linalg.svd(a, compute_uv=False), da.Array)
    for wrong in ({"out": A}, {"full_output": True}, {"stream": 1}, {"hermitian": True}):
        with pytest.raises(TypeError, match="not for arrays of Dask"):
            linalg.svd(a, full_matrices=False, **wrong)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda a: lazy.linalg_svd(a), ValueError, "use full_matrices=False"),
        (lambda a: lazy.linalg_svd(a.rechunk((5, 3)), False), ValueError, "rechunk.{0: 'auto'"),
        (lambda a: lazy.linalg_svd(a.rechunk((5, 3)).T, False), ValueError, "rechunk.{0: -1"),
        (lambda a: lazy.linalg_svd(a[None]), ValueError, "rechunk.{-2: -1, -1: -1}"),
        (lambda a: lazy.linalg_svd(a[0]), np.linalg.LinAlgError, "two-dimensional"),
        (lambda a: lazy.linalg_svd(a[a[:, 0] > 0], False), ValueError, "compute_chunk_sizes"),
        (lambda a: lazy.linalg_svd(a, False, select="v"), NotImplementedError, "lazy"),
        (
            lambda a: lazy.linalg_svd(a, select="i", select_range=(0, 6)),
            ValueError,
            "out of range",
        ),
        (lambda a: lazy.linalg_svd(a, False, method="none"), ValueError, "method"),
        (lambda a: lazy.linalg_svd(a, False, nothing=1), TypeError, "nothing"),
        (lambda a: lazy.linalg_inv(a), np.linalg.LinAlgError, "square"),
        (lambda a: lazy.linalg_inv(a[:6].rechunk((2, -1))), ValueError, "rechunk"),
        (lambda a: lazy.linalg_lstsq(a, a[:5]), np.linalg.LinAlgError, "do not fit"),
        (lambda a: lazy.linalg_svds(a.rechunk((5, 3))), ValueError, "rechunk"),
        (lambda a: lazy.svd(a, a), ValueError, "one dimension"),
        (lambda a: lazy.svd(a[:, 0], a[:, 1][:4]), ValueError, "entries"),
    ],
)
def test_wrong_arguments(call, error, text):
    a = da.from_array(numbers((40, 6)), chunks=(10, -1))
    with pytest.raises(error, match=text):
        call(a)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_nonfinite_entries(wrong):
    A = numbers((40, 6))
    A[25, 3] = wrong
    a = da.from_array(A, chunks=(10, -1))
    block = "NaN or infinity at indices 20 to 29"
    for found, text in (
        (lazy.linalg_svdvals(a), block),
        (lazy.linalg_svd(a.T, full_matrices=False).Vh, block),
        (lazy.linalg_pinv(a), block),
        (lazy.linalg_lstsq(a[:, :3], a[:, 3])[0], block),
        (lazy.svd(A[:, 3], A[1:, 0], chunks=10).s, "NaN or infinity"),
    ):
        with pytest.raises(ValueError, match=text):
            found.compute()
    assert np.isnan(lazy.linalg_svdvals(a, check_finite=False)).all()


# ---- chunks of CuPy ----


@pytest.fixture(params=["fake", pytest.param("cuda", marks=pytest.mark.cuda)])
def cupy(request, monkeypatch):
    if request.param == "cuda":
        request.getfixturevalue("cuda")
        return pytest.importorskip("cupy")
    if importlib.util.find_spec("cupy"):
        pytest.skip("CuPy itself is here")
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module)
    return fake_cupy.module


def on_device(cupy, x, *chunks):
    return da.from_array(cupy.asarray(x), chunks=chunks, asarray=False)


def brought(cupy, results):
    """Results on the host, which were on the device, as those that were not computed said."""
    assert all(isinstance(x._meta, cupy.ndarray) for x in results)
    found = dask.compute(*results)
    assert all(isinstance(x, cupy.ndarray) for x in found)
    assert [x.dtype for x in found] == [x.dtype for x in results]
    return [cupy.asnumpy(x) for x in found]


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_chunks_of_cupy(cupy, dtype):
    A, b = numbers((300, 12), dtype), numbers((300,), dtype, 1)
    A[150:] *= 8
    a = on_device(cupy, A, 60, -1)
    for again in (False, True):
        hold(A, *brought(cupy, lazy.linalg_svd(a, full_matrices=False, again=again)))
        (P,) = brought(cupy, [lazy.linalg_pinv(a, again=again)])
        assert np.allclose(P, np.linalg.pinv(A), atol=1e-5)
    assert np.allclose(brought(cupy, [lazy.linalg_svdvals(a)]), linalg.svdvals(A), rtol=1e-5)
    x, residual_squares, rank, _ = brought(cupy, lazy.linalg_lstsq(a, on_device(cupy, b, 60)))
    right = np.linalg.lstsq(A, b, rcond=None)
    assert np.allclose(x, right[0], atol=1e-5) and rank == 12
    assert np.allclose(residual_squares, right[1], rtol=1e-4)


def test_batches_of_cupy(cupy):
    A = numbers((6, 5, 5)) + 5 * np.eye(5)
    a = on_device(cupy, A, 2, -1, -1)
    for found, right in zip(brought(cupy, lazy.linalg_svd(a)), linalg.svd(A), strict=True):
        assert np.allclose(found, right)
    assert np.allclose(brought(cupy, [lazy.linalg_inv(a)]), np.linalg.inv(A))


def test_svds_of_cupy(cupy):
    """The results are on the host, where the vectors of the method are."""
    A = numbers((800, 120)) * 0.5 ** np.arange(120)
    U, s, Vh = lazy.linalg_svds(on_device(cupy, A, 300, -1), 5)
    assert all(type(x) is np.ndarray for x in (U, s, Vh))
    assert np.allclose(s, np.linalg.svd(A, compute_uv=False)[:5], rtol=1e-12)
    assert np.allclose(A @ Vh.T, U * s, atol=1e-10)


def test_slabs_of_cupy(cupy):
    d, e = make("chi", 300)
    L, s, R = brought(cupy, lazy.svd(on_device(cupy, d, -1), on_device(cupy, e, -1), chunks=100))
    assert residual(d, e, L, s, R) <= BOUNDS["residual"](300)
    assert orthogonality(L, R) <= BOUNDS["orthogonality"](300)


# ---- a cluster ----


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers(client):
    A = numbers((600, 20))
    a = da.from_array(A, chunks=(86, -1))
    found = dask.compute(*lazy.linalg_svd(a, full_matrices=False))
    with dask.config.set(scheduler="synchronous"):
        right = dask.compute(*lazy.linalg_svd(a, full_matrices=False))
    assert all(same(x, y) for x, y in zip(found, right, strict=True))
    d, e = make("chi", 300)
    assert residual(d, e, *dask.compute(*lazy.svd(d, e, chunks=50))) <= BOUNDS["residual"](300)


def slowly(block):
    time.sleep(0.3)
    return block


def test_a_worker_is_lost(client):
    A = numbers((600, 20))
    a = da.from_array(A, chunks=(50, -1)).map_blocks(slowly, dtype=A.dtype)
    victim = next(iter(client.run(os.getpid).values()))
    timer = threading.Timer(1.2, os.kill, (victim, 9))
    timer.start()
    U, S, Vh = dask.compute(*lazy.linalg_svd(a, full_matrices=False))
    timer.join()
    hold(A, U, S, Vh)
    a = da.from_array(A, chunks=(300, -1))  # the cluster goes on, also with steps that keep u
    assert np.allclose(lazy.linalg_svds(a, 2, return_singular_vectors=False), S[:2])


def test_importing_tsvd_does_not_import_dask():
    run("import sys, tsvd, tsvd.linalg; sys.exit('dask' in sys.modules)")
