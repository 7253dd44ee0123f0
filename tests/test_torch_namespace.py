"""tsvd.torch.linalg beside torch.linalg: names, arguments, results, layouts, derivatives."""

import doctest
import inspect
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tsvd.torch  # noqa: E402
from tsvd.torch import linalg  # noqa: E402

# PyTorch's own forward mode warns of PyTorch's own use of it.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

L = torch.linalg
TYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SHAPES = [(1, 1), (4, 4), (6, 3), (3, 6), (2, 5, 3), (2, 2, 3, 5), (3, 4, 4)]
EMPTY = [(0, 3), (3, 0), (0, 3, 2), (2, 0, 0)]
NAMES = [name for name in linalg.__all__ if name != "LinAlgError"]


def matrices(*shape, dtype=torch.float64, device="cpu"):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=dtype).to(device)


def parts(result):
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)


def check(ours, theirs, strides=False, **tolerance):
    assert type(ours) is type(theirs)
    for x, y in zip(parts(ours), parts(theirs), strict=True):
        assert (x.shape, x.dtype, x.device) == (y.shape, y.dtype, y.device)
        assert not strides or x.stride() == y.stride()
        torch.testing.assert_close(x, y, **tolerance)


def both(call):
    """What a call gives with tsvd.torch.linalg, and with torch.linalg."""
    return call(linalg), call(L)


def raised(function):
    with pytest.raises(Exception) as error:
        function()
    return error.value


def thresholds(a):
    """One for each matrix; PyTorch wants both to be tensors, or none."""
    size = a.real.abs().mean((-2, -1))
    return {"atol": size, "rtol": 0.2 * torch.ones_like(size)}


CALLS = {
    "svdvals": lambda X, a: X.svdvals(a),
    "svdvals, driver": lambda X, a: X.svdvals(a, driver=None),
    "pinv": lambda X, a: X.pinv(a),
    "pinv, rcond": lambda X, a: X.pinv(a, 0.3),
    "pinv, rtol": lambda X, a: X.pinv(a, rtol=0.3),
    "pinv, atol": lambda X, a: X.pinv(a, atol=1.0),
    "pinv, both": lambda X, a: X.pinv(a, atol=0.5, rtol=0.2),
    "pinv, tensors": lambda X, a: X.pinv(a, **thresholds(a)),
    "matrix_rank": lambda X, a: X.matrix_rank(a),
    "matrix_rank, tol": lambda X, a: X.matrix_rank(a, 1.0),
    "matrix_rank, both": lambda X, a: X.matrix_rank(a, atol=1.0, rtol=0.3),
    "matrix_rank, tensor": lambda X, a: X.matrix_rank(a, rtol=a.real.abs().mean((-2, -1))),
    "cond": lambda X, a: 1 / X.cond(a),
    "cond, -2": lambda X, a: X.cond(a, -2),
    "matrix_norm": lambda X, a: X.matrix_norm(a),
    "matrix_norm, 2": lambda X, a: X.matrix_norm(a, 2),
    "matrix_norm, -2": lambda X, a: X.matrix_norm(a, -2, keepdim=True),
    "matrix_norm, nuc": lambda X, a: X.matrix_norm(a, "nuc", dim=(0, 1), keepdim=True),
    "matrix_norm, dtype": lambda X, a: X.matrix_norm(
        a, "nuc", dtype=torch.complex128 if a.is_complex() else torch.float64
    ),
    "lstsq": lambda X, a: X.lstsq(a, a[..., :1].cos(), driver=None if a.is_cpu else "gels")[0],
}
SQUARE = {
    "inv": lambda X, a: X.inv(a),
    "inv_ex": lambda X, a: X.inv_ex(a),
    "pinv, hermitian": lambda X, a: X.pinv(a, hermitian=True),
    "matrix_rank, hermitian": lambda X, a: X.matrix_rank(a, atol=1.0, hermitian=True),
    **{f"cond, {p}": lambda X, a, p=p: 1 / X.cond(a, p) for p in ("fro", "nuc", 1, -1, np.inf)},
}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [*CALLS, *SQUARE])
def test_results(name, shape, dtype, device):
    if name in SQUARE and shape[-1] != shape[-2]:
        error = raised(lambda: SQUARE[name](linalg, matrices(*shape, dtype=dtype, device=device)))
        assert isinstance(error, RuntimeError)
        return
    call, a = {**CALLS, **SQUARE}[name], matrices(*shape, dtype=dtype, device=device)
    ours, theirs = both(lambda X: call(X, a))
    # errors of pseudo-inverses are in proportion to the condition
    loose = {"rtol": 1e-3, "atol": 1e-3} if dtype in TYPES[::2] and "pinv" in name else {}
    check(ours, theirs, strides=name.startswith(("svdvals", "inv")), **loose)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, *EMPTY], ids=str)
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("full_matrices", [False, True])
def test_svd(full_matrices, grad, shape, dtype, device):
    a = matrices(*shape, dtype=dtype, device=device).requires_grad_(grad)
    ours, theirs = both(lambda X: X.svd(a, full_matrices))
    assert type(ours) is type(theirs)
    assert [x.stride() for x in ours] == [x.stride() for x in theirs]
    check(ours.S, theirs.S)
    U, S, Vh = ours
    for Q in (U, Vh.mH):
        check(Q.mH @ Q, torch.eye(Q.shape[-1], dtype=dtype, device=device).expand_as(Q.mH @ Q))
    k = S.shape[-1]
    check((U[..., :k] * S[..., None, :]) @ Vh[..., :k, :], a)
    assert U.requires_grad == S.requires_grad == Vh.requires_grad == grad


