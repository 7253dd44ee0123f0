"""Functions of dense matrices of tsvd.torch: results, and derivatives where the SVD has none."""

import doctest

import mpmath
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tsvd.torch  # noqa: E402
from testing.ranks import TYPES, numbers, of_rank  # noqa: E402
from tsvd import linalg  # noqa: E402
from tsvd.torch import (  # noqa: E402
    linalg_low_rank,
    linalg_lstsq,
    linalg_nuclear_norm,
    linalg_pinv,
    linalg_polar,
    linalg_svd,
)

# PyTorch's own forward mode warns of PyTorch's own use of it.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

SHAPES = [(1, 1), (3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 3)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
every_type = pytest.mark.parametrize("dtype", TYPES)
# finite differences need double precision
wide_types = pytest.mark.parametrize("dtype", ["float64", "complex128"])


def low_rank(a):
    return linalg_low_rank(a, 1)


def right(a):
    return linalg_polar(a)


def left(a):
    return linalg_polar(a, "left")


# Each has any derivative at matrices of full rank with a gap after the first value.
FUNCTIONS = [linalg_pinv, right, left, low_rank, linalg_nuclear_norm]
every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


def tensor(x, grad=True, device="cpu"):
    return torch.tensor(x, device=device).requires_grad_(grad)


def random(shape, dtype="float64", seed=0, **options):
    return tensor(numbers(shape, dtype, [seed, *shape]), **options)


def with_values(s, m, n, dtype="float64", **options):
    """A matrix with these singular values."""
    U = np.linalg.qr(numbers((m, len(s)), dtype, 1))[0]
    V = np.linalg.qr(numbers((n, len(s)), dtype, 2))[0]
    return tensor((U * np.array(s)) @ V.swapaxes(-1, -2).conj(), **options)


def check(function, *inputs, second=True):
    """In reverse and in forward mode, and the second order in their mixtures."""
    torch.autograd.gradcheck(function, inputs, check_forward_ad=True, check_batched_grad=True)
    if second:
        torch.autograd.gradgradcheck(function, inputs, check_fwd_over_rev=True)


# ---- results ----


@every_type
@every_shape
def test_the_results_are_those_of_linalg(shape, dtype):
    """Also where a derivative is wanted; there small matrices of low rank come from all vectors."""
    a, b = random(shape, dtype), random((*shape[:-1], 2), dtype)
    plain, right_hand = a.detach(), b.detach()
    assert torch.equal(linalg_pinv(a), linalg.pinv(plain))
    assert torch.equal(linalg_pinv(a, 0.6), linalg.pinv(plain, 0.6))
    for given in ({"rtol": 0.6}, {"atol": 0.5}, {"return_rank": True, "rtol": 0.6}):
        found, expected = linalg_pinv(a, **given), linalg.pinv(plain, **given)
        assert all(map(torch.equal, found, expected))
    for rcond in (None, 0.6, 0, -1):
        found, expected = linalg_lstsq(a, b, rcond), linalg.lstsq(plain, right_hand, rcond)
        assert all(map(torch.equal, found, expected))
    for side in ("right", "left"):
        assert all(map(torch.equal, linalg_polar(a, side), linalg.polar(plain, side)))
        assert all(map(torch.equal, linalg_polar(plain, side), linalg.polar(plain, side)))
    assert torch.equal(linalg_nuclear_norm(a), linalg.matrix_norm(plain, ord="nuc"))
    tolerance = 50 * torch.finfo(a.dtype).eps
    for rank in (0, 1, 2, 9):
        expected = linalg.low_rank(plain, rank)
        assert torch.equal(linalg_low_rank(plain, rank), expected)
        assert torch.allclose(linalg_low_rank(a, rank), expected, rtol=0, atol=tolerance)
    assert all(
        x.dtype == a.dtype for x in (linalg_pinv(a), *linalg_polar(a), linalg_low_rank(a, 1))
    )


def test_lstsq_of_a_vector_and_of_two_types():
    a, b = random((5, 3), "float32"), random((5,))
    x, residuals, rank, s = linalg_lstsq(a, b)
    expected = linalg.lstsq(a.detach(), b.detach())
    assert all(map(torch.equal, (x, residuals, rank, s), expected)) and x.shape == (3,)
    (x.sum() + residuals.sum()).backward()
    assert a.grad.dtype == torch.float32 and b.grad.dtype == torch.float64
    assert not s.requires_grad and not rank.requires_grad


# ---- derivatives ----


@every_function
@every_shape
@wide_types
def test_derivatives(function, shape, dtype):
    check(function, random(shape, dtype))


@every_shape
@wide_types
def test_derivatives_of_least_squares(shape, dtype):
    check(
        lambda a, b: linalg_lstsq(a, b)[:2], random(shape, dtype), random((*shape[:-1], 2), dtype)
    )


@every_shape
@wide_types
def test_derivatives_where_the_rank_is_one(shape, dtype):
    """Along changes that keep it: of a = column row."""
    rcond = np.full(shape[:-2], 1e-8) if len(shape) > 2 else 1e-8
    column, row = random((*shape[:-1], 1), dtype), random((*shape[:-2], 1, shape[-1]), dtype)
    b = random((*shape[:-1], 2), dtype)
    check(lambda x, y: linalg_pinv(x @ y, rcond), column, row)
    check(lambda x, y, b: linalg_lstsq(x @ y, b, rcond)[:2], column, row, b)
    check(lambda x, y: linalg_nuclear_norm(x @ y), column, row, second=False)


@wide_types
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)], ids=str)
@pytest.mark.parametrize(
    "function", [linalg_pinv, right, left, linalg_nuclear_norm], ids=lambda f: f.__name__
)
def test_equal_values(function, shape, dtype):
    check(function, tensor(np.eye(*shape, dtype=dtype)))


