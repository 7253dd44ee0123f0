"""tsvd.linalg.inv where elimination fails: pivots that grow, numbers beyond the range.

What small matrices must show is in test_inverse.py; here are the ways that a device takes by order,
batches in which few matrices fail, and where arrays lie.
"""

import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning

from testing.dense_families import make
from testing.measures import INVERSE_BOUNDS, inverse_residual
from tsvd import _core, linalg

every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["f64", "f32"])
refined = pytest.mark.parametrize("refine", [False, True], ids=["plain", "refined"])

COMPLETE = _core.tuning()["INVERSE_COMPLETE_ORDER"]

FAMILIES = ["wright", "foster", "wilkinson_random"]
FAMILIES += [family + "_transposed" for family in FAMILIES]


def _residual(A, X):
    """inverse_residual() by products in float64, for large matrices: of X A - I."""
    A, X = A.astype(np.float64), X.astype(np.float64)
    unit = len(A) * np.linalg.norm(A) * np.linalg.norm(X)
    return np.linalg.norm(X @ A - np.eye(len(A))) / unit


@every_dtype
@refined
@pytest.mark.parametrize("family", FAMILIES)
def test_few_of_a_batch(family, refine, dtype, device):
    """The others keep their bits, and are not told of."""
    rng = np.random.default_rng(4)
    for n, count in ((30, 70), (64, 12), (110, 7), (140, 5)):
        A = rng.standard_normal((count, n, n)).astype(dtype)
        X = linalg.inv(A, refine=refine, device=device)
        places = [0, count // 2, count - 1]
        A[places] = make(family, n, n, dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Y = linalg.inv(A, refine=refine, device=device)
        assert inverse_residual(A[0], Y[0]) <= INVERSE_BOUNDS[refine], n
        for i in range(count):
            np.testing.assert_array_equal(Y[i], Y[0] if i in places else X[i])


@every_dtype
@refined
@pytest.mark.cuda
@pytest.mark.parametrize("n", [COMPLETE, COMPLETE + 1, 1030, 1500, 2048, 3001])
def test_large_matrices(n, refine, dtype, cuda):
    """By complete pivoting, and then by QR; from the host and on the device."""
    torch = pytest.importorskip("torch")
    for family in FAMILIES:
        A = make(family, n, n, dtype)
        X = linalg.inv(A, refine=refine, device="cuda")
        assert _residual(A, X) <= INVERSE_BOUNDS[refine] * np.finfo(dtype).eps, family
        there = linalg.inv(torch.from_numpy(A).cuda(), refine=refine)
        np.testing.assert_array_equal(there.cpu().numpy(), X)


@pytest.mark.cuda
def test_large_batches_arrive_in_order(cuda):
    """Results that are sent while others are computed once more."""
    A = np.random.default_rng(8).standard_normal((3, 1100, 1100))
    A[1] = make("wright_transposed", 1100, 1100)
    X = linalg.inv(A, device="cuda")
    for i in range(3):
        assert _residual(A[i], X[i]) <= INVERSE_BOUNDS[False] * np.finfo(float).eps, i


def _chain(n, power, dtype):
    """2^power on the diagonal, 1 above it, and the inverse: signs and powers of two."""
    k = np.arange(n)
    far = k - k[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        X = np.ldexp(np.where(far % 2 == 0, 1, -1).astype(dtype), -power * (far + 1))
    return (2.0**power * np.eye(n) + np.eye(n, k=1)).astype(dtype), np.where(far >= 0, X, dtype(0))


@every_dtype
@refined
@pytest.mark.parametrize("n", [3, 4, 6, 8, 9, 16, 20, 33, 70, 129, 180])
def test_beyond_the_range(n, refine, dtype, device):
    """The determinant underflows, the inverse overflows: it is infinite only where it must be."""
    reach = 1200 if dtype == np.float64 else 150
    A, X = _chain(n, -(reach // n + 1), dtype)
    assert np.isinf(X).any()
    turned = np.random.default_rng(n).permutation(n)
    batch = np.stack([np.eye(n, dtype=dtype), A, A.T, A[turned], np.eye(n, dtype=dtype)])
    with pytest.warns(LinAlgWarning, match=r"^matrix [123] of the batch: Ill-conditioned"):
        Y = linalg.inv(batch, refine=refine, device=device)
    for found, expected in zip(Y, [batch[0], X, X.T, X[:, turned], batch[0]], strict=True):
        np.testing.assert_array_equal(found, expected)
    with pytest.warns(LinAlgWarning):
        np.testing.assert_array_equal(linalg.inv(A, refine=refine, device=device), X)


@refined
@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:.*Ill-conditioned", "ignore::RuntimeWarning")
def test_large_triangles_beyond_the_range(refine, cuda):
    for n, dtype in ((260, np.float32), (1060, np.float64), (1100, np.float32)):
        A = (np.eye(n) - np.triu(np.ones((n, n)), 1)).astype(dtype)
        k = np.arange(n)
        far = k - k[:, None]
        X = np.where(far >= 0, np.ldexp(dtype(1), np.maximum(far - 1, 0)), dtype(0))
        for B, Y in ((A, X), (A.T, X.T), (A[::-1], X[:, ::-1])):
            np.testing.assert_array_equal(linalg.inv(B, refine=refine, device="cuda"), Y)


@every_dtype
@pytest.mark.parametrize("n", [2, 5, 8, 20, 60, 140])
def test_singular_among_others(n, dtype, device):
    """The first of a batch is told, also where many are singular, and where another one grows."""
    A = np.stack([np.eye(n, dtype=dtype)] * 2000 if n < 60 else [np.eye(n, dtype=dtype)] * 20)
    A[7:] = 1
    A[3] = make("wright_transposed", n, n, dtype)
    with pytest.raises(np.linalg.LinAlgError, match=r"^matrix 7 of the batch: Singular"):
        linalg.inv(A, device=device)
    A[5, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"^matrix 5 of the batch: a must not hold NaN"):
        linalg.inv(A, device=device)


@every_dtype
@pytest.mark.parametrize("n", [3, 12, 40, 140])
def test_beside_nan(n, dtype, device):
    """Without check_finite a matrix with NaN is NaN, and the others are right."""
    reach = 1200 if dtype == np.float64 else 150
    A, X = _chain(n, -(reach // n + 1), dtype)
    A = np.stack([A, np.full((n, n), np.nan), 2 * np.eye(n)]).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        Y = linalg.inv(A, device=device, check_finite=False)
    np.testing.assert_array_equal(Y, [X, A[1], np.eye(n) / 2])


def test_progress_never_falls(device):
    A = make("wright_transposed", 300, 300)
    A = np.stack([A, A])
    told = []
    linalg.inv(A, progress=told.append, device=device)
    assert told[-1] == 1 and told == sorted(told)


@pytest.mark.cuda
def test_a_last_chunk_that_is_shorter(cuda):
    """What is found of a matrix says nothing of that in its place in the next chunk."""
    torch = pytest.importorskip("torch")
    n = 1030
    chunk = _core.tuning()["CUDA_CHUNK_BYTES"] // (4 * n**2)
    if torch.cuda.mem_get_info()[0] < 40 << 30:
        pytest.skip("needs 40 GiB of device memory")
    good = torch.randn(n, n, device="cuda") + 2 * n**0.5 * torch.eye(n, device="cuda")
    A = good.repeat(chunk + 3, 1, 1)
    A[:3] = torch.eye(n, device="cuda")
    A[:3, -1, -1] = 5e-7  # rcond, too, and above that of a warning
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = linalg.inv(A)
        assert torch.equal(X[-1], linalg.inv(good))