@pytest.mark.parametrize("shape", EMPTY, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_empty_matrices(name, shape):
    a = matrices(*shape)
    try:
        theirs = CALLS[name](L, a)
    except Exception as error:
        assert type(raised(lambda: CALLS[name](linalg, a))) is type(error)
    else:
        check(CALLS[name](linalg, a), theirs)


def test_names_and_defaults():
    documented = {
        "svd": "(A, full_matrices=True, *, driver=None, out=None)",
        "svdvals": "(A, *, driver=None, out=None)",
        "inv": "(A, *, out=None)",
        "inv_ex": "(A, *, check_errors=False, out=None)",
        "lstsq": "(A, B, rcond=None, *, driver=None)",
        "cond": "(A, p=None, *, out=None)",
        "matrix_norm": "(A, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None, out=None)",
    }
    for name, signature in documented.items():
        assert str(inspect.signature(getattr(linalg, name))) == signature
        assert signature.replace("'", "") in getattr(L, name).__doc__.replace("'", "")


def test_it_is_a_module():
    program = "import tsvd.torch.linalg; from tsvd.torch.linalg import svd; print(svd.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "svd\n", done.stderr


@pytest.mark.parametrize("name", ["enable", "disable", "enabled", "is_enabled", *NAMES])
def test_examples(name):
    function = getattr(linalg if name in NAMES else tsvd.torch, name)
    (examples,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={})
    failed, tried = doctest.DocTestRunner().run(examples)
    assert tried > 0 and failed == 0


# ---- lstsq ----


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize(
    ("of_a", "of_b"),
    [
        ((5, 3), (5, 2)),
        ((5, 3), (5,)),
        ((3, 5), (3, 2)),
        ((2, 5, 3), (2, 5)),
        ((2, 3, 3), (2, 3, 4)),
    ],
)
def test_lstsq(of_a, of_b, driver):
    a, b = matrices(*of_a), matrices(*of_b).cos()
    ours, theirs = both(lambda X: X.lstsq(a, b, driver=driver))
    check(ours, theirs)


def test_lstsq_of_low_rank():
    a, b = matrices(6, 2) @ matrices(2, 4), matrices(6, 3)
    ours, theirs = both(lambda X: X.lstsq(a, b, driver="gelsd"))
    check(ours, theirs)
    assert linalg.lstsq(a, b).rank == 2


def test_leading_dimensions_of_right_hand_sides_broadcast():
    a, b = matrices(2, 5, 3), matrices(5, 4)
    x = linalg.lstsq(a, b[None]).solution
    check(x, torch.stack([linalg.lstsq(one, b).solution for one in a]))


# ---- errors ----

NAN = torch.full((3, 3), torch.nan)
NOT_FINITE = {
    "svd": lambda: linalg.svd(NAN),
    "svdvals": lambda: linalg.svdvals(NAN),
    "pinv": lambda: linalg.pinv(NAN),
    "lstsq": lambda: linalg.lstsq(NAN, NAN),
    "cond": lambda: linalg.cond(NAN),
    "matrix_rank": lambda: linalg.matrix_rank(NAN),
    "a norm": lambda: linalg.matrix_norm(NAN, 2),
}
SINGULAR = {
    "inv": lambda: linalg.inv(torch.zeros(2, 2)),
    "inv in a batch": lambda: linalg.inv(torch.zeros(2, 2, 2)),
    "inv_ex": lambda: linalg.inv_ex(torch.zeros(2, 2), check_errors=True),
    "not square": lambda: linalg.inv(torch.ones(2, 3)),
    "a vector": lambda: linalg.svd(torch.ones(3)),
    "hermitian": lambda: linalg.pinv(torch.ones(2, 3), hermitian=True),
}


@pytest.mark.parametrize("name", [*NOT_FINITE, *SINGULAR])
def test_errors_are_those_of_both_libraries(name):
    call = {**NOT_FINITE, **SINGULAR}[name]
    for kind in (
        L.LinAlgError,
        np.linalg.LinAlgError,
        linalg.LinAlgError,
        RuntimeError,
        ValueError,
    ):
        with pytest.raises(kind, match=r"^linalg\."):
            call()


def test_singular_matrices_of_inv_ex():
    a = torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, 0.0, 2.0]))])
    assert linalg.inv_ex(a).info.tolist() == [0, 2]
    assert linalg.inv(NAN).isnan().all()


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: linalg.svd(np.ones((2, 2))), TypeError, "A must be a tensor of PyTorch"),
        (lambda: linalg.svd(torch.ones(2, 2).to_sparse()), TypeError, "A is a sparse tensor"),
        (lambda: linalg.inv(torch.eye(2).to_sparse_csr()), TypeError, "A is a sparse tensor"),
        (lambda: linalg.svd(torch.ones(2, 2).half()), TypeError, "float16"),
        (lambda: linalg.svd(torch.ones(2, 2), driver="x"), ValueError, "driver must be one of"),
        (lambda: linalg.lstsq(torch.eye(2), torch.eye(2), driver="x"), ValueError, "driver"),
        (lambda: linalg.pinv(torch.eye(2), 0.1, rtol=0.1), ValueError, "rcond and rtol"),
        (lambda: linalg.matrix_rank(torch.eye(2), 0.1, atol=0.1), ValueError, "tol and atol"),
        (lambda: linalg.matrix_norm(torch.eye(2), 2, (0, 0)), RuntimeError, "different"),
        (lambda: linalg.matrix_norm(torch.eye(2), "x"), RuntimeError, "x"),
    ],
)
def test_refused_arguments(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


# ---- kinds of tensors ----


@pytest.mark.parametrize("name", NAMES)
def test_conjugates_and_other_views(name):
    if name == "matrix_norm":
        return
    for a in (matrices(4, 4, dtype=torch.complex128), matrices(8, 8)[::2, ::2]):
        for view in (a.mT, a.conj(), a.mH, torch._neg_view(a), a.flip(0)):
            arguments = (view, a) if name == "lstsq" else (view,)
            ours, theirs = both(lambda X: getattr(X, name)(*arguments))  # noqa: B023
            if name == "svd":
                ours, theirs = (r.U * r.S @ r.Vh for r in (ours, theirs))
            check(ours, theirs)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "lstsq"])
