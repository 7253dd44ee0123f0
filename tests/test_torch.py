"""tsvd.torch: results, derivatives, transformations of torch.func and torch.compile."""

import doctest
import itertools
import subprocess
import sys

import mpmath
import numpy as np
import pytest

import tsvd

torch = pytest.importorskip("torch")

import tsvd.torch  # noqa: E402

# PyTorch's own forward mode warns of PyTorch's own use of it.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

KINDS = pytest.mark.parametrize("lower", [False, True], ids=["upper", "lower"])


def _tensors(n, *batch, seed=0, dtype=torch.float64, device="cpu"):
    """Random d and e that require gradients."""
    random = np.random.default_rng(seed)
    d, e = random.normal(size=(*batch, n)), random.normal(size=(*batch, max(n - 1, 0)))
    # Not straight from NumPy: gradcheck takes no strides of 0, which its empty arrays have.
    return tuple(
        torch.empty(x.shape, dtype=dtype, device=device).copy_(torch.tensor(x)).requires_grad_()
        for x in (d, e)
    )


def _dense(d, e, lower):
    return torch.diag_embed(d) + torch.diag_embed(e, offset=-1 if lower else 1)


def _dense_svd(d, e, lower):
    """By PyTorch, with the signs of tsvd."""
    U, s, Vh = torch.linalg.svd(_dense(d, e, lower))
    at = U.detach().abs().argmax(-2, keepdim=True)
    sign = U.detach().gather(-2, at).sign()
    return U * sign, s, Vh * sign.mT


def _loss(L, s, R):
    """A function of all entries, with other weights for each."""
    total = 0
    for x, start in ((L, 0.3), (s, 0.7), (R, 1.1)):
        total = (
            total + (x * torch.cos(start + torch.arange(x.numel()).reshape(x.shape).to(x))).sum()
        )
    return total


# ---- results ----


@KINDS
def test_results_are_those_of_tsvd(lower):
    d, e = _tensors(20, 3)
    expected = tsvd.svd(d.detach().numpy(), e.detach().numpy(), lower=lower)
    for got, want in zip(tsvd.torch.svd(d, e, lower=lower), expected, strict=True):
        assert isinstance(got, torch.Tensor) and got.requires_grad
        np.testing.assert_array_equal(got.detach().numpy(), want)
    values = tsvd.torch.svdvals(d, e, lower=lower).detach().numpy()
    np.testing.assert_array_equal(
        values, tsvd.svdvals(d.detach().numpy(), e.detach().numpy(), lower=lower)
    )


def test_importing_tsvd_imports_no_torch():
    code = "import sys, tsvd; sys.exit('torch' in sys.modules or 'jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("d", "e", "dtype"),
    [
        (torch.float32, torch.float32, torch.float32),
        (torch.float32, torch.float64, torch.float64),
        (torch.int32, torch.int64, torch.float64),
        (torch.int64, torch.float32, torch.float64),
    ],
    ids=str,
)
def test_dtypes(d, e, dtype):
    result = tsvd.torch.svd(torch.tensor([3, 2], dtype=d), torch.tensor([1], dtype=e))
    assert all(x.dtype == dtype for x in result)
    assert (
        tsvd.torch.svdvals(torch.tensor([3, 2], dtype=d), torch.tensor([1], dtype=e)).dtype == dtype
    )


@pytest.mark.parametrize("dtype", [torch.complex128, torch.float16, torch.bfloat16], ids=str)
def test_refused_dtypes(dtype):
    with pytest.raises(TypeError):
        tsvd.torch.svd(torch.ones(3, dtype=dtype), torch.ones(2, dtype=dtype))