@wide_types
@pytest.mark.parametrize("s", [(2, 2, 1), (2, 2, 0), (3, 2, 2), (3, 0, 0)], ids=str)
def test_equal_values_at_a_cut(s, dtype):
    """The values on the same side of a cut may be equal, or zero."""
    for m, n in ((4, 3), (3, 4), (3, 3)):
        a = with_values([float(x) for x in s], m, n, dtype)
        check(lambda a: linalg_low_rank(a, 1 if s[0] > s[1] else 2), a)


def test_third_derivatives():
    """Of the norm of a 2 x 2 matrix with det A > 0, and of det P, which is det A."""
    a = torch.tensor([[2.0, 0.5], [-0.3, 1.0]], dtype=torch.float64)
    derivative = torch.func.jacfwd(torch.func.jacrev(torch.func.jacrev(linalg_nuclear_norm)))

    def det(a):  # third derivatives of PyTorch's own are NaN before 2.15
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]

    def norm(a):
        return (a.square().sum() + 2 * det(a)).sqrt()

    expected = torch.func.jacfwd(torch.func.jacrev(torch.func.jacrev(norm)))(a)
    assert torch.allclose(derivative(a), expected, atol=1e-12)
    eye = torch.eye(2, dtype=torch.float64)  # a double value
    expected = torch.func.jacfwd(torch.func.jacrev(torch.func.jacrev(norm)))(eye)
    assert torch.allclose(derivative(eye), expected, atol=1e-12)
    third = torch.func.jacrev(torch.func.jacrev(torch.func.jacfwd(lambda a: det(right(a)[1]))))(a)
    expected = torch.func.jacrev(torch.func.jacrev(torch.func.jacfwd(det)))(a)
    assert torch.allclose(third, expected, atol=1e-12)


def test_a_batch_of_several_ranks():
    """Each matrix has the derivative of its own."""
    ranks = [of_rank(rank, (4, 3), "float64") for rank in (1, 2, 3)]
    a = tensor(np.stack(ranks))
    linalg_pinv(a).square().sum().backward()
    for one, gradient in zip(ranks, a.grad, strict=True):
        alone = tensor(one)
        linalg_pinv(alone).square().sum().backward()
        assert torch.allclose(gradient, alone.grad, rtol=1e-9)


@every_shape
@wide_types
def test_derivatives_are_those_of_pytorch(shape, dtype):
    weights = random(shape, dtype, seed=7, grad=False)
    pairs = [
        (
            lambda a: (linalg_pinv(a).mH * weights).sum(),
            lambda a: torch.linalg.pinv(a).mH * weights,
        ),
        (linalg_nuclear_norm, lambda a: torch.linalg.matrix_norm(a, "nuc")),
    ]
    for own, other in pairs:
        a, b = random(shape, dtype), random(shape, dtype)
        own(a).real.sum().backward()
        other(b).real.sum().backward()
        assert torch.allclose(a.grad, b.grad, rtol=1e-9, atol=1e-9 * float(b.grad.abs().max()))


@every_function
@every_shape
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision(function, shape, dtype):
    a = random(shape, dtype)
    wide = a.detach().to(torch.complex128 if a.is_complex() else torch.float64).requires_grad_()
    for x in (a, wide):
        found = function(x)
        found = found if isinstance(found, tuple) else (found,)
        sum(part.abs().square().sum() + part.real.sum() for part in found).backward()
    assert a.grad.dtype == a.dtype
    error = (a.grad - wide.grad).abs().max()
    assert error <= 1e-4 * wide.grad.abs().max()