def test_meta_and_fake_tensors(name):
    from torch._subclasses import FakeTensorMode

    theirs = getattr(L, name)(matrices(3, 3))
    with FakeTensorMode() as mode:
        fakes = [torch.empty(3, 3, dtype=torch.float64, device="meta")]
        fakes.append(mode.from_tensor(matrices(3, 3)))
        for a in fakes:
            for x, y in zip(parts(getattr(linalg, name)(a)), parts(theirs), strict=True):
                assert (x.shape, x.dtype, x.device) == (y.shape, y.dtype, a.device)


def test_integers_are_computed_as_float64():
    a = torch.tensor([[3, 0], [0, 2]])
    assert linalg.svdvals(a).tolist() == [3.0, 2.0]
    assert linalg.inv(a).dtype == torch.float64


@pytest.mark.parametrize("name", NAMES)
def test_autocast(name, device):
    """Half precision becomes float32, as for PyTorch's functions."""
    a = matrices(4, 4, device=device).bfloat16()
    order = (2,) if name == "matrix_norm" else ()
    arguments = (a, a) if name == "lstsq" else (a, *order)
    with torch.autocast(device, dtype=torch.bfloat16):
        results = parts(getattr(linalg, name)(*arguments))
        assert all(x.dtype != torch.bfloat16 for x in results)
        assert any(x.dtype == torch.float32 for x in results) or name == "matrix_rank"
        assert linalg.svdvals(a.double()).dtype == torch.float64