def test_errors():
    d = torch.ones(3, dtype=torch.float64)
    with pytest.raises(TypeError, match="e must be a tensor of PyTorch, not list"):
        tsvd.torch.svd(d, [1.0, 1.0])
    with pytest.raises(ValueError):
        tsvd.torch.svd(d, d)
    with pytest.raises(ValueError):
        tsvd.torch.svdvals(torch.ones(2, 3), torch.ones(4, 2))
    with pytest.raises(ValueError, match="NaN"):
        tsvd.torch.svdvals(d * torch.nan, d[1:])
    for tensor in (d, d.clone().requires_grad_()):
        with pytest.raises(ValueError, match=r"select_range=\(0, 3\) is out of range"):
            tsvd.torch.svd(tensor, tensor[1:], select="i", select_range=(0, 3))
        with pytest.raises(ValueError, match="needs select_range"):
            tsvd.torch.svd(tensor, tensor[1:], select="i")
        with pytest.raises(TypeError, match="two integers"):
            tsvd.torch.svdvals(tensor, tensor[1:], select="i", select_range=(0, 1.5))
        with pytest.raises(ValueError, match="0 <= min <= max"):
            tsvd.torch.svd(tensor, tensor[1:], select="i", select_range=(2, 1))


@pytest.mark.parametrize("function", [tsvd.torch.svd, tsvd.torch.svdvals])
def test_docstring_examples(function):
    (examples,) = doctest.DocTestFinder(recurse=False).find(function, "example", globs={})
    failed, tried = doctest.DocTestRunner().run(examples)
    assert tried > 0 and failed == 0


# ---- derivatives of first order ----


@KINDS
@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("batch", [(), (2,), (2, 0)], ids=str)
def test_gradcheck(n, batch, lower):
    d, e = _tensors(n, *batch)
    for function in (tsvd.torch.svd, tsvd.torch.svdvals):
        assert torch.autograd.gradcheck(
            lambda d, e, f=function: f(d, e, lower=lower), (d, e), check_forward_ad=True
        )


@KINDS
@pytest.mark.parametrize("n", [6, 40, 600])
def test_gradients_of_the_dense_svd(n, lower):
    """PyTorch differentiates the SVD of the dense matrix by formulas of its own."""
    d, e = _tensors(n, seed=n)
    with torch.no_grad():
        d += 4 * d.sign()  # no value is so small that the dense SVD loses it
    _loss(*tsvd.torch.svd(d, e, lower=lower)).backward()
    expected = torch.autograd.grad(_loss(*_dense_svd(d, e, lower)), (d, e))
    for got, want in zip((d.grad, e.grad), expected, strict=True):
        assert torch.allclose(got, want, rtol=0, atol=1e-9 * want.abs().max())


@KINDS
def test_float32(lower):
    single, double = (_tensors(12, 4, dtype=dtype) for dtype in (torch.float32, torch.float64))
    for d, e in (single, double):
        _loss(*tsvd.torch.svd(d, e, lower=lower)).backward()
    for got, want in zip(single, double, strict=True):
        assert got.grad.dtype == torch.float32
        assert torch.allclose(
            got.grad.double(), want.grad, rtol=1e-2, atol=1e-4 * want.grad.abs().max()
        )


def test_mixed_dtypes_give_each_its_own():
    d, e = _tensors(5)
    d32 = d.detach().float().requires_grad_()
    tsvd.torch.svdvals(d32, e).sum().backward()
    assert d32.grad.dtype == torch.float32 and e.grad.dtype == torch.float64


def test_only_one_of_both_requires_a_gradient():
    d, e = _tensors(5)
    full = torch.autograd.grad(_loss(*tsvd.torch.svd(d, e)), (d, e))
    for i in range(2):
        one = [x.detach().requires_grad_(i == j) for j, x in enumerate((d, e))]
        _loss(*tsvd.torch.svd(*one)).backward()
        assert torch.equal(one[i].grad, full[i]) and one[1 - i].grad is None


def test_broadcasting_sums_gradients():
    d, e = _tensors(4, 3, 1)[0], _tensors(4, 2, seed=1)[1]
    assert torch.autograd.gradcheck(lambda *x: tsvd.torch.svd(*x), (d, e))
    assert torch.autograd.gradcheck(tsvd.torch.svdvals, (d, e))


