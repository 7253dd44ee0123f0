"""The reduction through a band keeps the bounds, and is the same for any number of threads."""

import itertools
import pickle

import numpy as np
import pytest

from testing import complex_families, dense_families
from testing.cases import Findings, check_with_and_without_vectors, hold, same_bits
from testing.dense_layouts import LAYOUTS
from testing.measures import BOUNDS, check_dense, orthogonality
from testing.parts import double
from testing.reference import dense_singular_values
from tsvd import linalg

TWO = {"stages": 2}
DTYPES = (np.float64, np.float32, np.complex128, np.complex64)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)

# The band has 32 superdiagonals on the CPU, 64 on CUDA.
ORDERS = (
    1,
    2,
    3,
    5,
    16,
    31,
    32,
    33,
    34,
    48,
    63,
    64,
    65,
    66,
    95,
    96,
    97,
    98,
    127,
    128,
    129,
    130,
    160,
    193,
)
SHAPES = ((70, 60), (60, 70), (65, 33), (32, 50), (160, 66), (40, 130), (200, 100))


def families_of(dtype):
    return complex_families if np.dtype(dtype).kind == "c" else dense_families


def random(m, n, dtype, seed=0):
    families = families_of(dtype)
    name = "complex_gaussian" if families is complex_families else "gaussian"
    return families.make(name, m, n, dtype, seed)


def lapack_values(A):
    """Within two or three units of the last place of the largest."""
    return np.linalg.svd(double(A), compute_uv=False)


def check(findings, where, A, s_ref, device, **options):
    check_with_and_without_vectors(findings, where, A, s_ref, device, tuning=TWO, **options)


@every_dtype
def test_orders_around_the_width_of_the_band(dtype, device):
    with Findings() as findings:
        for m, n in (*((n, n) for n in ORDERS), *SHAPES):
            A = random(m, n, dtype)
            check(findings, f"{m}x{n} {dtype.__name__}", A, dense_singular_values(A), device)


@every_dtype
def test_every_family(dtype, device):
    with Findings() as findings:
        for family in families_of(dtype).FAMILIES:
            A = families_of(dtype).make(family, 100, 100, dtype)
            check(findings, f"{family} {dtype.__name__}", A, dense_singular_values(A), device)


