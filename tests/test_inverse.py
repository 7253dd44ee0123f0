"""tsvd.linalg.inv: accuracy on every device, shapes, layouts, errors, warnings, arguments."""

import time
import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning, hilbert, lu

from testing.dense_families import make, prime_toeplitz
from testing.dense_layouts import LAYOUTS
from testing.measures import INVERSE_BOUNDS, inverse_residual
from testing.processes import run
from tsvd import linalg

every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["f64", "f32"])
refined = pytest.mark.parametrize("refine", [False, True], ids=["plain", "refined"])

# Around the sizes of groups of lanes, and of what has a block of its own; the last has panels.
SIZES = [1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 128, 129, 160]


def _powers(n, dtype):
    reach = 140 if dtype == np.float64 else 15
    return 10.0 ** np.linspace(-reach, reach, n)


def _needs_every_pivot(n):
    """Ones in a cycle with a little of all else: no diagonal entry can be a pivot."""
    return np.roll(np.eye(n), 1, axis=0) + 0.01 * np.tri(n, k=-1)


FAMILIES = {
    "gaussian": lambda n, dtype, rng: rng.standard_normal((n, n)),
    "orthogonal": lambda n, dtype, rng: np.linalg.qr(rng.standard_normal((n, n)))[0],
    "prime toeplitz": lambda n, dtype, rng: prime_toeplitz(n),
    "graded rows": lambda n, dtype, rng: _powers(n, dtype)[:, None] * rng.standard_normal((n, n)),
    "graded columns": lambda n, dtype, rng: rng.standard_normal((n, n)) * _powers(n, dtype),
    "graded both": lambda n, dtype, rng: (
        np.sqrt(_powers(n, dtype))[:, None]
        * rng.standard_normal((n, n))
        * np.sqrt(_powers(n, dtype))[::-1]
    ),
    "permutation": lambda n, dtype, rng: np.eye(n)[rng.permutation(n)],
    "every pivot": lambda n, dtype, rng: _needs_every_pivot(n),
    "triangular": lambda n, dtype, rng: np.eye(n) + np.tril(rng.standard_normal((n, n)), -1) / 4,
    "condition 1e4": lambda n, dtype, rng: (
        (np.linalg.qr(rng.standard_normal((n, n)))[0] * np.geomspace(1, 1e-4, n))
        @ np.linalg.qr(rng.standard_normal((n, n)))[0]
    ),
    "small": lambda n, dtype, rng: rng.standard_normal((n, n)) * np.finfo(dtype).tiny * 2.0**24,
    "large": lambda n, dtype, rng: rng.uniform(-1, 1, (n, n)) * np.finfo(dtype).max,
}