def test_tensors_that_require_grad_under_no_grad():
    a = matrices(4, 4).requires_grad_()
    with torch.no_grad():
        for name in NAMES:
            arguments = (a, a) if name == "lstsq" else (a,)
            assert not any(x.requires_grad for x in parts(getattr(linalg, name)(*arguments)))
        linalg.svdvals(a, out=torch.empty(4, dtype=a.dtype))
    with torch.inference_mode():
        assert linalg.svdvals(a).is_inference()


@pytest.mark.parametrize(
    "call",
    [
        lambda X, a, out: X.svd(a, False, out=(out(), out(), out())),
        lambda X, a, out: X.svdvals(a, out=out()),
        lambda X, a, out: X.inv(a, out=out()),
        lambda X, a, out: X.pinv(a, out=out()),
        lambda X, a, out: X.cond(a, out=out()),
        lambda X, a, out: X.matrix_norm(a, "nuc", out=out()),
        lambda X, a, out: X.inv_ex(a, out=(out(), out().int())),
        lambda X, a, out: X.matrix_rank(a, out=out().long()),
    ],
)
def test_out(call):
    a = matrices(4, 4)
    ours, theirs = both(lambda X: call(X, a, lambda: a.new_empty(0)))
    assert [x.stride() for x in parts(ours)] == [x.stride() for x in parts(theirs)]
    if len(parts(ours)) < 3:
        check(ours, theirs)


def test_empty_tensors_for_results_are_filled_by_tsvd(monkeypatch):
    def broken(*_, **__):
        raise AssertionError("PyTorch computes")

    monkeypatch.setattr(L, "pinv", broken)
    linalg.pinv(matrices(4, 3), out=torch.empty(0, dtype=torch.float64))


def test_residuals_within_vmap():
    a, b = matrices(2, 5, 3), matrices(2, 5, 1)
    mapped = torch.func.vmap(lambda a, b: linalg.lstsq(a, b, driver="gelsd")[1])(a, b)
    check(mapped, L.lstsq(a, b, driver="gelsd").residuals)