@every_dtype
def test_values_of_matrices_with_equal_rows(dtype, device):
    """Rounding errors of equal terms add up, and the bound of small matrices is small."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(1, 256, 3) / 256
    with Findings() as findings:
        for n in (40, 47, 63, 65, 67, 80, 94, 107, 128, 144, 166, 200, 640):
            scales = np.exp2(-rng.integers(0, 30, n))
            few = np.outer(rng.choice(numbers, n), rng.choice(numbers, n) * scales)
            for kind, A in enumerate((few, np.full((n, n), 1.3), np.full((n, n), 0.7))):
                A = A.astype(dtype)  # of rank one, also after rounding
                s_ref = np.zeros(n)
                s_ref[0] = np.sqrt(np.sum(double(A).real.astype(np.longdouble) ** 2))
                check(findings, f"{n}, kind {kind}, {dtype.__name__}", A, s_ref, device)


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_large_matrices(dtype, device):
    """Where vectors of one side may be made from those of the other."""
    n = 680  # updates are deferred from n = 640 on, on the CPU
    with Findings() as findings:
        for family in ("clustered", "geometric_1e4", "rank_half", "orthogonal"):
            A = families_of(dtype).make(family, n, n, dtype)
            check(findings, f"{family} n={n} {dtype.__name__}", A, lapack_values(A), device)
        for shape in ((n + 60, n), (n, n + 60)):
            A = random(*shape, dtype)
            check(findings, f"{shape} {dtype.__name__}", A, lapack_values(A), device)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_on_both_sides_of_a_sixteenth(dtype, device):
    """The vectors above it are made from the other side, where residuals grow by a factor of 16."""
    n = 520
    rng = np.random.default_rng(0)
    Q, P = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    for levels in ([1, 0.1, 0.07, 0.0624], [1, 1 / 15.9, 1 / 16.1]):
        A = ((Q * np.sort(np.resize(levels, n))[::-1]) @ P).astype(dtype)
        found, wrong = check_dense(A, linalg.svd(A, tuning=TWO, device=device), lapack_values(A))
        with Findings() as findings:
            hold(findings, f"{levels} {dtype.__name__}", found, wrong)


def test_vectors_are_orthogonal_with_eps(device):
    """The SVD of B is then not exact, and vectors of one side do not give those of the other."""
    A = random(530, 530, np.float64)
    for eps in (1e-10, 1e-4):
        for stages in (1, 2):
            U, _, Vh = linalg.svd(A, eps=eps, tuning={"stages": stages}, device=device)
            assert orthogonality(U, Vh) <= BOUNDS["orthogonality"](530)


@every_dtype
def test_parts_of_the_values(dtype, device):
    for n in (120, 650):
        A = random(n, n, dtype)
        whole = linalg.svd(A, tuning=TWO, device=device)
        for first, last in ((0, 9), (0, n // 2), (n // 3, n // 2), (n - 3, n - 1), (5, 5)):
            U, S, Vh = linalg.svd(
                A, select="i", select_range=(first, last), tuning=TWO, device=device
            )
            unit = (n + 8) * np.finfo(dtype).eps
            assert orthogonality(U, Vh) <= BOUNDS["orthogonality"](n)
            assert abs(S - whole.S[first : last + 1]).max() <= unit * whole.S[0]
            assert np.linalg.norm(A @ Vh.conj().T - U * S, axis=0).max() <= 4 * unit * whole.S[0]


@every_dtype
def test_bits_do_not_depend_on_threads(dtype):
    for m, n in ((300, 300), (680, 660)):
        A = random(m, n, dtype)
        results = [
            (*linalg.svd(A, **options), linalg.svdvals(A, **options))
            for options in ({"tuning": TWO, "threads": threads} for threads in (1, 2, 8))
        ]
        assert all(same_bits(results[0], other) for other in results[1:])


@every_dtype
def test_a_reduction_that_is_kept(dtype, device):
    for m, n in ((1, 1), (33, 33), (130, 100), (100, 130), (260, 100)):
        A = random(m, n, dtype)
        form = linalg.bidiagonalize(A, tuning=TWO, device=device)
        Q, Pt = form.form_q(), form.form_pt()
        p, unit = min(m, n), (max(m, n) + 8) * np.finfo(dtype).eps
        B = np.diag(form.d) + np.diag(form.e, 1 if m >= n else -1)
        assert np.linalg.norm(Q @ B @ Pt - A) <= 2 * unit * np.linalg.norm(A)
        assert orthogonality(Q, Pt) <= BOUNDS["orthogonality"](max(m, n))
        x = random(m, 3, dtype, seed=1)
        back = form.apply_q(form.apply_q(x, transposed=True))
        assert np.linalg.norm(back - x) <= 4 * unit * np.linalg.norm(x)
        again = pickle.loads(pickle.dumps(form))
        assert same_bits((again.form_q(), again.form_pt()), (Q, Pt))
        assert same_bits(tuple(again.svd(False)), tuple(form.svd(False)))
        assert same_bits(again.svdvals(), form.svdvals())
        assert form.svdvals().shape == (p,)


def test_one_stage_and_two_are_both_restored(device):
    """Whatever a later version chooses by itself, a saved reduction goes on as it was made."""
    A = random(90, 90, np.float64)
    forms = [linalg.bidiagonalize(A, tuning={"stages": stages}, device=device) for stages in (1, 2)]
    assert not same_bits(forms[0].d, forms[1].d)
    for form in forms:
        again = pickle.loads(pickle.dumps(form))
        assert same_bits((again.d, again.e, again.form_q()), (form.d, form.e, form.form_q()))


@every_dtype
def test_batches(dtype, device):
    A = np.stack([random(70, 60, dtype, seed) for seed in range(5)])
    A[2] = 0
    U, S, Vh = linalg.svd(A, tuning=TWO, device=device)
    for i in range(5):
        alone = linalg.svd(A[i], tuning=TWO, device=device)
        if device == "cpu":
            assert same_bits(tuple(alone), (U[i], S[i], Vh[i]))
        else:  # the SVD of B of a single matrix is made another way
            assert abs(alone.S - S[i]).max() <= 70 * np.finfo(dtype).eps * (S[i][0] + 1e-30)
            assert np.linalg.norm(U[i, :, :60] * S[i] @ Vh[i] - A[i]) <= 1e-5 * (S[i][0] + 1e-30)
    A[3, 1, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        linalg.svd(A, tuning=TWO, device=device)
    U, S, Vh = linalg.svd(A, tuning=TWO, check_finite=False, device=device)
    assert np.isnan(S[3]).all() and np.isnan(U[3]).all() and np.isfinite(S[[0, 1, 2, 4]]).all()


def test_layouts_and_methods(device):
    A = random(75, 70, np.float64)
    s_ref = dense_singular_values(A)
    with Findings() as findings:
        for layout in LAYOUTS.values():
            check(findings, "layout", layout(A), s_ref, device)
        for method in ("dc", "qr", "givens", "twisted"):
            check(findings, method, A, s_ref, device, method=method)
    U, _, Vh = linalg.svd(random(80, 50, np.float64), tuning=TWO, device=device)
    assert U.shape == (80, 80) and orthogonality(U, Vh) <= 3


def test_seconds_and_progress():
    A = random(1500, 1500, np.float64)  # it takes a few reports, of which there are 20 a second
    told = []
    options = {"compute_uv": False, "device": "cpu", "full_output": True}
    _, info = linalg.svd(A, tuning=TWO, progress=told.append, **options)
    assert 0 < info.seconds["band"] < info.seconds["reduce"] < info.seconds["total"]
    assert 0 < info.seconds["chase"] < info.seconds["reduce"]
    assert all(x <= y for x, y in itertools.pairwise(told)) and told[-1] == 1
    assert any(0 < x < 0.5 for x in told)
    _, info = linalg.svd(A[:300, :300], tuning={"stages": 1}, **options)
    assert info.seconds["band"] == info.seconds["chase"] == 0


@pytest.mark.parametrize("share", [0.0, 0.2, 0.38, 0.45, 0.65, 0.9])
def test_a_call_can_be_stopped_anywhere(share):
    A = random(900, 900, np.float64)

    def stop(done):
        if done >= share:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            linalg.svd(A, tuning=TWO, device="cpu", progress=stop, threads=4)
    assert linalg.svdvals(A, tuning=TWO)[0] > 0


@pytest.mark.cuda
@every_dtype
@pytest.mark.parametrize("shape", [(1100, 1100), (1210, 1100), (1100, 1210)])
def test_vectors_of_one_side_from_those_of_the_other_on_the_device(shape, dtype, cuda):
    """What lies on the device is multiplied again."""
    torch = pytest.importorskip("torch")
    with Findings() as findings:
        for seed, power in enumerate((0, -900 if np.finfo(dtype).nmant > 30 else -90)):
            A = random(*shape, dtype, seed) * dtype(2.0**power)
            result = linalg.svd(torch.from_numpy(A).cuda(), tuning=TWO, full_matrices=False)
            result = [x.cpu().numpy() for x in result]
            hold(findings, f"{shape} 2^{power}", *check_dense(A, result, lapack_values(A)))


@pytest.mark.cuda
@every_dtype
@pytest.mark.parametrize("family", ["clustered", "rank_half", "ones", "zero"])
def test_panels_without_a_cholesky_factor(family, dtype, cuda):
    """They are reduced column by column, or are nothing."""
    n = 700
    rng = np.random.default_rng(0)
    Q, P = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    S = {
        "clustered": np.where(np.arange(n) < n // 2, 1, 1e-9),
        "rank_half": np.where(np.arange(n) < n // 2, 1, 0),
    }
    one = float(family == "ones")
    A = (Q * S[family] @ P if family in S else np.full((n, n), one)).astype(dtype)
    # LAPACK's second value of equal entries is off by up to 120 eps s_1 itself.
    s_ref = lapack_values(A) if family in S else n * one * np.eye(1, n)[0]
    with Findings() as findings:
        check(findings, family, A, s_ref, "cuda")


@pytest.mark.cuda
@every_dtype
def test_the_device_gives_the_same_bits_each_time(dtype, cuda):
    for n in (300, 700):
        A = random(n, n, dtype)
        first = linalg.svd(A, tuning=TWO, device="cuda")
        for _ in range(3):
            assert same_bits(tuple(linalg.svd(A, tuning=TWO, device="cuda")), tuple(first))


@pytest.mark.cuda
def test_seconds_of_the_stages_on_the_device(cuda):
    A = random(700, 700, np.float64)
    _, info = linalg.svd(A, tuning=TWO, device="cuda", full_output=True)
    assert 0 < info.seconds["band"] < info.seconds["reduce"] < info.seconds["total"]
    assert 0 < info.seconds["chase"] < info.seconds["reduce"]
    _, info = linalg.svd(A, tuning={"stages": 1}, device="cuda", full_output=True)
    assert info.seconds["band"] == info.seconds["chase"] == 0


def test_other_numbers_of_stages_are_refused():
    for stages in (0, 3, -1):
        with pytest.raises(ValueError, match=r"tuning\['stages'\] must be from 1 to 2"):
            linalg.svd(np.eye(3), tuning={"stages": stages})
    with pytest.raises(ValueError, match="unknown tuning knob"):
        linalg.bidiagonalize(np.eye(3), tuning={"stage": 2})
    with pytest.raises(TypeError, match="tuning must be a mapping"):
        linalg.bidiagonalize(np.eye(3), tuning=[])
