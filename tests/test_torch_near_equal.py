"""Derivatives of tsvd.torch where values are equal, or zero, but for rounding errors."""

import pytest

torch = pytest.importorskip("torch")

import tsvd.torch  # noqa: E402
from testing import close_values  # noqa: E402
from tsvd.torch import linalg_svd  # noqa: E402

# PyTorch's own forward mode warns of PyTorch's own use of it.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]


def random(shape, dtype, seed):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def deficient(m, n, rank):
    def make(dtype, seed):
        return random((m, rank), dtype, seed) @ random((rank, n), dtype, seed + 1000)

    return make


def graded(dtype, seed):
    powers = torch.linspace(0, -20, 6, dtype=torch.float64)
    return random((6, 6), dtype, seed) * (10**powers).to(dtype)


def batch(dtype, seed):
    return torch.stack([deficient(6, 6, 2)(dtype, seed), random((6, 6), dtype, seed)])


FAMILIES = {
    "6 x 6 of rank 2": deficient(6, 6, 2),
    "9 x 5 of rank 2": deficient(9, 5, 2),
    "5 x 9 of rank 2": deficient(5, 9, 2),
    "64 x 64 of rank 40": deficient(64, 64, 40),
    "columns from 1 to 1e-20": graded,
    "a batch": batch,
    "tiny": lambda dtype, seed: 2.0**-60 * deficient(6, 6, 2)(dtype, seed),
    "zeros": lambda dtype, seed: torch.zeros((4, 3), dtype=dtype),
}


def off(x, right):
    """The relative distance."""
    return float(torch.linalg.vector_norm(x - right) / torch.linalg.vector_norm(right))


def product(a):
    U, S, Vh = linalg_svd(a)
    return (U * S[..., None, :]) @ Vh


def of_sum(W, x):
    return (W.conj() * x).sum().real


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_product_of_the_factors(family, dtype):
    """It is A, so its derivatives are known; those of values that are exactly zero are not."""
    eps = torch.finfo(dtype).eps
    for seed in range(10):
        a = FAMILIES[family](dtype, seed).requires_grad_()
        W = random(a.shape, dtype, seed + 2000)
        (gradient,) = torch.autograd.grad(of_sum(W, product(a)), a)
        _, tangent = torch.func.jvp(product, (a.detach(),), (W,))
        if family == "zeros":
            assert torch.isfinite(torch.view_as_real(gradient + 0j)).all()
            assert torch.isfinite(torch.view_as_real(tangent + 0j)).all()
            continue
        assert off(gradient, W) < 200 * eps
        assert off(tangent, W) < 200 * eps


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("family", ["6 x 6 of rank 2", "64 x 64 of rank 40", "a batch", "tiny"])
def test_the_projector_on_all_vectors_is_constant(family, dtype):
    eps = torch.finfo(dtype).eps
    for seed in range(10):
        a = FAMILIES[family](dtype, seed).requires_grad_()
        U, S, _ = linalg_svd(a)
        W = random(U.shape, dtype, seed + 2000)
        (gradient,) = torch.autograd.grad(of_sum(W, U @ U.mH), a)
        unit = eps * float(torch.linalg.vector_norm(W)) / S.detach()[..., :1, None]
        assert (abs(gradient) <= 200 * a.shape[-1] * unit).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_polar_factor_of_an_orthogonal_matrix(dtype):
    """All values are equal but for rounding: U Vh is smooth there, and neither U nor V is."""
    eps = torch.finfo(dtype).eps
    for seed in range(10):
        a = torch.linalg.qr(random((8, 8), dtype, seed))[0].requires_grad_()
        W = random((8, 8), dtype, seed + 2000)

        def factor(a):
            U, _, Vh = linalg_svd(a)
            return U @ Vh

        (gradient,) = torch.autograd.grad(of_sum(W, factor(a)), a)
        _, tangent = torch.func.jvp(factor, (a.detach(),), (W,))
        K = a.detach().mH @ W
        right = a.detach() @ (K - K.mH) / 2
        assert off(gradient, right) < 500 * eps
        assert off(tangent, right) < 500 * eps


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
def test_bidiagonal_matrices(dtype, lower):
    """Two blocks of rank n - 1 each: the product has the derivative of B, the projector none."""
    eps = torch.finfo(dtype).eps
    for seed in range(10):
        d, e = random((8,), dtype, seed), random((7,), dtype, seed + 1000)
        d[[2, 6]] *= 2.0**-60
        d.requires_grad_(), e.requires_grad_()
        L, s, R = tsvd.torch.svd(d, e, lower=lower)
        W = random((8, 8), dtype, seed + 2000)
        gd, ge = torch.autograd.grad(of_sum(W, (L * s) @ R), (d, e), retain_graph=True)
        assert off(gd, W.diagonal()) < 500 * eps
        assert off(ge, W.diagonal(-1 if lower else 1)) < 500 * eps
        gd, ge = torch.autograd.grad(of_sum(W, L @ L.mT), (d, e))
        assert (
            abs(gd).max() < 500 * eps / s.detach()[0] and abs(ge).max() < 500 * eps / s.detach()[0]
        )


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_close_values_against_extended_precision(gap):
    """The gradient grows like 1/gap, and its error like eps/gap relative to it."""
    A, W = close_values.matrix(gap)
    x, W = torch.from_numpy(A).requires_grad_(), torch.from_numpy(W)
    [gradient] = torch.autograd.grad(close_values.loss(linalg_svd(x)[0], W), x)
    right = torch.from_numpy(close_values.gradient(A, W))
    assert right.abs().max() > 0.1 / gap
    assert off(gradient, right) < 50 * torch.finfo(torch.float64).eps / gap


@pytest.mark.parametrize("size", ["smallest", "largest"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_of_any_size(dtype, size):
    """Squares of them may leave the range of numbers."""
    finfo = torch.finfo(dtype)
    scale = finfo.tiny / finfo.eps**2 if size == "smallest" else finfo.max * finfo.eps
    a = deficient(6, 4, 2)(dtype, 0).requires_grad_()
    W = random((6, 4), dtype, 1)
    U, S, Vh = linalg_svd(a)
    (gradient,) = torch.autograd.grad((U * S) @ Vh, a, scale * W)
    assert off(gradient / scale, W) < 100 * finfo.eps
