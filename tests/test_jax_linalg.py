"""tsvd.jax.linalg and the dense calls of tsvd.jax: each transformation of each call, for each dtype
and shape."""

import os
from itertools import product

import numpy as np
import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other tests need memory too
jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import export  # noqa: E402

import tsvd.jax  # noqa: E402
import tsvd.linalg  # noqa: E402
from testing import close_values  # noqa: E402
from tsvd.jax import linalg  # noqa: E402

SHAPES = [(4, 4), (5, 3), (3, 5)]


@pytest.fixture(autouse=True)
def double(jax_device):
    """Numbers are float64, on each device. A GPU rounds no factors of JAX's own products."""
    with (
        jax.enable_x64(True),
        jax.default_device(jax_device),
        jax.default_matmul_precision("highest"),
    ):
        yield


def _matrix(shape, dtype, seed=0):
    """Its values are k, k - 1, ... 1, so that no derivative is large."""
    random = np.random.default_rng(seed)
    *batch, m, n = shape
    p = min(m, n)

    def basis(rows):
        x = random.normal(size=(*batch, rows, p))
        if np.dtype(dtype).kind == "c":
            x = x + 1j * random.normal(size=x.shape)
        return np.linalg.qr(x)[0]

    U, V = basis(m), basis(n)
    return ((U * np.arange(p, 0, -1.0)) @ V.swapaxes(-1, -2)).astype(dtype)


def _adjoint(x):
    return jnp.swapaxes(x, -1, -2).conj()


def _of_svd(U, S, Vh):
    """What does not depend on signs or phases."""
    k = S.shape[-1]
    whole = (U[..., :k] * jnp.exp(-S)[..., None, :].astype(U.dtype)) @ Vh[..., :k, :]
    weights = jnp.arange(1.0, k + 1, dtype=S.dtype).astype(U.dtype)
    return (
        S,
        whole,
        (U[..., :k] * weights) @ _adjoint(U[..., :k]),
        _adjoint(Vh[..., :k, :]) @ (weights[:, None] * Vh[..., :k, :]),
    )


def _of_full(U, S, Vh):
    """The same, and that what completes the bases is orthogonal to the rest."""
    return *_of_svd(U, S, Vh), U @ _adjoint(U), _adjoint(Vh) @ Vh


def _right_sides(a):
    rows = a.shape[-2]
    return jnp.cos(jnp.arange(2.0 * rows)).reshape(rows, 2).astype(a.dtype)


# Call -> tsvd's function of a matrix and JAX's, both without phases.
CALLS = {
    "linalg_svd": (
        lambda a: _of_svd(*tsvd.jax.linalg_svd(a)),
        lambda a: _of_svd(*jnp.linalg.svd(a, full_matrices=False)),
    ),
    "linalg_svdvals": (tsvd.jax.linalg_svdvals, lambda a: jnp.linalg.svd(a, compute_uv=False)),
    "inv": (tsvd.jax.inv, jnp.linalg.inv),
    "svd": (lambda a: _of_full(*linalg.svd(a)), lambda a: _of_full(*jnp.linalg.svd(a))),
    "svdvals": (linalg.svdvals, lambda a: jnp.linalg.svd(a, compute_uv=False)),
    "pinv": (linalg.pinv, jnp.linalg.pinv),
    "matrix_rank": (linalg.matrix_rank, jnp.linalg.matrix_rank),
    "cond": (linalg.cond, jnp.linalg.cond),
    "lstsq": (
        lambda a: linalg.lstsq(a, _right_sides(a)),
        lambda a: jnp.linalg.lstsq(a, _right_sides(a)),
    ),
}


def _loss(f):
    """A real function of all results but the rank, which has no derivative."""

    def loss(a):
        total = 0
        for x in jax.tree.leaves(f(a)):
            if x.dtype.kind in "fc":
                weights = jnp.cos(jnp.arange(x.size)).reshape(x.shape).astype(x.dtype)
                total = total + (weights * x).real.sum() + 0.1 * (x * x.conj()).real.sum()
        return total

    return loss


def _scan(f):
    return lambda a: jax.lax.scan(lambda c, x: (c, f(x)), 0, jnp.stack([a, 2 * a]))[1]