def by_mpmath(a, digits=60):
    """The polar factor P and the nearest matrix of rank 2 in many digits."""
    with mpmath.workdps(digits):
        U, s, V = mpmath.svd_r(a)
        kept = mpmath.diag([s[0], s[1], *[0] * (len(s) - 2)])
        return V.T * mpmath.diag(list(s)) * V, U * kept * V


@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (3, 4)], ids=str)
def test_tiny_values_do_no_harm(shape):
    """Gradients for P and for the nearest matrix have no 1 / s, and no error of that size.

    Vectors that the derivative depends on move by eps / s, but not those of a square matrix for P.
    """
    m, n = shape
    for i, s in ((0, [2.0, 1.0, 1e-9]), (1, [1.0, 1e-7, 1e-12])):
        a, change = with_values(s, m, n), random(shape, seed=3, grad=False)
        found = (linalg_polar(a)[1], linalg_low_rank(a, 2))[i]
        weights = random(found.shape, seed=4, grad=False)
        (found * weights).sum().backward()
        with mpmath.workdps(60):
            step = mpmath.mpf(10) ** -25
            at = mpmath.matrix(a.tolist())
            there = at + step * mpmath.matrix(change.tolist())
            difference = (by_mpmath(there)[i] - by_mpmath(at)[i]) / step
            expected = mpmath.fsum(
                weights[j, k].item() * difference[j, k]
                for j in range(found.shape[0])
                for k in range(found.shape[1])
            )
        bound = 1e-13 if i == 0 and m == n else 1e-14 / s[2 - i]
        assert abs((a.grad * change).sum().item() - float(expected)) < bound


# ---- where there is no derivative ----


@wide_types
def test_singular_matrices_have_finite_derivatives(dtype):
    for m, n in ((3, 3), (5, 3), (3, 5)):
        for s in ([2.0, 1.0], [2.0], [0.0], [1.0, 1.0, 1.0]):
            a = with_values(s, m, n, dtype)
            for function in (right, left, low_rank, linalg_nuclear_norm):
                found = function(a)
                found = found if isinstance(found, tuple) else (found,)
                (gradient,) = torch.autograd.grad(sum(x.real.sum() for x in found), a)
                assert gradient.isfinite().all() and gradient.abs().max() < 20


def test_the_subgradient_of_least_norm():
    a = tensor([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    linalg_nuclear_norm(a).backward()
    assert torch.equal(a.grad, torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    zero = tensor(np.zeros((3, 2)))
    linalg_nuclear_norm(zero).backward()
    assert not zero.grad.any()


def test_a_rank_that_cuts_nothing():
    """The derivative is that of the matrix itself."""
    a = random((4, 3))
    weights = random((4, 3), seed=1, grad=False)
    (linalg_low_rank(a, 3) * weights).sum().backward()
    assert torch.allclose(a.grad, weights)
    (gradient,) = torch.autograd.grad(linalg_low_rank(a, 0).sum(), a)
    assert not gradient.any()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 2, 3)], ids=str)
def test_empty(shape):
    a = torch.zeros(shape, requires_grad=True)
    parts = [f(a) for f in (linalg_pinv, low_rank, linalg_nuclear_norm)]
    parts += [*right(a), *left(a), *linalg_lstsq(a, torch.zeros((*shape[:-1], 2)))[:2]]
    sum(part.sum() for part in parts).backward()
    assert a.grad.shape == shape and not a.grad.any()


# ---- torch.func ----


@every_function
@wide_types
def test_transformations(function, dtype):
    """Maps, also over another dimension, and derivatives of each matrix of a batch."""
    a = random((3, 4, 2), dtype, grad=False)

    def first(x):
        found = function(x)
        return found[0] if isinstance(found, tuple) else found

    one_by_one = torch.stack([first(x) for x in a])
    assert torch.allclose(torch.func.vmap(first)(a), one_by_one)
    assert torch.allclose(torch.func.vmap(first, in_dims=2)(a.movedim(0, 2)), one_by_one)
    if dtype == "float64":
        jacobian = torch.func.vmap(torch.func.jacrev(first))(a)
        assert torch.allclose(jacobian, torch.func.vmap(torch.func.jacfwd(first))(a))
        alone = torch.stack([torch.autograd.functional.jacobian(first, x) for x in a])
        assert torch.allclose(jacobian, alone)
        hessian = torch.func.vmap(torch.func.jacfwd(torch.func.jacrev(first)))(a[:1])[0]
        other = torch.func.jacrev(torch.func.jacrev(first))(a[0])
        assert torch.allclose(hessian, other, atol=1e-9 * float(other.abs().max()))