def test_strides():
    base = torch.randn(4, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    views = {
        "transposed": (base.T[:4, :3].T, base.T[5:8, :3].T),
        "steps": (base[:, ::3], base[:, 1:10:3]),
        "expanded": (base[:1, :4].expand(3, 4), base[:1, 4:7].expand(3, 3)),
    }
    for d, e in views.values():
        copies = [x.clone(memory_format=torch.contiguous_format).requires_grad_() for x in (d, e)]
        d, e = (x.detach().requires_grad_() for x in (d, e))
        for x in ((d, e), copies):
            _loss(*tsvd.torch.svd(*x)).backward()
        assert torch.equal(d.grad, copies[0].grad) and torch.equal(e.grad, copies[1].grad)


def _reference_gradient(d, e, lower):
    """ds_k/d(d, e) in 40 digits, from the eigenvectors of the Golub-Kahan matrix of order 2n."""
    n = len(d)
    with mpmath.workdps(40):
        A = mpmath.zeros(2 * n)
        for i in range(n):
            A[i, n + i] = A[n + i, i] = mpmath.mpf(d[i])
        for i in range(n - 1):
            row, column = (i + 1, i) if lower else (i, i + 1)
            A[row, n + column] = A[n + column, row] = mpmath.mpf(e[i])
        values, vectors = mpmath.eigsy(A)
        order = sorted(range(2 * n), key=lambda j: -values[j])[:n]
        pairs = [(i, i) for i in range(n)]
        pairs += [(i + 1, i) if lower else (i, i + 1) for i in range(n - 1)]
        jacobian = [
            [float(2 * vectors[row, k] * vectors[n + column, k]) for row, column in pairs]
            for k in order
        ]
    return np.array(jacobian)


@KINDS
@pytest.mark.parametrize("grade", [0.5, 1e-2], ids=str)
def test_jacobian_of_values_in_extended_precision(lower, grade):
    random = np.random.default_rng(5)
    d, e = random.uniform(1, 2, 6) * grade ** np.arange(6), random.uniform(1, 2, 5)
    e *= grade ** np.arange(1, 6)
    tensors = [torch.tensor(x) for x in (d, e)]
    got = torch.cat(
        torch.func.jacrev(lambda *x: tsvd.torch.svdvals(*x, lower=lower), (0, 1))(*tensors), -1
    )
    np.testing.assert_allclose(got.numpy(), _reference_gradient(d, e, lower), rtol=0, atol=1e-13)


@KINDS
@pytest.mark.parametrize("grade", [1, 0.3], ids=str)
def test_derivatives_of_vectors_in_extended_precision(lower, grade):
    """The derivative along a direction, by central differences in 50 digits."""
    n, random = 5, np.random.default_rng(9)
    d, e = random.uniform(1, 2, n) * grade ** np.arange(n), random.uniform(1, 2, n - 1)
    e *= grade ** np.arange(1, n)
    dd, de = random.normal(size=n), random.normal(size=n - 1)

    def at(t):
        B = mpmath.zeros(n)
        for i in range(n):
            B[i, i] = mpmath.mpf(d[i]) + t * mpmath.mpf(dd[i])
        for i in range(n - 1):
            row, column = (i + 1, i) if lower else (i, i + 1)
            B[row, column] = mpmath.mpf(e[i]) + t * mpmath.mpf(de[i])
        L, s, R = mpmath.svd_r(B)
        for k in range(n):
            if max(L[:, k], key=abs) < 0:
                L[:, k] *= -1
                R[k, :] *= -1
        return L, s, R

    with mpmath.workdps(50):
        step = mpmath.mpf(10) ** -20
        ends = zip(at(step), at(-step), strict=True)
        want = [np.array(((a - b) / (2 * step)).tolist(), dtype=float) for a, b in ends]
    want[1] = want[1][:, 0]
    primals, tangents = (tuple(map(torch.tensor, pair)) for pair in ((d, e), (dd, de)))
    result, got = torch.func.jvp(lambda *x: tsvd.torch.svd(*x, lower=lower), primals, tangents)
    gap = -result.s.diff().max().item()
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=0, atol=1e-14 / gap * abs(b).max())


# ---- equal and zero values ----


