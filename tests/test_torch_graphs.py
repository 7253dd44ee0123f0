"""Functions of tsvd.torch within graphs and transformations of PyTorch: each right, or refused."""

import warnings

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import tsvd.torch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch warns of PyTorch's own use of itself

# Before this release the graph breaks.
FOLLOWS_GRAD = torch.__version__ >= (2, 15)
DTYPES = [torch.float64, torch.complex128]


def random(shape, dtype, device, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=dtype, generator=generator).to(device)


# ---- losses of a matrix, which do not depend on signs and phases ----


def weights(n, like):
    return torch.arange(1.0, n + 1.0, dtype=like.real.dtype, device=like.device)


def squares(x):
    return (x * x.conj()).real.sum()


def of_vectors(U, S, Vh):
    p = S.shape[-1]
    space = (U * weights(p, U)) @ U.mH
    other = (Vh.mH * weights(p, U)) @ Vh
    return (space.abs() ** 2).sum() + (other[..., 0, :].abs() ** 2).sum() + (S**3).sum()


def bidiagonal(function):
    def loss(a):
        a = a.real if a.is_complex() else a
        return function(a[..., :4, 0], a[..., :3, 1])

    return loss


LOSSES = {
    "svd": bidiagonal(lambda d, e: of_vectors(*tsvd.torch.svd(d, e))),
    "svd, two values": bidiagonal(
        lambda d, e: of_vectors(*tsvd.torch.svd(d, e, select="i", select_range=(1, 2)))
    ),
    "svdvals": bidiagonal(lambda d, e: (tsvd.torch.svdvals(d, e) ** 3).sum()),
    "linalg_svd": lambda a: of_vectors(*tsvd.torch.linalg_svd(a)),
    "linalg_svdvals": lambda a: (tsvd.torch.linalg_svdvals(a, method="dc") ** 3).sum(),
    "linalg_inv": lambda a: squares(tsvd.torch.linalg_inv(a.mT @ a)),
    "linalg_pinv": lambda a: squares(tsvd.torch.linalg_pinv(a, rtol=1e-10)),
    "linalg_lstsq": lambda a: squares(tsvd.torch.linalg_lstsq(a[None], a[None, :, :2].sin())[0]),
    "linalg_polar": lambda a: (tsvd.torch.linalg_polar(a)[0] * a.conj()[..., :1]).abs().sum(),
    "linalg_low_rank": lambda a: (tsvd.torch.linalg_low_rank(a, 2).abs() ** 3).sum(),
    "linalg_nuclear_norm": lambda a: tsvd.torch.linalg_nuclear_norm(a) ** 2,
}


# ---- what is made of them, at b; a is another matrix of the shape ----


def compiled(backend, transform=lambda f: f, fullgraph=True):
    return lambda f, a, b: torch.compile(transform(f), backend=backend, fullgraph=fullgraph)(b)


def backward(backend, fullgraph=True):
    def call(f, a, b):
        x = b.clone().requires_grad_()
        torch.compile(f, backend=backend, fullgraph=fullgraph)(x).backward()
        return x.grad

    return call


def exported(f, a, b):
    class Module(torch.nn.Module):
        def forward(self, a):
            return f(a)

    return torch.export.export(Module(), (a,)).module()(b)


def broken(transform):
    """A break of the graph is allowed."""
    return lambda f, a, b: torch.compile(transform(f), backend="aot_eager")(b)


def pushed(f):
    return lambda x: torch.func.jvp(f, (x,), (x.cos(),))[1]


def vectorized(strategy):
    def call(f, a, b):
        jacobian = torch.autograd.functional.jacobian(f, b, vectorize=True, strategy=strategy)
        return jacobian.conj() if b.is_complex() and strategy == "reverse-mode" else jacobian

    return call


def value(f, b):
    return f(b)


def gradient(f, b):
    x = b.clone().requires_grad_()
    return torch.autograd.grad(f(x), x)[0]


def hessian(f, b):
    return torch.autograd.functional.hessian(f, b)


def directional(f, b):
    g = gradient(f, b)
    return (g.conj() * b.cos()).sum().real


def both(f, b):
    return torch.stack([f(b), f(2 * b)])


