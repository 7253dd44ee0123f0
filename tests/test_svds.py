"""tsvd.linalg.svds: the largest triplets of arrays, sparse matrices and objects, and its check."""

import itertools
import math
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from testing.measures import PARTIAL_BOUND, partial_errors
from testing.ranks import numbers
from tsvd import _operators, linalg

DTYPES = ("float32", "float64", "complex64", "complex128")


def with_values(shape, s, dtype="float64", seed=0):
    wide = "complex128" if "complex" in dtype else "float64"
    U, V = (np.linalg.qr(numbers((n, len(s)), wide, [seed, i]))[0] for i, n in enumerate(shape, 1))
    return (U * s @ V.conj().T).astype(dtype)


class Products:
    """No more than what svds asks for."""

    def __init__(self, A):
        self.A, self.shape = A, A.shape

    def matvec(self, v):
        return self.A @ v

    def rmatvec(self, u):
        return self.A.conj().T @ u


class Blocks:
    def __init__(self, A):
        self.A, self.shape, self.dtype = A, A.shape, A.dtype

    def matmat(self, X):
        return self.A @ X

    def rmatmat(self, X):
        return self.A.conj().T @ X


class Steps(Blocks):
    """Keeps u itself; counts its steps."""

    u, steps = None, 0

    def step(self, v, gamma):
        self.steps += 1
        self.u = self.A @ v - (gamma * self.u if gamma else 0)
        return np.vdot(self.u, self.u).real, self.A.conj().T @ self.u


KINDS = {
    "array": np.array,
    "columns": np.asfortranarray,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "coo_array": sparse.coo_array,
    "operator": aslinearoperator,
    "products": Products,
    "blocks": Blocks,
    "steps": Steps,
}


def check(A, k, called=None, **options):
    """The result and how it was found, after all that must hold of it."""
    result, info = linalg.svds(A if called is None else called, k, full_output=True, **options)
    U, s, Vh = result
    (m, n), real = A.shape, A.real.dtype
    assert U.shape == (m, k) and s.shape == (k,) and Vh.shape == (k, n)
    assert U.dtype == Vh.dtype == A.dtype and s.dtype == real
    assert (np.diff(s) <= 0).all() and (s >= 0).all()
    for measure, error in partial_errors(A, U, s, Vh).items():
        assert error <= PARTIAL_BOUND, measure
    largest = np.take_along_axis(U, abs(U).argmax(0)[None], 0)[0]
    assert (largest.real > 0).all() and (abs(largest.imag) <= 1e-6 * abs(largest)).all()
    return result, info


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 200), (200, 300), (250, 250)])
def test_every_kind_of_matrix(kind, dtype, shape):
    if kind == "products" and dtype not in ("float64", "complex128"):
        pytest.skip("it does not say its precision")
    A = numbers(shape, dtype)
    _, info = check(A, 5, KINDS[kind](A))
    assert info.method == "krylov" and info.check == "probabilistic" and info.repaired == 0
    assert info.steps <= info.reads and 0 < info.eta < 0.1 and info.failure == 1e-3


def test_an_object_with_a_step_is_read_once_for_each():
    called = Steps(numbers((300, 200)))
    _, info = linalg.svds(called, 5, full_output=True)
    assert called.steps == info.steps and info.reads - info.steps in range(2, 12, 2)
    wide = Steps(numbers((200, 300)))
    linalg.svds(wide, 5)
    assert wide.steps == 0


@pytest.mark.parametrize("which", ["LM", "SM"])
def test_many_values_of_a_dense_matrix_come_from_all(which):
    A = numbers((120, 110))
    for k in (6, 50, 110):
        U, s, Vh = linalg.svds(A, k, which=which)
        S = np.linalg.svd(A, compute_uv=False)
        assert np.allclose(s, S[:k] if which == "LM" else S[110 - k :])
        assert np.allclose(A @ Vh.T, U * s)
    assert linalg.svds(A, 50, full_output=True)[1].check == "all values"