@pytest.mark.parametrize(
    ("d", "e"),
    [
        ([1.0, 1, 1, 1], [0.0, 0, 0]),
        ([2.0, 1, 2, 1], [1.0, 0, 1]),
        ([0.0, 0, 0, 0], [0.0, 0, 0]),
        ([1.0, 0, 1, 0], [1.0, 1, 1]),
        ([1.0, 0, 3, 2], [1.0, 0, 1]),
        ([1e-320, 3e-320, 0, 1], [0.0, 0, 0]),
        ([1e300, 1e-300, 1e300, 1], [1.0, 0, 1e200]),
    ],
)
def test_values_always_have_finite_gradients(d, e):
    d, e = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (d, e))
    tsvd.torch.svdvals(d, e).sum().backward()
    assert torch.isfinite(d.grad).all() and torch.isfinite(e.grad).all()
    assert d.grad.abs().max() <= 4 and e.grad.abs().max() <= 4
    L, s, R = tsvd.torch.svd(d, e)
    grads = torch.autograd.grad(_loss(L, s, R), (d, e))
    assert all(torch.isfinite(g).all() for g in grads)


@KINDS
@pytest.mark.parametrize("name", ["projectors", "sums", "polar"])
def test_equal_values_are_exact_for_what_they_share(name, lower):
    """Two equal blocks: every value is there twice."""
    block = [x.detach() for x in _tensors(3, seed=4)]
    d = torch.cat([block[0], block[0]]).requires_grad_()
    e = torch.cat([block[1], block[1].new_zeros(1), block[1]]).requires_grad_()
    weights = torch.linspace(-1, 2, 36, dtype=torch.float64).reshape(6, 6) ** 2

    def loss(d, e):
        L, s, R = tsvd.torch.svd(d, e, lower=lower)
        if name == "projectors":
            return ((L[:, :2] @ L[:, :2].mT - R[2:4].mT @ R[2:4] / 3) * weights).sum()
        return (s[:2].sum() * s[2:4].sum() ** 2) if name == "sums" else ((L @ R) * weights).sum()

    got = torch.autograd.grad(loss(d, e), (d, e))
    step = 1e-5
    for which, grad in enumerate(got):
        for i in range(len(grad)):
            ends = []
            for sign in (1, -1):
                moved = [x.detach().clone() for x in (d, e)]
                moved[which][i] += sign * step
                ends.append(loss(*moved))
            assert abs((ends[0] - ends[1]) / (2 * step) - grad[i]) < 1e-7