def _inverse(A, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of conditions, which some families have
        return linalg.inv(A, **options)


@every_dtype
@refined
@pytest.mark.parametrize("family", FAMILIES)
def test_residual(family, refine, dtype, device):
    for n in SIZES:
        A = FAMILIES[family](n, dtype, np.random.default_rng(n)).astype(dtype)
        X = _inverse(A, refine=refine, device=device)
        assert X.dtype == dtype and X.shape == A.shape and X.flags.c_contiguous
        assert inverse_residual(A, X) <= INVERSE_BOUNDS[refine], n


GROWTH = ["wright", "foster", "wilkinson", "wilkinson_random"]
GROWTH += ["wright_transposed", "foster_transposed", "wilkinson_random_transposed"]


@every_dtype
@refined
@pytest.mark.parametrize("family", GROWTH)
def test_pivots_that_grow(family, refine, dtype, device):
    """Well-conditioned matrices: few orders have no digits left by elimination. No warning."""
    for n in (1, 2, 3, 7, 16, 33, 64, 66, 128, 150, 302):
        A = make(family, n, n, dtype)
        rows, columns = 2.0 ** np.random.default_rng(n).integers(-20, 20, (2, n))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            X = linalg.inv(A, refine=refine, device=device)
        assert inverse_residual(A, X) <= INVERSE_BOUNDS[refine], n
        A = np.stack([A, rows[:, None] * A * columns, np.eye(n)]).astype(dtype)
        Y = _inverse(A, refine=refine, device=device)
        if device == "cpu" or not refine:  # cuBLAS may add up a single product in another order
            np.testing.assert_array_equal(Y[0], X)
        assert inverse_residual(A[0], Y[0]) <= INVERSE_BOUNDS[refine], n
        assert inverse_residual(A[1], Y[1]) <= INVERSE_BOUNDS[refine], n
        np.testing.assert_array_equal(Y[2], A[2])


@every_dtype
@pytest.mark.parametrize("n", [12, 40, 130])
def test_growth_on_both_sides_of_the_threshold(n, dtype, device):
    """Random L and U: with larger entries of L the last column of U grows more."""
    rng = np.random.default_rng(n)
    growths = []
    for reach in np.geomspace(0.01, 1, 25):
        L = np.eye(n) - reach * np.tril(rng.uniform(0.5, 0.95, (n, n)), -1)
        A = L @ (np.eye(n) + np.triu(rng.standard_normal((n, n)), 1) / (5 * np.sqrt(n)))
        A[:, -1] = rng.uniform(0.5, 1, n)
        growths.append(np.max(abs(lu(A, permute_l=True)[1])) / np.max(abs(A)))
        for B in (A.astype(dtype), A.T.astype(dtype)):
            X = _inverse(B, device=device)
            assert inverse_residual(B, X) <= INVERSE_BOUNDS[False], growths[-1]
    assert min(growths) < 4 and max(growths) > 8 * n
    assert np.count_nonzero(np.array(growths) < 4 * n) > 5


@refined
@pytest.mark.parametrize("n", [450, 600])
def test_large_matrices_whose_pivots_grow(n, refine, device):
    for family in GROWTH:
        A = make(family, n, n)
        X = linalg.inv(A, refine=refine, device=device)
        off = X @ A - np.eye(n)
        unit = n * np.finfo(float).eps * np.linalg.norm(A) * np.linalg.norm(X)
        assert np.linalg.norm(off) <= INVERSE_BOUNDS[refine] * unit, family


def test_growth_of_a_singular_matrix(device):
    """A row of zeros is found, whatever the pivots before it do."""
    for n in (40, 100):
        A = make("wilkinson_random", n, n)
        A[n // 2] = 0
        with pytest.raises(np.linalg.LinAlgError, match=r"^Singular matrix$"):
            linalg.inv(A, device=device)


@refined
def test_hilbert(refine, device):
    for n in range(1, 9):
        A = hilbert(n)
        assert inverse_residual(A, _inverse(A, refine=refine, device=device)) <= 2, n


@every_dtype
def test_refinement_gains_digits(dtype, device):
    """The forward error falls to that of rounding, where the condition takes digits."""
    rng = np.random.default_rng(5)
    for n in (6, 40, 150):
        U, V = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
        A = ((U * np.geomspace(1, 1e-3, n)) @ V).astype(dtype)
        exact = np.linalg.inv(A.astype(np.float64))
        if dtype == np.float64:  # a Newton step in long double
            rest = np.eye(n) - A.astype(np.longdouble) @ exact
            exact = exact + exact @ rest
        errors = [
            float(np.max(abs(_inverse(A, refine=refine, device=device) - exact)))
            for refine in (False, True)
        ]
        assert errors[1] <= 2 * np.finfo(dtype).eps * np.max(abs(exact)), n
        assert errors[1] < errors[0], n


def test_refinement_leaves_what_it_would_spoil(device):
    rng = np.random.default_rng(2)
    for n in (5, 60, 140):
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        A = (Q * np.geomspace(1, 1e-16, n)) @ Q
        assert inverse_residual(A, _inverse(A, refine=True, device=device)) <= 2, n


def test_refinement_leaves_graded_matrices_that_it_would_spoil(device):
    """The square of I - S Y is small for scaled S, but not in the scale of A."""
    A = [
        [-8.240145142413192e-05, -2.148366208687795e-14, 7.533186636623349e-05],
        [2.4449822414499665e-07, 1.2789834349602707e-15, -2.2352163984672388e-07],
        [-5.323373033303191e-05, -1.3879069534980395e-14, 4.8666573104192403e-05],
    ]
    for matrix in (np.array(A), np.array(A).T.copy()):
        assert inverse_residual(matrix, _inverse(matrix, refine=True, device=device)) <= 2
    rng = np.random.default_rng(3)
    for n in (5, 40, 140):
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        A = (Q * np.geomspace(1, 1e-15, n)) @ Q
        rows, columns = np.exp2(rng.integers(-40, 40, (2, n)))
        A = A * rows[:, None] * columns
        assert inverse_residual(A, _inverse(A, refine=True, device=device)) <= 2, n


@every_dtype
@refined
def test_batches_are_their_matrices(refine, dtype, device):
    rng = np.random.default_rng(0)
    for n, count in ((1, 40), (4, 1000), (8, 300), (17, 70), (32, 33), (64, 9), (130, 3)):
        A = rng.standard_normal((count, n, n)).astype(dtype)
        X = linalg.inv(A, refine=refine, device=device)
        for i in range(0, count, max(count // 7, 1)):
            one = linalg.inv(A[i], refine=refine, device=device)
            np.testing.assert_array_equal(X[i], one)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, device):
    for n in (3, 20, 70, 150):
        A = np.random.default_rng(n).standard_normal((2, n, n))
        X = linalg.inv(LAYOUTS[layout](A), device=device)
        np.testing.assert_array_equal(X, linalg.inv(A, device=device))


def test_the_input_stays(device):
    A = np.random.default_rng(3).standard_normal((2, 3, 9, 9))
    A.setflags(write=False)
    before = A.copy()
    X = linalg.inv(A, device=device)
    assert X.shape == A.shape
    np.testing.assert_array_equal(A, before)
    B = np.broadcast_to(A[0, 0], (4, 9, 9))
    np.testing.assert_array_equal(linalg.inv(B, device=device), np.broadcast_to(X[0, 0], B.shape))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (3, 0, 0), (2, 0, 5, 5)])
def test_empty(shape, device):
    for dtype in (np.float64, np.float32, np.int8):
        X = linalg.inv(np.zeros(shape, dtype), device=device)
        assert X.shape == shape and X.dtype == (np.float64 if dtype == np.int8 else dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int32, bool])