@pytest.mark.parametrize("kind", ["csr_matrix", "products", "steps"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (3, 40), (40, 3)])
def test_every_k_of_small_matrices(kind, shape):
    A = numbers(shape)
    for k in range(1, min(shape) + 1):
        check(A, k, KINDS[kind](A))


@pytest.mark.parametrize("kind", ["array", "csr_matrix", "steps"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [0, 1, 3, 40])
def test_deficient_ranks(kind, dtype, rank):
    """Values of zero have orthonormal vectors on both sides."""
    A = with_values((200, 150), np.linspace(2, 1, rank), dtype)
    for k in (1, 3, 7):
        check(A, k, KINDS[kind](A))
    check(A.T.copy(), 7, KINDS[kind](A.T.copy()))


SPECTRA = {
    "steep": np.logspace(0, -14, 200),
    "harmonic": 1 / np.arange(1.0, 201),
    "equal": np.ones(200),
    "pairs": np.repeat(np.linspace(2, 1, 100), 2),
    "one huge": np.r_[1e10, np.linspace(0.9, 0.1, 199)],
    **{
        f"bulk of {bulk}": np.r_[np.linspace(2, 1, 10), np.linspace(1, 0.5, 190) * bulk]
        for bulk in (1e-2, 1e-4, 1e-8, 1e-12)
    },
    "clusters": np.r_[1, 1, 1, 1 - 1e-9, 1 - 1e-9, 1 - 1e-6, 1 - 1e-4, np.linspace(0.9, 0.1, 193)],
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("k", [1, 5, 20, 40])
def test_spectra(name, k):
    A = with_values((240, 200), SPECTRA[name])
    check(A, k, sparse.csr_array(A))
    check(A, k, Products(A))


def test_restarts():
    """Many, as the values of a path are close; and those of an object, whose basis is short."""
    n = 2000
    A = sparse.diags_array([np.full(n, 2.0), np.full(n - 1, -1.0), np.full(n - 1, -1.0)],
                           offsets=[0, 1, -1])  # fmt: skip
    exact = 2 - 2 * np.cos(np.arange(n, n - 4, -1) * np.pi / (n + 1))
    s, info = linalg.svds(A, 4, return_singular_vectors=False, full_output=True)
    eps = np.finfo(float).eps
    assert info.restarts > 3 and abs(s - exact).max() <= PARTIAL_BOUND * eps * exact[0]
    assert info.residuals.max() <= PARTIAL_BOUND * eps * exact[0]


# ---- nothing is missed ----


def test_copies_of_every_value():
    """Five equal blocks: 30 starts find the ten largest values, of which ARPACK misses some in
    about half of the starts."""
    G = numbers((240, 120))
    A = sparse.kron(sparse.eye_array(5), G).tocsr()
    exact = np.repeat(linalg.svdvals(G), 5)[:10]
    repaired = 0
    for seed in range(30):
        s, info = linalg.svds(A, 10, rng=seed, return_singular_vectors=False, full_output=True)
        assert abs(s - exact).max() <= PARTIAL_BOUND * np.finfo(float).eps * exact[0]
        repaired += info.repaired
    assert repaired > 0  # otherwise nothing of this tests the check
    missing = [linalg.svds(A, 10, rng=seed, check="none").S for seed in range(12)]
    assert any(abs(s - exact).max() > 1e-3 for s in missing)


def graph(components, largest, seed=0):
    """The normalised adjacency of a graph with so many components, each with an odd circle."""
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(components):
        n = int(rng.integers(5, largest))
        i, j = rng.integers(0, n, (2, 4 * n))
        edges = [(i, j), (np.arange(n - 1), np.arange(1, n)), ([0], [2])]
        i, j = (np.concatenate(ends) for ends in zip(*edges, strict=True))
        W = sparse.coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()
        W = ((W + W.T) > 0).astype(float)
        scale = sparse.diags_array(1 / np.sqrt(W.sum(axis=1)))
        blocks.append(scale @ W @ scale)
    return sparse.block_diag(blocks, format="csr")


def test_components_of_a_graph():
    """The largest value is 1, once for each component."""
    s = linalg.svds(graph(30, 200), 32, return_singular_vectors=False)
    assert abs(s[:30] - 1).max() <= PARTIAL_BOUND * np.finfo(float).eps and s[30] < 0.9999


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_start_that_misses(dtype):
    """v0 is orthogonal to the largest vectors."""
    d = np.concatenate([[9, 8, 7], np.linspace(2, 1, 197)])
    A, v0 = np.diag(d).astype(dtype), np.ones(200, dtype)
    v0[:3] = 0
    for options in ({}, {"check": "cholesky"}):
        result, info = check(A, 5, v0=v0, **options)
        assert info.repaired >= 3 and np.allclose(result.S, d[:5])
    short = linalg.svds(A, 5, v0=v0, check="none").S
    assert short[0] < 2.1


def test_cholesky_certifies():
    A = numbers((300, 200))
    _, info = check(A, 5, check="cholesky")
    assert info.check == "cholesky" and info.failure == 0 and 0 < info.eta < 1e-5
    _, info = check(A.astype("float32"), 5, check="cholesky")
    assert info.eta < 1e-2
    low = with_values((300, 200), [3.0, 2.0, 1.0])
    with pytest.raises(np.linalg.LinAlgError, match="Cholesky"):
        linalg.svds(low, 5, check="cholesky")


# ---- options ----


def test_the_same_bits():
    A = sparse.random_array((400, 300), density=0.05, rng=np.random.default_rng(0)).tocsr()
    first, again = linalg.svds(A, 7), linalg.svds(A, 7)
    for x, y, z in zip(first, again, linalg.svds(A, 7, rng=0), strict=True):
        assert x.tobytes() == y.tobytes() == z.tobytes()
    other = linalg.svds(A, 7, rng=1)
    assert other.U.tobytes() != first.U.tobytes() and np.allclose(other.S, first.S)
    rng = np.random.default_rng(5)
    assert np.allclose(linalg.svds(A, 7, rng=rng).S, first.S)


def test_which_vectors_are_returned():
    A = sparse.csr_array(numbers((200, 150)))
    U, s, Vh = linalg.svds(A, 3)
    assert isinstance(linalg.svds(A, 3), linalg.SVDResult)
    assert np.array_equal(linalg.svds(A, 3, return_singular_vectors=False), s)
    left, both, right = linalg.svds(A, 3, return_singular_vectors="u")
    assert np.array_equal(left, U) and np.array_equal(both, s) and right is None
    left, _, right = linalg.svds(A, 3, return_singular_vectors="vh")
    assert left is None and np.array_equal(right, Vh)


def test_a_looser_tolerance():
    A = numbers((600, 400))
    full = linalg.svds(A, 5, full_output=True)[1]
    for tol in (1e-3, 1e-6, 1e-10):
        result, info = linalg.svds(A, 5, tol=tol, full_output=True)
        assert info.steps < full.steps
        left = np.linalg.norm(A @ result.Vh.T - result.U * result.S, axis=0)
        right = np.linalg.norm(A.T @ result.U - result.Vh.T * result.S, axis=0)
        assert max(left.max(), right.max()) <= 1.01 * tol * result.S[0]


def test_start_vectors():
    for shape in ((300, 200), (200, 300)):
        A = numbers(shape, "complex128")
        U, _, Vh = linalg.svds(A, 1)
        near = Vh[0].conj() if shape[0] > shape[1] else U[:, 0]
        _, info = check(A, 1, sparse.csr_array(A), v0=near)
        _, without = check(A, 1, sparse.csr_array(A))
        assert info.steps <= without.steps


@pytest.mark.parametrize("kind", ["array", "csr_matrix", "products"])
@pytest.mark.parametrize("shape", [(300, 200), (200, 300)])
def test_centred(kind, shape):
    A = numbers(shape) + np.linspace(0, 3, shape[1])
    centred = A - A.mean(0)
    for center in (True, A.mean(0), A.mean(0)[None]):
        U, s, Vh = linalg.svds(KINDS[kind](A), 4, center=center)
        assert np.allclose(s, linalg.svdvals(centred)[:4], rtol=1e-13)
        assert np.allclose(centred @ Vh.T, U * s, atol=1e-11)
    s = linalg.svds(A[:50, :40], 30, center=True, return_singular_vectors=False)
    assert np.allclose(s, np.linalg.svd(A[:50, :40] - A[:50, :40].mean(0))[1][:30])


@pytest.mark.parametrize("kind", ["array", "csr_matrix", "products", "steps"])
def test_tiny_and_huge_entries(kind):
    for dtype, powers in (("float64", (-1040, -600, 600, 1010)), ("float32", (-135, -70, 70, 118))):
        if kind == "products" and dtype == "float32":
            continue
        A = numbers((200, 150), dtype)
        expected = linalg.svdvals(A)[:5]
        for power in powers:
            part = np.ldexp(A, power)
            subnormal = abs(part).max() < np.finfo(dtype).tiny * 2**20
            s = linalg.svds(KINDS[kind](part), 5, return_singular_vectors=False)
            error = abs(np.ldexp(s, -power) - expected).max() / expected[0]
            assert error <= (1e-2 if subnormal else PARTIAL_BOUND * np.finfo(dtype).eps)


def test_large_arrays_are_read_in_slabs(monkeypatch):
    """Each step reads them once."""
    monkeypatch.setattr(_operators, "_CACHE", 0)
    monkeypatch.setattr(_operators, "_SLAB", 1 << 16)
    for dtype, shape in itertools.product(DTYPES, ((300, 200), (200, 300))):
        A = numbers(shape, dtype)
        _, info = check(A, 5)
        assert info.reads - info.steps in range(2, 12, 2)


def test_rows_and_columns_with_very_many_entries():
    """Of a star: SciPy's sums of so many numbers would err by more than the residuals may be."""
    n = 20_000
    hub = sparse.coo_array((np.ones(n - 1), (np.zeros(n - 1, int), np.arange(1, n))), shape=(n, n))
    rest = sparse.random_array((n, n), density=2e-4, rng=np.random.default_rng(0))
    for A in (hub + rest, (hub + hub.T + rest).tocsr(), (hub.T * 1j + rest).tocsr()):
        (U, s, Vh), info = linalg.svds(A, 5, full_output=True)
        eps = np.finfo(float).eps
        assert info.residuals.max() <= PARTIAL_BOUND * eps * s[0]
        wide = A.astype(np.clongdouble)
        side = wide.conj().T @ U.astype(np.clongdouble) - Vh.conj().T * s
        assert np.linalg.norm(side.astype(complex), axis=0).max() <= PARTIAL_BOUND * eps * s[0]


def test_integers():
    A = np.arange(200 * 150).reshape(200, 150) % 7
    for called in (A, sparse.csr_array(A), sparse.csr_array(A).astype(bool), aslinearoperator(A)):
        s = linalg.svds(called, 3, return_singular_vectors=False)
        dense = called.toarray() if sparse.issparse(called) else A
        assert s.dtype == "float64" and np.allclose(s, np.linalg.svd(dense)[1][:3])


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_nothing(shape):
    for called in (np.zeros(shape), sparse.csr_array(shape), Products(np.zeros(shape))):
        U, s, Vh = linalg.svds(called, 0)
        assert (U.shape, s.shape, Vh.shape) == ((shape[0], 0), (0,), (0, shape[1]))
        with pytest.raises(ValueError, match="k must be from 0 to 0"):
            linalg.svds(called)


# ---- arrays of other libraries ----


@pytest.mark.parametrize("library", ["torch", "jax", pytest.param("cupy", marks=pytest.mark.cuda)])
def test_arrays_of_a_library(library):
    module = pytest.importorskip(library)
    A = numbers((300, 200))
    if library == "jax":
        module.config.update("jax_enable_x64", True)
        given = module.numpy.asarray(A)
    else:
        given = module.from_numpy(A) if library == "torch" else module.asarray(A)
    for k, center in itertools.product((3, 50), (None, True)):
        found = linalg.svds(given, k, center=center)
        expected = linalg.svds(A, k, center=center)
        for x, y in zip(found, expected, strict=True):
            assert type(x) is type(given)
            host = x.get() if library == "cupy" else np.asarray(x)
            assert np.allclose(host, y, rtol=0, atol=1e-8)


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_a_tensor_on_a_device():
    torch = pytest.importorskip("torch")
    A = numbers((600, 400))
    U, s, Vh = linalg.svds(torch.from_numpy(A).cuda(), 5, center=True)
    assert U.is_cuda and s.is_cuda and Vh.is_cuda
    assert np.allclose(s.cpu(), linalg.svdvals(A - A.mean(0))[:5])
    with pytest.raises(TypeError, match="sparse array of torch"):
        linalg.svds(torch.eye(5).cuda().to_sparse())


def test_sparse_arrays_of_others_are_refused():
    torch = pytest.importorskip("torch")
    for given in (torch.eye(9).to_sparse(), torch.eye(9).to_sparse_coo()):
        with pytest.raises(TypeError, match=r"sparse array of torch.*scipy\.sparse"):
            linalg.svds(given, 2)


# ---- what is refused ----


WRONG = [
    ({"k": 0}, ValueError, "k must be from 1 to 150"),
    ({"k": -1}, ValueError, "k must be from 1 to 150"),
    ({"k": 151}, ValueError, "k must be from 1 to 150"),
    ({"k": 2.5}, TypeError, "k must be an integer"),
    ({"k": True}, TypeError, "k must be an integer"),
    ({"which": "SA"}, ValueError, "'LM' or 'SM'"),
    ({"tol": -1e-9}, ValueError, "tol"),
    ({"tol": math.nan}, ValueError, "tol"),
    ({"tol": 1}, ValueError, "tol"),
    ({"maxiter": 0}, ValueError, "maxiter"),
    ({"maxiter": 9}, np.linalg.LinAlgError, "9 steps"),
    ({"rng": "x"}, TypeError, "rng"),
    ({"check": "x"}, ValueError, "check"),
    ({"return_singular_vectors": "x"}, ValueError, "return_singular_vectors"),
    ({"v0": np.ones(151)}, ValueError, r"shape \(150,\)"),
    ({"v0": np.zeros(150)}, ValueError, "zero"),
    ({"v0": np.full(150, math.nan)}, ValueError, "NaN"),
    ({"v0": np.full(150, 1j)}, TypeError, "complex"),
    ({"center": np.ones(200)}, ValueError, "center"),
    ({"center": np.full(150, math.inf)}, ValueError, "center"),
    ({"solver": "arpack"}, TypeError, "solver"),
]


@pytest.mark.parametrize("kind", ["array", "csr_matrix", "products"])
@pytest.mark.parametrize(("options", "error", "text"), WRONG, ids=lambda x: str(x)[:30])
def test_wrong_arguments(kind, options, error, text):
    with pytest.raises(error, match=text):
        linalg.svds(KINDS[kind](numbers((200, 150))), **options)


def test_what_only_dense_arrays_have():
    for kind in ("csr_matrix", "products"):
        A = KINDS[kind](numbers((200, 150)))
        with pytest.raises(ValueError, match=r'which="SM".*toarray'):
            linalg.svds(A, which="SM")
        with pytest.raises(ValueError, match='check="cholesky" takes dense'):
            linalg.svds(A, check="cholesky")


def test_wrong_matrices():
    good = numbers((200, 150))
    for value in (math.nan, math.inf):
        bad = good.copy()
        bad[3, 4] = value
        for kind in ("array", "csr_matrix"):
            with pytest.raises(ValueError, match="NaN or infinity"):
                linalg.svds(KINDS[kind](bad))
        for kind in ("operator", "products", "steps"):
            with (
                np.errstate(invalid="ignore"),
                pytest.raises(np.linalg.LinAlgError, match="NaN or infinity"),
            ):
                linalg.svds(KINDS[kind](bad))
    for bad in (good[0], good[None], np.ones((3, 3), "float16"), "text", None):
        with pytest.raises((TypeError, ValueError)):
            linalg.svds(bad, 1)
    for bad in (np.ma.masked_array(good), sparse.csr_array(good).astype(np.longdouble)):
        with pytest.raises(TypeError):
            linalg.svds(bad, 1)
    half = type("Half", (), {"shape": (9, 9), "matvec": lambda self, v: v})()
    with pytest.raises(TypeError, match="neither rmatvec nor rmatmat"):
        linalg.svds(half, 1)


def test_products_of_a_wrong_kind():
    A = numbers((200, 150))

    class Wrong(Products):
        def rmatvec(self, u):
            return self.wrong(self.A.T @ u)

    for wrong, error, text in (
        (lambda y: y[:-1], ValueError, r"shape \(149,\)"),
        (lambda y: 1j * y, TypeError, "complex"),
        (lambda y: y * math.nan, np.linalg.LinAlgError, "NaN"),
        (lambda y: 1.1 * y, np.linalg.LinAlgError, "do not belong together"),
        (lambda y: 0 * y, np.linalg.LinAlgError, "do not belong together"),
    ):
        called = Wrong(A)
        called.wrong = wrong
        with pytest.raises(error, match=text):
            linalg.svds(called, 3)
    unconjugated = LinearOperator(
        A.shape, lambda v: (A + 1j * A[::-1]) @ v, lambda u: (A + 1j * A[::-1]).T @ u, dtype=complex
    )
    with pytest.raises(np.linalg.LinAlgError, match="do not belong together"):
        linalg.svds(unconjugated, 3)


@pytest.mark.parametrize("part", [1e-12, 1e-9, 1e-6, 1e-3, 1, 1e3])
def test_matrices_that_change(part):
    """Found by the residuals, or before; in no case an endless loop."""
    A, rng = numbers((300, 200)), np.random.default_rng(1)

    class Changing(Products):
        def matvec(self, v):
            return self.A @ v + part * rng.standard_normal(300)

    with pytest.raises(np.linalg.LinAlgError, match=r"change|belong"):
        linalg.svds(Changing(A), 3)

    class Once(Products):
        def matvec(self, v):
            self.left -= 1
            return (1 + part * (self.left < 0)) * (self.A @ v)

    for calls in (3, 30, 60):
        called = Once(A)
        called.left = calls
        with pytest.raises(np.linalg.LinAlgError, match=r"change|belong"):
            linalg.svds(called, 3)


@pytest.mark.slow
def test_an_interrupt_ends_it():
    program = (
        "import numpy as np, scipy.sparse as sparse, signal, threading, os\n"
        "from tsvd import linalg\n"
        "A = sparse.diags_array(np.linspace(1, 2, 300_000))\n"
        "threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "linalg.svds(A, 4)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGINT and b"KeyboardInterrupt" in done.stderr


def test_scipy_is_imported_only_where_it_is_needed():
    program = (
        "import sys, tsvd\n"
        "tsvd.linalg.svds\n"
        "assert 'scipy' not in sys.modules\n"
        "tsvd.linalg.svds([[3.0, 0.0], [0.0, 2.0]], 1)\n"
        "assert 'scipy.sparse' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((2000, 1000), "float64"), ((300, 200), "float32"), ((600, 300), "complex128")],
)
def test_equal_entries(shape, dtype):
    """Stars, arrows and ones: all rounding errors of the sums of a product have one sign."""
    m, n = shape
    eps = np.finfo(dtype).eps
    arrow = np.zeros(shape, dtype)
    arrow[0], arrow[:, 0] = 1, 1
    star = arrow.copy()
    star[0, 0] = 0
    for A in (arrow, star, np.ones(shape, dtype)):
        exact = np.linalg.svd(A.astype(complex).real, compute_uv=False)
        for k in (1, 2, 3):
            U, s, Vh = linalg.svds(sparse.csr_array(A), k)
            assert np.allclose(s, exact[:k], rtol=0, atol=max(m, n) * eps * exact[0])
            for X in (U, Vh.conj().T):
                assert abs(X.conj().T @ X - np.eye(k)).max() <= 100 * eps


def test_centred_columns_that_are_constant():
    row = np.random.default_rng(0).random(20)
    for A in (np.ones((30, 20)), np.tile(row, (64, 1))):
        s = linalg.svds(sparse.csr_array(A), 1, center=True)[1]
        assert s[0] <= 1e-13
