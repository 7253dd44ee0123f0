"""The dense functions of tsvd.torch: derivatives against finite differences and PyTorch's own."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tsvd.torch  # noqa: E402
from tsvd import linalg  # noqa: E402
from tsvd.torch import linalg_svd, linalg_svdvals  # noqa: E402

# PyTorch's own forward mode warns of PyTorch's own use of it.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 2, 4)]


def matrices(*shape, grad=True):
    generator = torch.Generator().manual_seed(sum(shape))
    a = torch.randn(shape, generator=generator, dtype=torch.float64)
    return a.requires_grad_(grad)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_results_are_those_of_linalg(shape, dtype):
    a = matrices(*shape).detach().to(dtype)
    result, expected = linalg_svd(a), linalg.svd(a, False)
    assert isinstance(result, linalg.SVDResult)
    assert all(map(torch.equal, result, expected))
    assert torch.equal(linalg_svdvals(a), linalg.svdvals(a))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", [linalg_svd, linalg_svdvals])
def test_derivatives_of_first_and_second_order(function, shape):
    """In reverse and in forward mode, and the second order in both mixtures."""
    a = matrices(*shape)
    torch.autograd.gradcheck(function, a, check_forward_ad=True, check_batched_grad=True)
    torch.autograd.gradgradcheck(function, a, check_fwd_over_rev=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives_of_a_part(shape):
    def part(a):
        return tuple(linalg_svd(a, select="i", select_range=(0, 1)))

    def values(a):
        return linalg_svdvals(a, select="i", select_range=(1, 1))

    for function in (part, values):
        torch.autograd.gradcheck(function, matrices(*shape), check_forward_ad=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives_are_those_of_pytorch(shape):
    """Of a function that signs of vectors do not change."""
    a, b = matrices(*shape), matrices(*shape)
    for x, svd in ((a, linalg_svd), (b, lambda x: torch.linalg.svd(x, full_matrices=False))):
        U, S, Vh = svd(x)
        product = (U * S.exp()[..., None, :]) @ Vh
        (product * torch.arange(product.numel()).view(product.shape)).sum().backward()
    assert torch.allclose(a.grad, b.grad, rtol=1e-9)


def test_one_result_alone():
    for shape in SHAPES:
        for i in range(3):
            a = matrices(*shape)
            linalg_svd(a)[i].square().sum().backward()
            assert a.grad.isfinite().all() and (i == 1) == bool(a.grad.abs().max() > 1e-9)


def test_equal_and_zero_values_have_finite_derivatives():
    for a in (
        torch.zeros(4, 2),
        torch.ones(4, 3),
        torch.ones(3, 4),
        torch.eye(3),
        torch.eye(5)[:3],
    ):
        a = a.double().requires_grad_()
        U, S, Vh = linalg_svd(a)
        (U.sum() + S.sum() + Vh.sum()).backward()
        assert a.grad.isfinite().all() and a.grad.abs().max() < 10


def test_the_polar_factor_of_equal_values():
    """Functions of U Vh have the exact derivative, though the vectors are not determined."""
    torch.autograd.gradcheck(
        lambda a: (lambda U, S, Vh: U @ Vh)(*linalg_svd(a)), torch.eye(4).double().requires_grad_()
    )


def test_empty():
    for shape in ((0, 3), (3, 0), (2, 0, 3), (0, 2, 3)):
        a = torch.zeros(shape, requires_grad=True)
        U, S, Vh = linalg_svd(a)
        (U.sum() + S.sum() + Vh.sum() + linalg_svdvals(a).sum()).backward()
        assert a.grad.shape == shape and not a.grad.any()


def test_an_interval():
    a = matrices(6, 4)
    S = linalg_svdvals(a).detach()
    U, part, Vh = linalg_svd(a, select="v", select_range=(float(S[3]) * 1.01, float(S[0]) * 0.99))
    assert U.shape == (6, 2) and torch.allclose(part, S[1:3])
    (U.sum() + part.sum() + Vh.sum()).backward()
    assert a.grad.isfinite().all()
    values = linalg_svdvals(a, select="v", select_range=(float(S[3]) * 1.01, float("inf")))
    assert torch.allclose(values, S[:3])
    none = {"select": "v", "select_range": (100, 200)}
    assert [x.shape for x in linalg_svd(a, **none)] == [(6, 0), (0,), (0, 4)]
    assert linalg_svdvals(matrices(2, 3, 4)[0], **none).shape == (0,)


def test_transformations():
    a = matrices(5, 4, 3, grad=False)
    one_by_one = torch.stack([linalg_svd(x).U for x in a])
    assert torch.allclose(torch.func.vmap(linalg_svd)(a).U, one_by_one)
    assert torch.allclose(torch.func.vmap(linalg_svd, in_dims=2)(a.movedim(0, 2)).U, one_by_one)
    jacobian = torch.func.jacrev(linalg_svdvals)(a[0])
    U, _, Vh = linalg_svd(a[0])
    assert torch.allclose(jacobian, torch.einsum("ik,kj->kij", U, Vh))
    assert torch.allclose(jacobian, torch.func.jacfwd(linalg_svdvals)(a[0]))
    with pytest.raises(NotImplementedError, match="transformation"):
        torch.func.vmap(lambda x: linalg_svdvals(x, select="v", select_range=(0, 1)))(a)


def test_what_is_refused():
    for a in (np.ones((2, 2)), [[1.0]], None):
        with pytest.raises(TypeError, match="a must be a tensor"):
            linalg_svd(a)
    for dtype in (torch.float16, torch.bfloat16):
        with pytest.raises(TypeError, match="a has dtype"):
            linalg_svdvals(torch.ones(3, 3).to(dtype))
    with pytest.raises(np.linalg.LinAlgError, match="1-dimensional"):
        linalg_svd(torch.ones(3))
    with pytest.raises(ValueError, match="values only"):
        linalg_svd(torch.ones(3, 3), method="bisect")
    with pytest.raises(ValueError, match="out of range"):
        linalg_svd(torch.ones(3, 4), select="i", select_range=(0, 3))
    assert linalg_svdvals(torch.ones(3, 3, dtype=torch.int32)).dtype == torch.float64
    assert tsvd.torch.linalg_svd is linalg_svd


# ---- complex matrices ----


def complex_matrices(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.complex128, requires_grad=True)


def without_phases(a):
    """What phases of vectors do not change."""
    U, S, Vh = linalg_svd(a, device="cpu")
    return S, U.abs() ** 2, Vh.abs() ** 2, U @ Vh, (U * S.exp()[..., None, :]) @ Vh


@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives_of_complex_matrices(shape):
    a = complex_matrices(*shape)
    torch.autograd.gradcheck(without_phases, a, check_forward_ad=True)
    torch.autograd.gradgradcheck(without_phases, a)
    torch.autograd.gradcheck(linalg_svdvals, a, check_forward_ad=True, check_batched_grad=True)
    torch.autograd.gradgradcheck(linalg_svdvals, a)


@pytest.mark.parametrize("shape", SHAPES)
def test_complex_derivatives_are_those_of_pytorch(shape):
    a, b = complex_matrices(*shape), complex_matrices(*shape)
    for x, svd in ((a, linalg_svd), (b, lambda x: torch.linalg.svd(x, full_matrices=False))):
        U, S, Vh = svd(x)
        product = (U * S.exp()[..., None, :]) @ Vh
        (product.abs().sum() + (U.abs() ** 4).sum() + S[..., 0].sum()).backward()
    assert torch.allclose(a.grad, b.grad, rtol=1e-9)


def test_a_loss_that_depends_on_phases_is_refused():
    for loss in (lambda r: r.U.sum().real, lambda r: r.Vh[..., 0].sum().imag):
        with pytest.raises(RuntimeError, match="phases"):
            loss(linalg_svd(complex_matrices(4, 3))).backward()


def test_views_of_conjugates():
    a = complex_matrices(4, 3).detach().conj()
    result, expected = linalg_svd(a.mT), linalg.svd(a.mT.resolve_conj().numpy(), False)
    assert a.is_conj() and all(
        np.array_equal(x.numpy(), y) for x, y in zip(result, expected, strict=True)
    )
    out = torch.empty(4, 3, dtype=torch.complex128).conj()
    with pytest.raises(ValueError, match="resolve_conj"):
        linalg.svd(a, False, out=(out, torch.empty(3, dtype=torch.float64), out[:3]))