def test_integers_become_float64(dtype, device):
    A = np.array([[1, 1], [0, 1]], dtype)
    X = linalg.inv(A, device=device)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X, [[1, -1], [0, 1]])


def test_exact_results(device):
    X = linalg.inv([[2.0, 0], [4, 1]], device=device)
    np.testing.assert_array_equal(X, [[0.5, 0], [-2, 1]])
    P = np.eye(7)[[3, 0, 6, 1, 5, 2, 4]]
    np.testing.assert_array_equal(linalg.inv(P, device=device), P.T)


@every_dtype
def test_ends_of_the_range(dtype, device):
    """Infinity only where the inverse is above the largest number; small entries underflow."""
    info = np.finfo(dtype)
    big, least = float(info.max), float(info.smallest_subnormal)
    for n in (2, 40, 140):
        D = np.full(n, 2.0, dtype)
        D[0], D[-1] = big, least
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            X = linalg.inv(np.diag(D), device=device)
        assert X[0, 0] == dtype(1 / float(info.max)) and X[-1, -1] == np.inf
        assert np.all(np.diag(X)[1:-1] == 0.5)
        assert np.count_nonzero(X) == n and not np.isnan(X).any()


def _powers_of_two(n, dtype):
    """Triangular matrices whose inverses are powers of two, and their exponents; -1 for zeros."""
    i = np.arange(n, dtype=np.int32)
    far = i - i[:, None]
    step = (32 if n < 100 else 8) if dtype == np.float64 else (4 if n < 100 else 1)
    yield np.eye(n) - 2.0**step * np.eye(n, k=1), step * far, far >= 0
    if dtype == np.float32 and n >= 100:
        yield np.eye(n) - np.triu(np.ones((n, n)), 1), np.maximum(far - 1, 0), far >= 0