CALLS = {
    "compile": (compiled("eager"), value),
    "compile, aot_eager": (compiled("aot_eager"), value),
    "compile, inductor": (compiled("inductor"), value),
    "compile, backward": (backward("aot_eager"), gradient),
    "compile of func.grad": (compiled("aot_eager", torch.func.grad, FOLLOWS_GRAD), gradient),
    "compile of func.vmap": (
        lambda f, a, b: torch.compile(torch.vmap(f), backend="aot_eager", fullgraph=True)(
            torch.stack([b, 2 * b])
        ),
        both,
    ),
    "compile of func.jvp": (broken(pushed), directional),
    "compile of func.hessian": (broken(torch.func.hessian), hessian),
    "export": (exported, value),
    "make_fx": (lambda f, a, b: make_fx(f)(a)(b), value),
    "make_fx, symbolic": (lambda f, a, b: make_fx(f, tracing_mode="symbolic")(a)(b), value),
    "make_fx of func.grad": (lambda f, a, b: make_fx(torch.func.grad(f))(a)(b), gradient),
    "jit.trace": (lambda f, a, b: torch.jit.trace(f, (a,))(b), value),
    "func.grad": (lambda f, a, b: torch.func.grad(f)(b), gradient),
    "func.jvp": (lambda f, a, b: pushed(f)(b), directional),
    "func.vmap": (lambda f, a, b: torch.vmap(f)(torch.stack([b, 2 * b])), both),
    "func.hessian": (lambda f, a, b: torch.func.hessian(f)(b), hessian),
    "func.jacrev of grad": (lambda f, a, b: torch.func.jacrev(torch.func.grad(f))(b), hessian),
    "jacobian, forward, together": (vectorized("forward-mode"), gradient),
}
OF_REALS = ("hessian", "jacrev", "forward")  # PyTorch has them of real matrices only


# PyTorch traces comparisons of sizes, and then stumbles over its own trace.
REFUSED = {("linalg_polar", "jit.trace"): "INTERNAL ASSERT"}


@pytest.mark.parametrize("dtype", DTYPES, ids=["float64", "complex128"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", LOSSES)
def test_every_transformation(name, call, dtype, device):
    if dtype.is_complex and (any(of in call for of in OF_REALS) or "svd" in name[:4]):
        pytest.skip("of real matrices only")
    f, (transformed, right) = LOSSES[name], CALLS[call]
    a, b = random((6, 4), dtype, device, 0), random((6, 4), dtype, device, 1)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if (name, call) in REFUSED:
            with pytest.raises(RuntimeError, match=REFUSED[name, call]):
                transformed(f, a, b)
            return
        found, expected = transformed(f, a, b), right(f, b)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_operators_without_a_derivative_say_so(mode, device):
    a = random((3, 3), torch.float64, device, 0)
    with pytest.raises(NotImplementedError, match=r"tsvd\.torch has the function"):
        if mode == "reverse":
            torch.ops.tsvd.linalg_svdvals(a.requires_grad_())
        else:
            torch.func.jvp(torch.ops.tsvd.linalg_svdvals, (a,), (a,))
    with torch.no_grad():
        assert torch.ops.tsvd.linalg_svdvals(a).shape == (3,)


def test_intervals_break_the_graph(device):
    a = random((6, 4), torch.float64, device, 0)

    def f(a):
        return tsvd.torch.linalg_svd(a, select="v", select_range=(0.5, 2.5)).S.sum()

    torch._dynamo.reset()
    torch.testing.assert_close(backward("aot_eager", fullgraph=False)(f, a, a), gradient(f, a))
    for transformation in (make_fx(f), torch.func.grad(f)):
        with pytest.raises(NotImplementedError, match='use select="i"'):
            transformation(a)


@pytest.mark.parametrize("order", ["vmap of grad", "grad of vmap", "backward of vmap"])
@pytest.mark.parametrize("name", ["linalg_svdvals", "linalg_inv", "linalg_polar"])
def test_derivatives_within_vmap_break_the_graph(name, order, device):
    """PyTorch's graph would have no derivative there: with fullgraph=True it is refused."""
    f, a = LOSSES[name], random((2, 4, 4), torch.float64, device, 0)

    def whole(a):
        return torch.vmap(f)(a).sum()

    torch._dynamo.reset()
    if (name, order) == ("linalg_polar", "backward of vmap") and torch.__version__ < "2.12":
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):  # these versions give up
            backward("aot_eager", fullgraph=False)(whole, a, a)
        return
    if order == "backward of vmap":
        found, right = backward("aot_eager", fullgraph=False)(whole, a, a), gradient(whole, a)
        torch._dynamo.reset()
        with pytest.raises(torch._dynamo.exc.Unsupported):
            backward("aot_eager")(whole, a, a)
    else:
        g = torch.vmap(torch.func.grad(f)) if order == "vmap of grad" else torch.func.grad(whole)
        found, right = torch.compile(g, backend="aot_eager")(a), g(a)
    torch.testing.assert_close(found, right, rtol=1e-9, atol=1e-9)