def _while(f):
    """The results of twice the matrix, as a state of the loop."""
    first = lambda a: jax.tree.map(jnp.zeros_like, f(a))  # noqa: E731
    step = lambda i, state: (state[0] * 2, f(state[0] * 2))  # noqa: E731
    return lambda a: jax.lax.while_loop(
        lambda state: state[0] < 1,
        lambda state: (state[0] + 1, step(state[0], state[1])),
        (0, (a, first(a))),
    )[1][1]


def _cond(f):
    return lambda a: jax.lax.cond(jnp.abs(a).sum() > 0, f, lambda a: f(a + 1), a)


def _ahead(f):
    def call(a):
        if isinstance(a, jax.core.Tracer):  # the reference
            return f(a)
        return jax.jit(f).lower(a).compile()(a)

    return call


def _vmap(f):
    return lambda a: jax.vmap(f, -1)(jnp.stack([a, 3 * a], -1))


def _jvp(f):
    return lambda a: jax.jvp(_loss(f), (a,), (jnp.cos(3 * a),))[1]


def _pmap(f):
    return lambda a: jax.pmap(f)(a[None])


TRANSFORMATIONS = {
    "plain": lambda f: f,
    "jit": jax.jit,
    "vmap": _vmap,
    "jit of vmap": lambda f: jax.jit(_vmap(f)),
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "pmap": _pmap,
    "ahead": _ahead,
    "grad": lambda f: jax.grad(_loss(f)),
    "jvp": _jvp,
    "vmap of grad": lambda f: _vmap(jax.grad(_loss(f))),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(_loss(f))),
}
DERIVATIVES = {"grad", "jvp", "vmap of grad", "checkpoint"}


def _compare(got, want, eps, factor=450):
    got, want = jax.tree.leaves(got), jax.tree.leaves(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=factor * eps * max(1, abs(b).max()))


# Each takes a second. The others have the same code but for the dtype.
_FAST = {("complex64", "jit"), ("complex64", "jvp"), ("complex64", "grad")}
_CELLS = [
    pytest.param(*cell, marks=() if "float64" in cell or cell in _FAST else pytest.mark.slow)
    for cell in product(("float64", "complex64", "float32", "complex128"), TRANSFORMATIONS)
]


@pytest.mark.filterwarnings("ignore:.*pmap:DeprecationWarning")
@pytest.mark.parametrize(("dtype", "transformation"), _CELLS)
@pytest.mark.parametrize("call", CALLS)
def test_table(call, dtype, transformation):
    """The results and derivatives are JAX's: float64 to 1e-13."""
    ours, theirs = map(TRANSFORMATIONS[transformation], CALLS[call])
    shapes = SHAPES if call != "inv" else SHAPES[:1]
    if transformation in DERIVATIVES and call == "matrix_rank":
        shapes = []  # a number without a derivative
    if transformation in DERIVATIVES and call == "svd":
        shapes = SHAPES[:1]
        with pytest.raises(NotImplementedError, match="full_matrices=False"):
            ours(jnp.asarray(_matrix(SHAPES[1], dtype)))
    matrices = [jnp.asarray(_matrix(shape, dtype)) for shape in shapes]
    if transformation in ("plain", "pmap", "ahead"):
        got = [ours(a) for a in matrices]
    else:  # one compilation
        got = jax.jit(lambda matrices: [ours(a) for a in matrices])(matrices)
    want = jax.jit(lambda matrices: [theirs(a) for a in matrices])(matrices)
    _compare(got, want, jnp.finfo(dtype).eps)


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("transformation", [jax.grad, jax.jacfwd])
def test_close_values_against_extended_precision(transformation, gap):
    """The gradient grows like 1/gap, and its error like eps/gap relative to it."""
    A, W = close_values.matrix(gap)
    found = transformation(lambda a: close_values.loss(tsvd.jax.linalg_svd(a).U, W))(A)
    right = close_values.gradient(A, W)
    assert abs(right).max() > 0.1 / gap
    assert abs(found - right).max() < 50 * np.finfo(float).eps / gap * abs(right).max()


# ---- options and errors ----