@every_dtype
@refined
@pytest.mark.parametrize("n", [40, 150])
def test_beyond_the_range(n, refine, dtype, device):
    """Entries that the dtype can hold are right, and the others infinite with their signs."""
    signs = np.where(np.arange(n) % 3 == 0, -1, 1).astype(dtype)
    for A, exponents, there in _powers_of_two(n, dtype):
        A = A.astype(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            X = np.where(there, np.ldexp(dtype(1), exponents), dtype(0))
            assert np.isinf(X).any()
            for B, Y in (
                (A, X),
                (A.T, X.T),
                (A[::-1], X[:, ::-1]),
                (signs[:, None] * A, np.where(there, X * signs, 0)),
            ):
                found = linalg.inv(B, refine=refine, device=device)
                np.testing.assert_array_equal(found, Y)
            # the inverse of the scaled matrix is beyond the range, and that of this one is not
            power = int(np.max(exponents)) // 2
            X = np.where(there, np.ldexp(dtype(1), exponents - power), dtype(0))
            found = linalg.inv(A * dtype(2.0**power), refine=refine, device=device)
            np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 20, 33, 100, 140])
def test_singular(n, device):
    singular = [np.zeros((n, n))]
    if n > 1:
        missing = np.random.default_rng(n).standard_normal((n, n))
        missing[n // 2] = 0
        singular += [np.ones((n, n)), missing, missing.T]
    for A in singular:
        with pytest.raises(np.linalg.LinAlgError, match=r"^Singular matrix$"):
            linalg.inv(A, device=device)
        B = np.stack([np.eye(n), np.eye(n), A, A])
        with pytest.raises(np.linalg.LinAlgError, match=r"^matrix 2 of the batch: Singular"):
            linalg.inv(B, device=device)


@every_dtype
def test_near_singular(dtype, device):
    A = np.array([[1, 1], [1, 1 + np.finfo(dtype).eps / 1]], dtype)
    with pytest.warns(LinAlgWarning, match=r"^Ill-conditioned matrix \(rcond=\d\.\d+e-"):
        linalg.inv(A, device=device)
    A = np.stack([np.eye(2), np.diag([1, 1e-30]), np.eye(2)]).astype(dtype)
    # a CUDA device keeps the first 20 bits
    rcond = "1e-30" if device == "cpu" else "9.99999e-31"
    expected = rf"^matrix 1 of the batch: .*rcond={rcond}\)"
    with pytest.warns(LinAlgWarning, match=expected) as caught:
        linalg.inv(A, device=device)
    assert caught[0].filename == __file__ and len(caught) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(bad, device):
    for n in (2, 40, 140):
        A = np.stack([np.eye(n)] * 3)
        A[1, n // 2, 1] = bad
        with pytest.raises(ValueError, match=r"^matrix 1 of the batch: a must not hold NaN"):
            linalg.inv(A, device=device)
        with pytest.raises(ValueError, match=r"^a must not hold NaN or infinity"):
            linalg.inv(A[1], device=device)
        X = linalg.inv(A, device=device, check_finite=False)
        assert np.isnan(X[1]).all()
        np.testing.assert_array_equal(X[[0, 2]], A[[0, 2]])


def test_wrong_arguments():
    eye = np.eye(2)
    for wrong in (1.0, [1.0, 2.0]):
        with pytest.raises(np.linalg.LinAlgError, match="must be at least two-dimensional"):
            linalg.inv(wrong)
    for shape in ((2, 3), (0, 2), (4, 3, 2)):
        with pytest.raises(np.linalg.LinAlgError, match="must be square"):
            linalg.inv(np.zeros(shape))
    for dtype in (np.clongdouble, np.float16, np.longdouble, object, "U3"):
        with pytest.raises(TypeError, match="a has dtype"):
            linalg.inv(eye.astype(dtype))
    with pytest.raises(TypeError, match="masked"):
        linalg.inv(np.ma.masked_array(eye))
    with pytest.raises(ValueError, match="unknown device"):
        linalg.inv(eye, device="gpu")
    with pytest.raises(TypeError):
        linalg.inv(eye, True)


def test_out(device):
    A = np.random.default_rng(1).standard_normal((3, 12, 12))
    out = np.empty_like(A)
    assert linalg.inv(A, out=out, device=device) is out
    np.testing.assert_array_equal(out, linalg.inv(A, device=device))
    for wrong, error, text in (
        (np.empty((12, 12)), ValueError, "out: X has shape"),
        (np.empty(A.shape, "f4"), TypeError, "out: X has dtype"),
        (np.empty((3, 12, 24))[..., ::2], ValueError, "C-contiguous"),
        (A, ValueError, "overlaps"),
        (5, TypeError, "NumPy array"),
        ((out,), TypeError, "NumPy array"),
    ):
        with pytest.raises(error, match=text):
            linalg.inv(A, out=wrong, device=device)


def test_subclasses_and_progress(device):
    class Own(np.ndarray):
        pass

    X = linalg.inv(np.diag([2.0, 4]).view(Own), device=device)
    assert type(X) is Own and X[1, 1] == 0.25
    told = []
    linalg.inv(np.eye(150), progress=told.append, device=device)
    assert told[-1] == 1 and told == sorted(told)

    def stop(done):
        raise KeyError(done)

    with pytest.raises(KeyError):
        linalg.inv(np.eye(3), progress=stop, device=device)


def test_same_bits_again(device):
    for n in (5, 32, 100, 200):
        A = np.random.default_rng(n).standard_normal((2, n, n))
        np.testing.assert_array_equal(linalg.inv(A, device=device), linalg.inv(A, device=device))


def test_the_number_of_threads_changes_no_bit():
    """Neither that of tsvd nor that of the BLAS: plain, refined, by QR, and in long double."""
    program = """
import hashlib, warnings
import numpy as np
from tsvd import linalg

warnings.simplefilter("ignore", RuntimeWarning)
bits = hashlib.sha256()
for dtype in ("f8", "f4"):
    for n in (64, 129, 200, 330, 520, 700):
        A = np.random.default_rng(n).standard_normal((n, n)).astype(dtype)
        bits.update(linalg.inv(A, device="cpu").tobytes())
        bits.update(linalg.inv(A, refine=True, device="cpu").tobytes())
    A = np.eye(330, dtype=dtype) - np.tril(np.ones((330, 330), dtype), -1)
    beyond = linalg.inv(A.T, device="cpu")
    A[:, -1] = 1
    bits.update(beyond.tobytes() + linalg.inv(A, device="cpu").tobytes())
    bits.update(linalg.inv(A.T, device="cpu").tobytes())
    A = np.random.default_rng(3).standard_normal((50, 40, 40)).astype(dtype)
    bits.update(linalg.inv(A, device="cpu").tobytes())
print(bits.hexdigest())
"""
    found = [
        run(program, under=("env", f"OMP_NUM_THREADS={k}", f"OPENBLAS_NUM_THREADS={blas}"))
        for k, blas in ((1, 1), (2, 2), (4, 1))
    ]
    assert found[0] == found[1] == found[2]


def test_forks_beside_it():
    """The children compute, and the threads of the parent go on."""
    program = """
import os, signal, threading, time, warnings
import numpy as np
from tsvd import linalg

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of fork with threads
signal.alarm(50)
A = np.random.default_rng(0).standard_normal((200, 200))
counts, stop = [0] * 3, []

def work(i):
    while not stop:
        linalg.inv(A, device="cpu")
        counts[i] += 1

linalg.inv(A, device="cpu")
threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for thread in threads:
    thread.start()
for _ in range(15):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        linalg.inv(A, device="cpu")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
before = list(counts)
while any(a == b for a, b in zip(before, counts)):
    time.sleep(0.01)
stop.append(1)
for thread in threads:
    thread.join()
"""
    run(program)


def test_threads_with_small_stacks():
    program = """
import threading
import numpy as np
from tsvd import linalg

done = []

def work():
    for n in (3, 50, 200):
        A = np.random.default_rng(n).standard_normal((n, n))
        linalg.inv(A, device="cpu")
        linalg.inv(A, refine=True, device="cpu")
        A = np.eye(n) - np.tril(np.ones((n, n)), -1)
        A[:, -1] = 1
        linalg.inv(A.T, device="cpu")
    done.append(1)

linalg.inv(np.eye(2), device="cpu")  # imports SciPy
threading.stack_size(65536)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert done
"""
    run(program)


@pytest.mark.slow
@refined
def test_ctrl_c_is_asked_for_often(refine):
    """In seconds of the calling thread, so that other processes do not count."""
    A = np.random.default_rng(0).standard_normal((3500, 3500))
    last, longest = [time.thread_time()], [0.0]

    def progress(done):
        longest.append(time.thread_time() - last[0])
        last[0] = time.thread_time()

    linalg.inv(A, refine=refine, progress=progress, device="cpu")
    assert max(longest) < 0.5


@pytest.mark.cuda
def test_device_arrays(cuda):
    """Arrays of a GPU with any strides, and `out` there."""
    torch = pytest.importorskip("torch")
    for n in (3, 32, 70, 200):
        A = torch.randn(2, n, n, dtype=torch.float64, device="cuda")
        X = linalg.inv(A)
        assert X.device == A.device and X.shape == A.shape
        for i in range(2):
            residual = inverse_residual(A[i].cpu().numpy(), X[i].cpu().numpy())
            assert residual <= INVERSE_BOUNDS[False]
        assert torch.equal(linalg.inv(A.mT.contiguous().mT), X)
        out = torch.empty_like(A)
        assert linalg.inv(A, out=out) is out and torch.equal(out, X)
        refined_there = linalg.inv(A, refine=True)
        residual = inverse_residual(A[0].cpu().numpy(), refined_there[0].cpu().numpy())
        assert residual <= INVERSE_BOUNDS[True]
        A[1] = 0
        with pytest.raises(np.linalg.LinAlgError, match="matrix 1 of the batch"):
            linalg.inv(A)


@every_dtype
@pytest.mark.cuda
def test_read_where_they_lie(dtype, cuda):
    """Small matrices in order are not copied first. The results are those of a copy."""
    torch = pytest.importorskip("torch")
    for n in (size for size in SIZES if size <= 128):
        rng = np.random.default_rng(n)
        A = np.stack([family(n, dtype, rng).astype(dtype) for family in FAMILIES.values()])
        A = np.concatenate([A, A[:1], A[:1]])
        A[-2, n // 2, 0] = np.nan
        A[-1, 0, n // 2] = np.inf
        X = _inverse(torch.from_numpy(A).cuda(), check_finite=False).cpu().numpy()
        np.testing.assert_array_equal(X, _inverse(A, check_finite=False, device="cuda"))
        assert np.isnan(X[-2:]).all()
        with pytest.raises(ValueError, match=f"^matrix {len(A) - 2} of the batch: a must not"):
            linalg.inv(torch.from_numpy(A).cuda())


@pytest.mark.cuda
@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_many_tiny_matrices(n, cuda):
    """More than the threads of one launch."""
    torch = pytest.importorskip("torch")
    count = 1_100_000 if n < 5 else 300_000
    A = 2 * torch.eye(n, device="cuda") + torch.rand(count, n, n, device="cuda") / (2 * n)
    off = A @ linalg.inv(A) - torch.eye(n, device="cuda")
    assert off.abs().max().item() <= 1e-5
    A[-1] = 0
    with pytest.raises(np.linalg.LinAlgError, match=f"^matrix {count - 1} of the batch: Singular"):
        linalg.inv(A)


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:Ill-conditioned")
@pytest.mark.parametrize("n", [2080, 9000, 16_500])
def test_panels(n, cuda):
    """Panels of each width, and of all multiprocessors; checked by a product there."""
    torch = pytest.importorskip("torch")
    if torch.cuda.mem_get_info()[0] < 48 * n**2:
        pytest.skip("too little memory on the device")
    for dtype in (torch.float64, torch.float32):
        A = torch.randn(n, n, dtype=dtype, device="cuda")
        X = linalg.inv(A)
        off = A.double() @ X.double()
        off.diagonal().sub_(1)
        unit = n * torch.finfo(dtype).eps * A.double().norm() * X.double().norm()
        assert (off.norm() / unit).item() <= INVERSE_BOUNDS[False]


def _cut_families(torch, n):
    """Matrices of order n of float32 on the device, each as make() -> A."""
    torch.manual_seed(n)

    def random():
        return torch.randn(n, n, device="cuda")

    def graded(reach):
        return torch.logspace(-reach, reach, n, device="cuda")

    def orthogonal():
        return torch.linalg.qr(random())[0]

    return {
        "orthogonal": orthogonal,
        "condition 1e4": lambda: (
            orthogonal() * torch.logspace(0, -4, n, device="cuda") @ orthogonal()
        ),
        "graded both": lambda: graded(7)[:, None] * random() * graded(7).flip(0),
        "permutation": lambda: torch.eye(n, device="cuda")[torch.randperm(n, device="cuda")],
        "every pivot": lambda: torch.from_numpy(_needs_every_pivot(n)).float().cuda(),
        "small": lambda: random() * np.finfo(np.float32).tiny * 2.0**24,
        "large": lambda: (2 * torch.rand(n, n, device="cuda") - 1) * np.finfo(np.float32).max,
    }


@pytest.mark.cuda
@refined
@pytest.mark.filterwarnings("ignore:Ill-conditioned")
@pytest.mark.parametrize("n", [4099, 8200])
def test_numbers_in_two_parts(n, refine, cuda):
    """float32 that tensor cores multiply in parts; checked by products in float64 there.

    The last block of order 4099 has three columns, whose numbers are in one part.
    """
    torch = pytest.importorskip("torch")
    if torch.cuda.mem_get_info()[0] < 80 * n**2:
        pytest.skip("too little memory on the device")
    for name, family in _cut_families(torch, n).items():
        A = family()
        X = linalg.inv(A, refine=refine)
        if name == "permutation":
            assert torch.equal(X, A.T)
            continue
        A, X = A.double(), X.double()
        off = []
        for product in (A @ X, X @ A):
            product.diagonal().sub_(1)
            off.append(product.norm())
        unit = n * np.finfo(np.float32).eps * A.norm() * X.norm()
        assert (min(off) / unit).item() <= INVERSE_BOUNDS[refine], name


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:.*Ill-conditioned")
def test_parts_of_large_numbers(cuda):
    """Entries of the inverse up to 2^124, all of them exact, of two matrices."""
    torch = pytest.importorskip("torch")
    n, at = 4100, slice(131, 256)
    A, expected = torch.eye(n, device="cuda"), torch.eye(n, device="cuda")
    k = torch.arange(at.stop - at.start, device="cuda", dtype=torch.float64)
    powers = k[None, :] - k[:, None]
    A[at, at] += 2 * torch.diag(torch.ones(len(k) - 1, device="cuda"), 1)
    expected[at, at] = torch.where(powers >= 0, (-2.0) ** powers.abs(), 0).float()
    for X in linalg.inv(torch.stack([A, A])):
        assert torch.equal(X, expected)


@pytest.mark.parametrize("n", [30, 120, 160, 300])
def test_growth_that_overflows(n, device):
    """Rows grow by 2 in each step until inf - inf is among them. All of X is written even so."""
    A = np.eye(n, dtype=np.float32) - np.tril(np.ones((n, n), np.float32), -1)
    A[:, -1] = 1
    A[-1, n - 25 : -1] = 1
    out = np.full((n, n), 7, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        X = linalg.inv(A, out=out, device=device)
        again = linalg.inv(A, device=device)
    assert X is out and not (X == 7).any()
    np.testing.assert_array_equal(X, again)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32, np.complex64])
@pytest.mark.parametrize("n", [2, 3, 5, 8, 9, 40, 150])
def test_a_condition_that_overflows(n, dtype, device):
    diagonal = np.ones(n, dtype)
    diagonal[:2] = (1e200, 1e-150) if np.finfo(dtype).bits == 64 else (1e30, 1e-30)
    A = np.array([np.eye(n, dtype=dtype), np.diag(diagonal)])
    with pytest.warns(LinAlgWarning, match=r"^matrix 1 of the batch: .*\(rcond=0\)"):
        X = linalg.inv(A, device=device)
    np.testing.assert_allclose(X[1], np.diag(1 / diagonal), rtol=4 * np.finfo(dtype).eps, atol=0)


def test_a_matrix_with_nan_leaves_the_warning_of_others():
    A = np.array([np.full((2, 2), np.nan), [[1, 1], [1, 1 + 2.0**-52]]])
    with pytest.warns(LinAlgWarning, match=r"^matrix 1 of the batch: .*rcond=5.5"):
        linalg.inv(A, check_finite=False, device="cpu")