def test_a_zero_value():
    """One zero value: vectors are differentiable, values as |x| by the sign that was chosen."""
    d, e = torch.tensor([2.0, 0.0, 1.0]).double(), torch.tensor([1.0, 3.0]).double()
    weights = torch.linspace(-1, 2, 9, dtype=torch.float64).reshape(3, 3)

    def loss(d, e):
        L, _, R = tsvd.torch.svd(d, e)
        return ((L[:, 2:] @ L[:, 2:].mT + 2 * R[2:].mT @ R[2:]) * weights).sum()

    assert torch.autograd.gradcheck(loss, (d.requires_grad_(), e.requires_grad_()))
    s = tsvd.torch.svdvals(d, e)
    assert s[2].abs() < 1e-15
    L, _, R = tsvd.torch.svd(d.detach(), e.detach())
    assert torch.allclose(torch.autograd.grad(s[2], d)[0], L[:, 2] * R[2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_values_that_differ_by_rounding(dtype):
    """1/gap makes no huge numbers out of rounding errors; a loss that tells them apart has them."""
    ulp = torch.finfo(dtype).eps
    d = torch.tensor([1.0, 1 + ulp, 3.0, 1 - 2 * ulp], dtype=dtype, requires_grad=True)
    e = torch.zeros(3, dtype=dtype, requires_grad=True)
    L, s, R = tsvd.torch.svd(d, e)
    equal = L[:, 1:]
    for loss in (s[1:].sum(), (equal @ equal.mT).diagonal() @ d.detach(), (L @ R)[0, 1]):
        gradients = torch.autograd.grad(loss, (d, e), retain_graph=True)
        assert all(abs(gradient).max() < 10 for gradient in gradients)
    assert abs(torch.autograd.grad(L[0, 1] + L[1, 1], e)[0]).max() > 0.1 / ulp
    d = torch.tensor([1.0, 1.0, 3.0], dtype=dtype, requires_grad=True)  # there is no gap
    e = torch.zeros(2, dtype=dtype, requires_grad=True)
    _loss(*tsvd.torch.svd(d, e)).backward()
    assert abs(d.grad).max() < 10 and abs(e.grad).max() < 10


# ---- select ----


@pytest.mark.parametrize("select_range", [(0, 0), (1, 3), (5, 5), (0, 5)], ids=str)
def test_select_has_the_gradients_of_the_whole(select_range):
    d, e = _tensors(6, 2)
    part = slice(select_range[0], select_range[1] + 1)
    whole = tsvd.torch.svd(d, e)
    whole = (whole.L[..., part], whole.s[..., part], whole.R[..., part, :])
    expected = torch.autograd.grad(_loss(*whole), (d, e), retain_graph=True)
    selected = tsvd.torch.svd(d, e, select="i", select_range=select_range)
    for got, want in zip(torch.autograd.grad(_loss(*selected), (d, e)), expected, strict=True):
        assert torch.equal(got, want)
    expected = torch.autograd.grad(whole[1].square().sum(), (d, e))
    values = tsvd.torch.svdvals(d, e, select="i", select_range=select_range)
    for got, want in zip(torch.autograd.grad(values.square().sum(), (d, e)), expected, strict=True):
        assert torch.allclose(got, want, rtol=1e-12, atol=1e-12)


def test_select_without_gradients_computes_the_part(monkeypatch):
    seen = []
    svd = tsvd.torch._api.svd
    monkeypatch.setattr(
        tsvd.torch._api, "svd", lambda *x, **options: seen.append(options) or svd(*x, **options)
    )
    d, e = _tensors(6)
    with torch.no_grad():
        assert tsvd.torch.svd(d, e, select="i", select_range=(1, 2)).L.shape == (6, 2)
    assert seen[-1]["select_range"] == (1, 2)
    tsvd.torch.svd(d, e, select="i", select_range=(1, 2))
    assert "select_range" not in seen[-1]
    tsvd.torch.svdvals(d, e)
    assert not seen[-1]["compute_uv"]


def test_select_by_interval():
    d, e = _tensors(6)
    s = tsvd.torch.svdvals(d, e).detach()
    bounds = ((s[3] + s[4]) / 2).item(), ((s[0] + s[1]) / 2).item()
    by_index = tsvd.torch.svd(d, e, select="i", select_range=(1, 3))
    by_value = tsvd.torch.svd(d, e, select="v", select_range=bounds)
    for got, want in zip(by_value, by_index, strict=True):
        assert torch.equal(got, want)
    values = tsvd.torch.svdvals(d, e, select="v", select_range=bounds)
    assert torch.equal(values.detach(), s[1:4])
    empty = tsvd.torch.svd(d, e, select="v", select_range=(s[0].item() * 2, 1e9))
    assert [x.shape for x in empty] == [(6, 0), (0,), (0, 6)]
    assert sum(x.sum() for x in empty) == 0
    assert tsvd.torch.svdvals(d, e, select="v", select_range=(-2, -1)).shape == (0,)
    with pytest.raises(NotImplementedError, match=r"torch\.func"):
        torch.func.grad(lambda d: tsvd.torch.svdvals(d, e, select="v", select_range=bounds).sum())(
            d
        )


@pytest.mark.parametrize("method", ["qr", "dc", "givens", "bisect"])
def test_every_method_has_gradients(method):
    d, e = _tensors(6)
    expected = torch.autograd.grad(tsvd.torch.svdvals(d, e).sum(), (d, e))
    got = torch.autograd.grad(tsvd.torch.svdvals(d, e, method=method).sum(), (d, e))
    assert all(torch.allclose(a, b) for a, b in zip(got, expected, strict=True))
    if method == "bisect":
        with pytest.raises(ValueError, match="values only"):
            tsvd.torch.svd(d, e, method=method)
    else:
        assert torch.autograd.gradcheck(lambda *x: tsvd.torch.svd(*x, method=method), (d, e))


# ---- higher order and torch.func ----


@KINDS
def test_second_derivatives(lower):
    d, e = _tensors(4, 2)
    for function in (tsvd.torch.svd, tsvd.torch.svdvals):
        assert torch.autograd.gradgradcheck(
            lambda d, e, f=function: f(d, e, lower=lower), (d, e), check_fwd_over_rev=True
        )


def test_vmap():
    d, e = (x.detach() for x in _tensors(5, 3, 2))
    expected = tsvd.torch.svd(d, e)
    for dims in ((0, 0), (1, 1)):
        moved = torch.func.vmap(tsvd.torch.svd, dims, dims[0])(d, e)
        # A result's own dimensions come after those of the batch.
        for got, want in zip(moved, expected, strict=True):
            assert torch.equal(got, want)
    assert torch.equal(torch.func.vmap(torch.func.vmap(tsvd.torch.svdvals))(d, e), expected.s)
    one = torch.func.vmap(tsvd.torch.svdvals, (0, None))(d[:, 0], e[0, 0])
    assert torch.equal(one, tsvd.torch.svdvals(d[:, 0], e[0, 0]))
    part = torch.func.vmap(lambda d, e: tsvd.torch.svd(d, e, select="i", select_range=(0, 1)).R)
    assert torch.allclose(part(d, e), expected.R[..., :2, :])


@pytest.mark.parametrize("function", ["svd", "svdvals"])
def test_jacobians_by_both_modes(function):
    d, e = (x.detach() for x in _tensors(4))

    def entries(d, e):
        result = getattr(tsvd.torch, function)(d, e)
        return torch.cat([x.flatten() for x in result]) if function == "svd" else result

    expected = torch.autograd.functional.jacobian(entries, (d, e))
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        for got, want in zip(transform(entries, (0, 1))(d, e), expected, strict=True):
            assert torch.allclose(got, want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("function", ["svd", "svdvals"])
def test_gradients_of_each_matrix_of_a_batch(function):
    """grad within vmap, and vmap within grad."""
    d, e = _tensors(4, 3)

    def loss(d, e):
        result = getattr(tsvd.torch, function)(d, e)
        return _loss(*result) if function == "svd" else (result**3).sum()

    each = torch.func.vmap(torch.func.grad(loss))(d.detach(), e.detach())
    total = torch.func.grad(lambda d: torch.func.vmap(loss)(d, e.detach()).sum())(d.detach())
    expected = torch.autograd.grad(sum(loss(*x) for x in zip(d, e, strict=True)), d)[0]
    assert torch.allclose(each, expected) and torch.allclose(total, expected)


def test_hessians():
    d, e = (x.detach() for x in _tensors(4))

    def loss(d):
        return (tsvd.torch.svdvals(d, e) ** 3).sum()

    expected = torch.autograd.functional.hessian(loss, d)
    for outer in (torch.func.jacfwd, torch.func.jacrev):
        got = outer(torch.func.jacrev(loss))(d)
        assert torch.allclose(got, expected, rtol=1e-9, atol=1e-10)
    # s(d + t) to second order, from the values alone.
    step, direction = 1e-4, torch.tensor([1.0, -2.0, 0.5, 1.0], dtype=torch.float64)
    ends = loss(d + step * direction) - 2 * loss(d) + loss(d - step * direction)
    assert abs(ends / step**2 - direction @ expected @ direction) < 1e-5 * expected.abs().max()


def test_threads_and_backward():
    from concurrent.futures import ThreadPoolExecutor

    def gradient(seed):
        d, e = _tensors(30, 2, seed=seed)
        _loss(*tsvd.torch.svd(d, e)).backward()
        return d.grad

    expected = [gradient(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for got, want in zip(pool.map(gradient, range(8)), expected, strict=True):
            assert torch.equal(got, want)


def test_a_gradient_descends():
    """An inverse problem: a bidiagonal with given values."""
    wanted = torch.tensor([4.0, 3.0, 2.0, 1.0], dtype=torch.float64)
    d, e = _tensors(4, seed=8)
    optimizer = torch.optim.LBFGS([d, e], line_search_fn="strong_wolfe", max_iter=100)

    def closure():
        optimizer.zero_grad()
        loss = (tsvd.torch.svdvals(d, e) - wanted).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert closure() < 1e-10


@pytest.mark.filterwarnings("default:The .grad attribute")  # by PyTorch's compiler itself
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")
def test_compile():
    """torch.compile runs it between its graphs; the eager back end needs no compiler."""
    d, e = _tensors(4)

    def loss(d, e):
        return (tsvd.torch.svdvals(d * 2, e) ** 2).sum() + tsvd.torch.svd(d, e).L[0, 0]

    compiled = torch.compile(loss, backend="eager")
    expected = torch.autograd.grad(loss(d, e), (d, e))
    got = torch.autograd.grad(compiled(d, e), (d, e))
    assert all(torch.allclose(a, b) for a, b in zip(got, expected, strict=True))


# ---- CUDA ----


@pytest.mark.cuda
@KINDS
def test_cuda(cuda, lower):
    d, e = _tensors(50, 3, device="cuda")
    result = tsvd.torch.svd(d, e, lower=lower)
    _loss(*result).backward()
    host = [x.detach().cpu().requires_grad_() for x in (d, e)]
    _loss(*tsvd.torch.svd(*host, lower=lower)).backward()
    assert all(x.is_cuda for x in result)
    for got, want in zip((d, e), host, strict=True):
        assert got.grad.is_cuda
        assert torch.allclose(
            got.grad.cpu(), want.grad, rtol=1e-6, atol=1e-8 * want.grad.abs().max()
        )


@pytest.mark.cuda
def test_cuda_gradcheck(cuda):
    d, e = _tensors(4, 2, device="cuda")
    for function in (tsvd.torch.svd, tsvd.torch.svdvals):
        # The values of a CUDA device may be off by an ulp between two calls of other batches.
        assert torch.autograd.gradcheck(function, (d, e), nondet_tol=1e-12)
        assert torch.autograd.gradgradcheck(function, (d, e), nondet_tol=1e-12)


def test_all_nestings_of_third_derivatives():
    """The product of three values is |d_0 d_1 d_2|."""
    d, e = (x.detach().abs() + 0.1 for x in _tensors(3, seed=5))
    expected = torch.zeros(3, 3, 3, dtype=d.dtype)
    for indices in itertools.permutations(range(3)):
        expected[indices] = 1

    def product(d):
        return tsvd.torch.svdvals(d, e).prod()

    def of_vectors(d):
        L, s, R = tsvd.torch.svd(d, e)
        return (L * s**2)[0].sum() + (R.mT * s).square()[:, 0].sum()

    jacobians = torch.func.jacfwd, torch.func.jacrev
    reverse = torch.func.jacrev(torch.func.jacrev(torch.func.jacrev(of_vectors)))(d)
    for first, second, third in itertools.product(jacobians, repeat=3):
        found = first(second(third(product)))(d)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
        found = first(second(third(of_vectors)))(d)
        torch.testing.assert_close(found, reverse, rtol=1e-10, atol=1e-10)


def test_results_are_where_the_input_is():
    d, e = _tensors(4)
    with torch.device("meta"):
        s = tsvd.torch.svdvals(d, e)
        L = tsvd.torch.svd(d, e).L
    assert s.device == L.device == d.device
    s.sum().backward()


@pytest.mark.parametrize("wrong", [{"method": "foo"}, {"eps": -1}, {"max_sweeps": -3}])
def test_options_are_checked_where_an_interval_is_empty(wrong):
    d, e = _tensors(4)
    for function in (tsvd.torch.svd, tsvd.torch.svdvals):
        with pytest.raises(ValueError):
            function(d, e, select="v", select_range=(100.0, 200.0), **wrong)
    with pytest.raises(ValueError, match="values only"):
        tsvd.torch.svd(d, e, select="v", select_range=(100.0, 200.0), method="bisect")


def test_plain_calls_refuse_what_they_would_lose():
    d, e = (x.detach() for x in _tensors(3))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(d, torch.ones_like(d))
        with pytest.raises(ValueError, match=r"tsvd\.torch"):
            tsvd.svdvals(dual, e)
    with pytest.raises(ValueError, match=r"tsvd\.torch"):
        torch.func.vmap(lambda d: tsvd.svdvals(d, e))(d[None])
    out = tuple(torch.zeros(shape, dtype=d.dtype) for shape in ((3, 3), (3,), (3, 3)))
    with pytest.raises(ValueError, match="resolve_neg"):
        tsvd.svd(d, e, out=(out[0], torch._neg_view(out[1]), out[2]))