def test_dense_options():
    a = jnp.asarray(_matrix((6, 4), "float64"))
    part = {"select": "i", "select_range": (1, 2)}
    whole, some = tsvd.jax.linalg_svd(a), tsvd.jax.linalg_svd(a, **part)
    np.testing.assert_allclose(some.S, whole.S[1:3], rtol=1e-13)
    assert some.U.shape == (6, 2) and some.Vh.shape == (2, 4)
    for function in (tsvd.jax.linalg_svdvals, lambda a, **x: tsvd.jax.linalg_svd(a, **x).S):
        gradient = jax.grad(lambda a, f=function: f(a, **part).sum())(a)
        want = jax.grad(lambda a: tsvd.jax.linalg_svdvals(a)[1:3].sum())(a)
        np.testing.assert_allclose(gradient, want, rtol=0, atol=1e-13)
    for method in ("qr", "jacobi", "dc"):
        np.testing.assert_allclose(tsvd.jax.linalg_svd(a, method=method).S, whole.S, rtol=1e-13)
    assert tsvd.jax.linalg_svdvals([[3, 0], [0, 2]]).dtype == np.float64
    assert tsvd.jax.inv([[3, 0], [0, 2]], refine=True).dtype == np.float64
    np.testing.assert_array_equal(whole.S, tsvd.linalg.svd(a, full_matrices=False).S)
    np.testing.assert_allclose(linalg.svd(a, False, subset_by_index=(1, 3)).S, whole.S[1:3])
    assert linalg.svd(a, False, subset_by_index=(2, 2)).U.shape == (6, 0)
    with pytest.raises(ValueError, match="cannot both be set"):
        linalg.svd(a, subset_by_index=(1, 3))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3), (0, 3, 2)], ids=str)
def test_empty_matrices(shape):
    a = jnp.zeros(shape)
    for full in (True, False):
        got, want = linalg.svd(a, full), np.linalg.svd(np.zeros(shape), full)
        for x, y in zip(got, want, strict=True):
            np.testing.assert_array_equal(x, y, strict=True)
    assert linalg.pinv(a).shape == (*shape[:-2], shape[-1], shape[-2])
    assert linalg.matrix_rank(a).shape == shape[:-2]
    assert jax.grad(lambda a: linalg.pinv(a).sum())(a).shape == shape


def test_ranks():
    a = jnp.asarray(np.diag([3.0, 1e-3, 1e-20]))
    assert linalg.matrix_rank(a) == 2 and linalg.matrix_rank(a, 1e-3) == 1
    assert linalg.matrix_rank(a, tol=2e-3) == 1 and linalg.matrix_rank(jnp.zeros(3)) == 0
    np.testing.assert_allclose(linalg.pinv(a, rtol=1e-3), np.diag([1 / 3, 0, 0]), rtol=1e-15)
    np.testing.assert_allclose(linalg.pinv(a, rcond=1e-3), np.diag([1 / 3, 0, 0]), rtol=1e-15)
    x, residuals, rank, _ = linalg.lstsq(a, jnp.ones(3), 1e-3, numpy_resid=True)
    np.testing.assert_allclose(x, [1 / 3, 0, 0], rtol=1e-15)
    assert rank == 1 and residuals.shape == (0,)
    for function in (linalg.pinv, linalg.matrix_rank):
        with pytest.raises(ValueError, match="only one of"):
            function(a, 1.0, **{"rcond" if function is linalg.pinv else "tol": 1.0})


def test_hermitian_is_the_mean_with_the_adjoint():
    a = jnp.asarray([[1.0, 2.0], [4.0, -3.0]])
    np.testing.assert_allclose(
        linalg.svd(a, hermitian=True).S, jnp.linalg.svd(a, hermitian=True).S, rtol=1e-13
    )
    gradients = (
        jax.grad(lambda a, f=f: f(a, hermitian=True).sum())(a)
        for f in (linalg.pinv, jnp.linalg.pinv)
    )
    np.testing.assert_allclose(*gradients, rtol=1e-12)


def test_dense_errors_of_arguments():
    a = jnp.ones((3, 2))
    for function in (tsvd.jax.linalg_svd, tsvd.jax.linalg_svdvals, linalg.svd, linalg.pinv):
        with pytest.raises(ValueError, match="two dimensions"):
            function(jnp.ones(3))
        with pytest.raises(TypeError, match="float16"):
            jax.jit(function)(a.astype("float16"))
    with pytest.raises(ValueError, match="square"):
        tsvd.jax.inv(a)
    with pytest.raises(ValueError, match="square"):
        linalg.svd(a, hermitian=True)
    with pytest.raises(ValueError, match="unknown method"):
        tsvd.jax.linalg_svd(a, method="no")
    with pytest.raises(ValueError, match="takes no eps"):
        tsvd.jax.linalg_svd(a, method="jacobi", eps=1e-3)
    with pytest.raises(NotImplementedError, match='select="v"'):
        tsvd.jax.linalg_svdvals(a, select="v", select_range=(0, 1))
    with pytest.raises(ValueError, match="below the order of the matrix, 2"):
        tsvd.jax.linalg_svd(a, select="i", select_range=(0, 2))
    with pytest.raises(ValueError, match="number of rows"):
        linalg.lstsq(a, jnp.ones(2))
    with pytest.raises(TypeError, match=r"jax\.vmap"):
        linalg.lstsq(a[None], jnp.ones(3))
    with pytest.raises(ValueError, match="empty"):
        linalg.cond(jnp.ones((0, 2)))