def test_what_out_takes():
    a, out = matrices(4, 3), torch.empty(3, dtype=torch.float64)
    assert linalg.svdvals(a, out=out) is out
    assert linalg.svdvals(a, out=torch.empty(3, dtype=torch.complex128)).is_complex()
    with pytest.warns(UserWarning, match="resized"):
        linalg.svdvals(a, out=torch.empty(5, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="takes"):
        linalg.svdvals(a, out=torch.empty(3, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="derivatives"):
        linalg.svdvals(a.requires_grad_(), out=out)
    with pytest.raises(ValueError, match="3 tensors"):
        linalg.svd(a.detach(), out=(out, out))


# ---- derivatives ----


def product(X, a, full_matrices):
    U, S, Vh = X.svd(a, full_matrices)
    k = S.shape[-1]
    return (U[..., :k] * S.exp()[..., None, :]) @ Vh[..., :k, :]


SMOOTH = {
    "svd": lambda X, a: product(X, a, False),
    "svd, full": lambda X, a: product(X, a, True),
    "svdvals": lambda X, a: X.svdvals(a),
    "pinv": lambda X, a: X.pinv(a),
    "pinv, atol": lambda X, a: X.pinv(a, atol=1e-3),
    "lstsq": lambda X, a: X.lstsq(a, a[..., :1].cos())[0],
    "cond": lambda X, a: X.cond(a),
    "matrix_norm": lambda X, a: X.matrix_norm(a, "nuc"),
}
SMOOTH_SQUARE = {
    "inv": lambda X, a: X.inv(a),
    "inv_ex": lambda X, a: X.inv_ex(a)[0],
    "pinv, hermitian": lambda X, a: X.pinv(a + a.mT, hermitian=True),
    "cond, fro": lambda X, a: (
        linalg.cond(a, "fro") if X is linalg else fro_of(a) * fro_of(L.inv(a))
    ),
}
fro_of = L.matrix_norm  # the backward of PyTorch's own condition number fails
func = torch.func
TRANSFORMED = {
    "backward": lambda f, a: torch.autograd.grad(f(a.requires_grad_()).sum(), a)[0],
    "grad": lambda f, a: func.grad(lambda a: f(a).sum())(a),
    "jacrev": lambda f, a: func.jacrev(f)(a),
    "jacfwd": lambda f, a: func.jacfwd(f)(a),
    "hessian": lambda f, a: func.hessian(lambda a: f(a).sum())(a),
    "vmap": lambda f, a: func.vmap(f)(torch.stack([a, a.cos()])),
    "vmap of grad": lambda f, a: func.vmap(func.grad(lambda a: f(a).sum()))(torch.stack([a, a])),
}


@pytest.mark.parametrize("transformation", TRANSFORMED)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (2, 3, 3)], ids=str)
@pytest.mark.parametrize("name", [*SMOOTH, *SMOOTH_SQUARE])
def test_transformations(name, shape, transformation):
    if name in SMOOTH_SQUARE and shape[-1] != shape[-2]:
        return
    call = {**SMOOTH, **SMOOTH_SQUARE}[name]
    ours, theirs = both(
        lambda X: TRANSFORMED[transformation](lambda a: call(X, a), matrices(*shape))
    )
    check(ours, theirs, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)], ids=str)
def test_further_vectors_have_no_derivative(shape):
    a = matrices(*shape).requires_grad_()
    U, _, Vh = linalg.svd(a)
    (U[:, 3:].sum() + Vh[3:].sum()).backward()
    assert (a.grad == 0).all()


def test_hermitian_reads_one_triangle(device):
    """Also if a derivative is wanted, and the other one holds what is no number."""
    a = torch.tensor([[2.0, torch.nan], [1.0, 3.0]], dtype=torch.float64, device=device)
    right = torch.tensor([[0.6, -0.2], [-0.2, 0.4]], dtype=torch.float64, device=device)
    for x in (a, a.clone().requires_grad_()):
        check(linalg.pinv(x, hermitian=True).detach(), right)


def test_a_matrix_with_several_thresholds(device):
    a = matrices(4, 3, device=device)
    for name in ("rtol", "atol"):
        parts = {name: torch.tensor([[0.1], [0.5]], dtype=a.dtype, device=device)}
        check(*both(lambda X, parts=parts: X.pinv(a, **parts)))


@pytest.mark.parametrize("p", [1, -1, np.inf, -np.inf, "fro"])
def test_condition_of_zero(p, device):
    a = torch.stack([torch.zeros(2, 2), torch.eye(2)]).to(device)
    check(*both(lambda X: X.cond(a, p)))


def test_norms_are_not_narrowed():
    for a, dtype in ((matrices(3, 3), torch.float32), (matrices(3, 3) * 1j, torch.float64)):
        for X in (linalg, L):
            with pytest.raises(RuntimeError):
                X.matrix_norm(a, "nuc", dtype=dtype)


def test_default_device_is_not_asked():
    torch.set_default_device("meta")
    try:
        assert linalg.matrix_rank(torch.ones(3, 3, device="cpu"), atol=0.1) == 1
    finally:
        torch.set_default_device(None)