def test_transformations_of_least_squares():
    a, b = random((3, 4, 2), grad=False), random((3, 4), grad=False)
    one_by_one = [linalg_lstsq(*x) for x in zip(a, b, strict=True)]
    x, residuals, rank, s = torch.func.vmap(linalg_lstsq)(a, b)
    for found, i in ((x, 0), (residuals, 1), (rank, 2), (s, 3)):
        assert torch.allclose(found, torch.stack([alone[i] for alone in one_by_one]))
    shared = torch.func.vmap(lambda b: linalg_lstsq(a[0], b)[0])(b)
    assert torch.allclose(shared, (linalg_pinv(a[0]) @ b.mT).mT)

    def solution(b):
        return linalg_lstsq(a[0], b)[0]

    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        assert torch.allclose(jacobian(solution)(b[0]), linalg_pinv(a[0]))

    def squares(a, b):
        return linalg_lstsq(a, b)[1]

    gradients = torch.func.vmap(torch.func.jacrev(squares, (0, 1)))(a, b)
    forward = torch.func.vmap(torch.func.jacfwd(squares, (0, 1)))(a, b)
    assert all(map(torch.allclose, gradients, forward))


# ---- errors, conjugates, examples ----


def test_what_is_refused():
    functions = [*FUNCTIONS, lambda a: linalg_lstsq(a, torch.ones(2))]
    for function in functions:
        for a in (np.ones((2, 2)), [[1.0]], None):
            with pytest.raises(TypeError, match="a must be a tensor"):
                function(a)
        with pytest.raises(np.linalg.LinAlgError, match="imension"):
            function(torch.ones(3, requires_grad=True))
    for function in FUNCTIONS:
        for grad in (False, True):
            with pytest.raises(TypeError, match="dtype"):
                function(torch.ones(3, 3, dtype=torch.float16).requires_grad_(grad))
        found = function(torch.ones(2, 2, dtype=torch.int32))
        assert (found[0] if isinstance(found, tuple) else found).dtype == torch.float64
    a = random((3, 2))
    with pytest.raises(TypeError, match="b must be a tensor"):
        linalg_lstsq(a, [1.0, 2.0, 3.0])
    with pytest.raises(np.linalg.LinAlgError, match="Incompatible dimensions"):
        linalg_lstsq(a, random((2, 1)))
    with pytest.raises(ValueError, match="both"):
        linalg_pinv(a, 0.1, rtol=0.1)
    for x in (a, a.detach()):
        with pytest.raises(ValueError, match="side"):
            linalg_polar(x, "up")
        with pytest.raises(ValueError, match="rank must not be negative"):
            linalg_low_rank(x, -1)
        with pytest.raises(TypeError, match="integer"):
            linalg_low_rank(x, 1.5)


@every_function
def test_views_of_conjugates(function):
    a = random((4, 3), "complex128", grad=False).conj()
    found, expected = function(a.requires_grad_()), function(a.detach().resolve_conj())
    found, expected = ((x,) if torch.is_tensor(x) else x for x in (found, expected))
    assert a.is_conj() and all(map(torch.allclose, found, expected))


def test_the_svd_agrees():
    """The functions agree with what the SVD makes of a matrix that has no equal values."""
    for dtype in ("float64", "complex128"):
        a, b = random((4, 3), dtype), random((4, 3), dtype)
        U, S, Vh = linalg_svd(b)
        product = (U[:, :2] * S[:2]) @ Vh[:2]
        (product.abs().square().sum() + (U @ Vh).real.sum()).backward()
        (linalg_low_rank(a, 2).abs().square().sum() + right(a)[0].real.sum()).backward()
        assert torch.allclose(a.grad, b.grad, rtol=1e-9)


@pytest.mark.parametrize(
    "function",
    [linalg_pinv, linalg_lstsq, linalg_polar, linalg_low_rank, linalg_nuclear_norm],
    ids=lambda f: f.__name__,
)
def test_docstring_examples(function):
    assert getattr(tsvd.torch, function.__name__) is function
    (examples,) = doctest.DocTestFinder(recurse=False).find(function, "example", globs={})
    failed, tried = doctest.DocTestRunner().run(examples)
    assert tried > 0 and failed == 0


# ---- CUDA ----