@pytest.mark.parametrize("outside", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_dense_errors_of_the_running_computation(outside):
    """One kind of exception, within jit and outside."""
    nan, singular = jnp.full((2, 3, 3), jnp.nan).at[0].set(jnp.eye(3)), jnp.zeros((2, 2))
    for function, a, text in (
        (tsvd.jax.linalg_svd, nan, "matrix 1 of the batch: .*NaN"),
        (tsvd.jax.linalg_svdvals, nan, "NaN"),
        (tsvd.jax.inv, nan, "NaN"),
        (tsvd.jax.inv, singular, "Singular matrix"),
    ):
        with pytest.raises(jax.errors.JaxRuntimeError, match=f"tsvd: .*{text}"):
            jax.block_until_ready(outside(function)(a))
    for x in jax.tree.leaves(outside(linalg.svd)(nan)):
        assert np.isnan(x[1]).all() and np.isfinite(x[0]).all()
    assert np.isnan(outside(linalg.pinv)(nan)[1]).all()


# ---- JAX's own SVD ----


def test_enable():
    a = jnp.asarray(_matrix((5, 3), "float64"))
    compiled = jax.jit(lambda a: jnp.linalg.svd(a, full_matrices=False))
    before, gradient = compiled(a), jax.grad(_loss(jnp.linalg.pinv))(a)
    with tsvd.jax.enable():
        for f in (compiled, jax.jit(jnp.linalg.svd), jax.vmap(jnp.linalg.pinv)):
            text = jax.jit(f).lower(jnp.stack([a, a])).as_text()
            assert "tsvd_dense_svd" in text and "gesvd" not in text and "gesdd" not in text
        _compare(_of_svd(*compiled(a)), _of_svd(*before), 1e-16)
        _compare(jax.grad(_loss(jnp.linalg.pinv))(a), gradient, 1e-16)
        assert np.isnan(jnp.linalg.svd(a.at[0, 0].set(jnp.nan))[1]).all()
        assert jnp.linalg.svd(jnp.zeros((3, 0)))[0].shape == (3, 3)
        with tsvd.jax.enable():  # enabled already: it stays so
            pass
        assert "tsvd_dense_svd" in compiled.lower(a).as_text()
    assert "tsvd_dense_svd" not in compiled.lower(a).as_text()
    tsvd.jax.enable()
    assert "tsvd_dense_svd" in compiled.lower(a).as_text()
    tsvd.jax.disable()
    tsvd.jax.disable()
    assert "tsvd_dense_svd" not in compiled.lower(a).as_text()


# ---- export ----


def test_export_with_symbolic_sizes():
    names = ("tsvd_svd", "tsvd_dense_svd", "tsvd_inverse")
    checks = [export.DisabledSafetyCheck.custom_call(name) for name in names]
    b, m, n = export.symbolic_shape("b, m, n", constraints=["m >= n", "n >= 1"])
    (k,) = export.symbolic_shape("k")
    sizes = {"b": 2, "m": 5, "n": 4, "k": 3}
    for function, shape in (
        (linalg.svdvals, (n, m)),
        (lambda a: tsvd.jax.linalg_svd(a).S, (b, m, n)),
        (lambda a: linalg.svd(a).U, (m, n)),
        (linalg.pinv, (b, m, n)),
        (tsvd.jax.inv, (k, k)),
        (jax.grad(lambda a: tsvd.jax.linalg_svdvals(a).sum()), (b, m, n)),
    ):
        a = jnp.asarray(_matrix([sizes[str(x)] for x in shape], "float64"))
        exported = export.export(jax.jit(function), disabled_checks=checks)(
            jax.ShapeDtypeStruct(shape, a.dtype)
        )
        np.testing.assert_allclose(exported.call(a), function(a), rtol=0, atol=1e-13)