# ---- graphs ----

IN_GRAPHS = {
    **CALLS,
    **{name: lambda X, a, call=call: call(X, a.mT @ a) for name, call in SQUARE.items()},
    "svd": lambda X, a: product(X, a, True),
    "svd, reduced": lambda X, a: product(X, a, False),
    "lstsq, values": lambda X, a: X.lstsq(a, a[:, :1], driver="gelsd" if a.is_cpu else "gels")[0],
}


def compiled(f, a):
    return torch.compile(f, backend="aot_eager", fullgraph=True)(a)


def compiled_gradient(f, a):
    x = a.clone().requires_grad_()
    compiled(f, x).backward()
    return x.grad


def gradient(f, a):
    x = a.clone().requires_grad_()
    return torch.autograd.grad(f(x), x)[0]


def exported(f, a):
    class Module(torch.nn.Module):
        def forward(self, a):
            return f(a)

    return torch.export.export(Module(), (a.cos(),)).module()(a)


def traced(f, a):
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(f)(a.cos())
    assert torch.ops.aten._linalg_svd.default not in [node.target for node in graph.graph.nodes]
    return graph(a)


GRAPHS = {
    "compile": (compiled, lambda f, a: f(a)),
    "compile, backward": (compiled_gradient, gradient),
    "export": (exported, lambda f, a: f(a)),
    "make_fx": (traced, lambda f, a: f(a)),
}


@pytest.mark.parametrize("dtype", TYPES[1::2], ids=str)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", IN_GRAPHS)
@pytest.mark.filterwarnings("ignore")  # PyTorch's, of its own use of itself
def test_graphs(name, graph, dtype, device):
    """The operators of tsvd are in the graphs, and derivatives are those without a graph."""
    torch.compiler.reset()
    transformed, plain = GRAPHS[graph]
    a = matrices(5, 3, dtype=dtype, device=device)

    def f(a):
        result = IN_GRAPHS[name](linalg, a)
        result = result[0] if isinstance(result, tuple) else result
        return (result * result.conj()).real.sum()

    if "backward" in graph and "rank" in name:
        with pytest.raises(RuntimeError, match="does not require grad"):
            transformed(f, a)
        return
    check(transformed(f, a), plain(f, a), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_traces_hold_operators_of_tsvd(mode):
    from torch.fx.experimental.proxy_tensor import make_fx

    def f(a):
        return linalg.svdvals(a).sum() + linalg.pinv(a).sum() + linalg.svd(a).S.sum()

    traced, b = make_fx(f, tracing_mode=mode)(matrices(4, 3)), matrices(4, 3).cos()
    assert sum("tsvd." in str(node.target) for node in traced.graph.nodes) == 3
    check(traced(b), f(b))


@pytest.mark.filterwarnings("ignore")
def test_singular_matrices_in_a_graph(device):
    torch.compiler.reset()
    a = torch.zeros(3, 3, device=device)
    assert compiled(linalg.inv_ex, a).info == L.inv_ex(a).info
    assert compiled(lambda a: linalg.cond(a, 1), a) == np.inf


@pytest.mark.filterwarnings("ignore")
def test_sizes_stay_dynamic():
    """The default threshold of pinv depends on them."""

    class Module(torch.nn.Module):
        def forward(self, a):
            return linalg.pinv(a)

    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    module = torch.export.export(Module(), (matrices(6, 4),), dynamic_shapes=(sizes,)).module()
    for shape in ((9, 7), (3, 20)):
        check(module(matrices(*shape)), linalg.pinv(matrices(*shape)))


@pytest.mark.filterwarnings("ignore")
def test_autocast_in_a_graph(device):
    torch.compiler.reset()
    a = matrices(4, 4, device=device).bfloat16()
    with torch.autocast(device, dtype=torch.bfloat16):
        check(compiled(linalg.inv, a), linalg.inv(a))


@pytest.mark.filterwarnings("ignore")
def test_errors_in_a_graph(device):
    torch.compiler.reset()
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        compiled(linalg.inv, torch.zeros(3, 3, device=device))