@pytest.mark.cuda
@every_function
@every_type
@pytest.mark.parametrize("shape", [(50, 30), (30, 50), (3, 20, 20)], ids=str)
def test_cuda(cuda, function, dtype, shape):
    there, here = random(shape, dtype, device="cuda"), random(shape, dtype)
    for a in (there, here):
        found = function(a)
        found = found if isinstance(found, tuple) else (found,)
        assert all(x.device == a.device for x in found)
        sum(part.abs().square().sum() + part.real.sum() for part in found).backward()
    assert there.grad.is_cuda
    error = (there.grad.cpu() - here.grad).abs().max()
    unit = 1e5 * torch.finfo(here.dtype).eps
    assert error <= unit * here.grad.abs().max()


@pytest.mark.cuda
@wide_types
@pytest.mark.parametrize("shape", [(4, 2), (2, 3, 3)], ids=str)
def test_cuda_gradcheck(cuda, dtype, shape):
    a, b = random(shape, dtype, device="cuda"), random((*shape[:-1], 2), dtype, device="cuda")
    # The values of a CUDA device may be off by an ulp between two calls of other batches.
    for function in FUNCTIONS:
        assert torch.autograd.gradcheck(function, a, nondet_tol=1e-10)
        assert torch.autograd.gradgradcheck(function, a, nondet_tol=1e-10)

    def solve(a, b):
        return linalg_lstsq(a, b)[:2]

    assert torch.autograd.gradcheck(solve, (a, b), nondet_tol=1e-10)
    assert torch.autograd.gradgradcheck(solve, (a, b), nondet_tol=1e-10)


@pytest.mark.cuda
def test_cuda_of_host_tensors(cuda):
    """A tensor of the host that is computed on the device has its results on the host."""
    a = random((40, 30))
    for function in (linalg_pinv, linalg_polar, linalg_nuclear_norm):
        found = function(a, device="cuda")
        (found[0] if isinstance(found, tuple) else found).sum().backward()
    linalg_low_rank(a, 3, device="cuda").sum().backward()
    assert a.grad.device.type == "cpu" and a.grad.isfinite().all()


@pytest.mark.parametrize("wants_gradient", [False, True])
def test_autocast_makes_no_half_precision(wants_gradient):
    a = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).requires_grad_(wants_gradient)
    b = torch.ones(6, 1)
    functions = {
        "pinv": linalg_pinv,
        "polar": lambda a: linalg_polar(a)[0],
        "low_rank": lambda a: linalg_low_rank(a, 2),
        "nuclear norm": linalg_nuclear_norm,
        "lstsq": lambda a: linalg_lstsq(a, b)[0],
    }
    if not wants_gradient:
        functions |= {
            "linalg.pinv": linalg.pinv,
            "linalg.polar": lambda a: linalg.polar(a)[0],
            "linalg.low_rank": lambda a: linalg.low_rank(a, 2),
            "linalg.lstsq": lambda a: linalg.lstsq(a, b)[0],
        }
    for name, function in functions.items():
        with torch.autocast("cpu"):
            found = function(a)
        assert found.dtype == torch.float32, name
        torch.testing.assert_close(found, function(a))


def test_thresholds_within_vmap():
    """Those of each matrix of the batch that vmap maps over, whatever is in front."""
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(3, 3, 4, 4, generator=generator, dtype=torch.float64)
    b = a[..., :2].cos()
    part = torch.tensor([1e-14, 0.3, 0.9], dtype=torch.float64)
    parts = torch.rand(3, 3, generator=generator, dtype=torch.float64)
    functions = {
        "rtol": lambda a, b, t: linalg_pinv(a, rtol=t),
        "rcond": lambda a, b, t: linalg_pinv(a, t),
        "atol": lambda a, b, t: linalg_pinv(a, atol=t),
        "lstsq": lambda a, b, t: linalg_lstsq(a, b, t)[0],
        "gradient": lambda a, b, t: torch.func.grad(lambda a: linalg_lstsq(a, b, t)[0].sum())(a),
    }
    for name, function in functions.items():
        found = torch.vmap(function)(a, b, part)
        right = torch.stack([function(a[i], b[i], part[i]) for i in range(3)])
        torch.testing.assert_close(found, right, msg=name)
        found = torch.vmap(function, (0, 0, 1))(a, b, parts)
        right = torch.stack([function(a[i], b[i], parts[:, i]) for i in range(3)])
        torch.testing.assert_close(found, right, msg=name)
        found = torch.vmap(torch.vmap(function, (0, 0, None)))(a, b, part)
        right = torch.stack(
            [torch.vmap(function, (0, 0, None))(a[i], b[i], part[i]) for i in range(3)]
        )
        torch.testing.assert_close(found, right, msg=name)
