"""tsvd.jax: results, jit, vmap, derivatives and errors."""

import doctest
import functools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tsvd

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other tests need memory too
jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import tsvd.jax  # noqa: E402

KINDS = pytest.mark.parametrize("lower", [False, True], ids=["upper", "lower"])


@pytest.fixture(autouse=True)
def double():
    """Numbers are float64, on the CPU."""
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        yield


def _arrays(n, *batch, seed=0, dtype=np.float64):
    random = np.random.default_rng(seed)
    d, e = random.normal(size=(*batch, n)), random.normal(size=(*batch, max(n - 1, 0)))
    return d.astype(dtype), e.astype(dtype)


def _loss(L, s, R):
    """A function of all entries, with other weights for each."""
    total = 0
    for x, start in ((L, 0.3), (s, 0.7), (R, 1.1)):
        total = total + (x * jnp.cos(start + jnp.arange(x.size)).reshape(x.shape)).sum()
    return total


# ---- results ----


@KINDS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(0,), (1,), (2,), (40,), (3, 0), (3, 1), (0, 3), (2, 3, 20)], ids=str
)
def test_results_are_those_of_tsvd(shape, dtype, lower):
    d, e = _arrays(shape[-1], *shape[:-1], dtype=dtype)
    expected = tsvd.svd(d, e, lower=lower)
    for call in (tsvd.jax.svd, jax.jit(tsvd.jax.svd, static_argnames="lower")):
        result = call(d, e, lower=lower)
        assert isinstance(result, tsvd.SVDResult)
        for got, want in zip(result, expected, strict=True):
            assert isinstance(got, jax.Array)
            np.testing.assert_array_equal(got, want, strict=True)
    for call in (tsvd.jax.svdvals, jax.jit(tsvd.jax.svdvals, static_argnames="lower")):
        np.testing.assert_array_equal(
            call(d, e, lower=lower), tsvd.svdvals(d, e, lower=lower), strict=True
        )


def test_large_matrices_use_the_blas():
    d, e = np.ones(600), np.ones(599)
    for method in ("dc", "auto"):
        compiled = jax.jit(functools.partial(tsvd.jax.svd, method=method))(d, e)
        for got, want in zip(compiled, tsvd.svd(d, e, method=method), strict=True):
            np.testing.assert_array_equal(got, want)


def test_options():
    d, e = _arrays(12)
    for options in (
        {"method": "qr"},
        {"method": "givens"},
        {"method": "dc", "eps": 1e-3},
        {"select": "i", "select_range": (2, 4)},
    ):
        for got, want in zip(tsvd.jax.svd(d, e, **options), tsvd.svd(d, e, **options), strict=True):
            np.testing.assert_array_equal(got, want)
    values = tsvd.jax.svdvals(d, e, method="bisect", select="i", select_range=(0, 3))
    np.testing.assert_array_equal(values, tsvd.svdvals(d, e, method="bisect")[:4])
    d[3] = np.nan
    assert np.isnan(tsvd.jax.svdvals(d, e, check_finite=False)).all()


def test_broadcasting_and_dtypes():
    d, e = _arrays(4, 3, 1)[0], _arrays(4, 2)[1]
    np.testing.assert_array_equal(tsvd.jax.svd(d, e).R, tsvd.svd(d, e).R)
    assert tsvd.jax.svdvals([3, 2], [1]).dtype == np.float64
    assert tsvd.jax.svdvals(d.astype(np.float32), e).dtype == np.float64
    with jax.enable_x64(False):
        assert tsvd.jax.svdvals([3, 2], [1]).dtype == np.float32
        assert tsvd.jax.svdvals(d, e).dtype == np.float32


def test_no_callback_into_python():
    d, e = _arrays(4)
    text = jax.jit(tsvd.jax.svd).lower(d, e).as_text()
    assert "tsvd_svd" in text and "callback" not in text


@pytest.mark.parametrize(
    "function",
    [
        *(
            getattr(tsvd.jax, name)
            for name in sorted(set(tsvd.jax.__all__) - {"disable", "linalg"})
        ),
        *(getattr(tsvd.jax.linalg, name) for name in tsvd.jax.linalg.__all__),
    ],
    ids=lambda function: function.__name__,
)
def test_docstring_examples(function):
    (examples,) = doctest.DocTestFinder(recurse=False).find(function, "example", globs={})
    failed, tried = doctest.DocTestRunner().run(examples)
    assert tried > 0 and failed == 0


# ---- errors ----


def test_errors_of_arguments():
    d, e = _arrays(4)
    with pytest.raises(ValueError, match="e must have 3 entries"):
        tsvd.jax.svd(d, d)
    with pytest.raises(ValueError, match="at least one dimension"):
        tsvd.jax.svd(1.0, e)
    with pytest.raises(ValueError):
        tsvd.jax.svd(np.ones((2, 4)), np.ones((3, 3)))
    for dtype in (np.complex128, jnp.float16, jnp.bfloat16):
        with pytest.raises(TypeError, match="float64 and float32"):
            tsvd.jax.svdvals(jnp.asarray(d, dtype), e)
    with pytest.raises(ValueError, match="unknown method"):
        tsvd.jax.svd(d, e, method="no")
    with pytest.raises(ValueError, match="values only"):
        tsvd.jax.svd(d, e, method="bisect")
    with pytest.raises(ValueError, match="eps must be"):
        tsvd.jax.svd(d, e, eps=-1)
    with pytest.raises(ValueError, match="below the order of the matrix, 4"):
        tsvd.jax.svd(d, e, select="i", select_range=(0, 4))
    for options in ({"select": "i"}, {"select_range": (0, 1)}):
        with pytest.raises(ValueError, match="belong together"):
            tsvd.jax.svd(d, e, **options)
    with pytest.raises(ValueError, match="select must be"):
        tsvd.jax.svd(d, e, select="b")
    with pytest.raises(TypeError, match="two integers"):
        tsvd.jax.svd(d, e, select="i", select_range=(0, 1.5))
    with pytest.raises(NotImplementedError, match='select="v"'):
        tsvd.jax.svd(d, e, select="v", select_range=(0, 4))


def test_errors_of_the_running_computation():
    d, e = _arrays(4, 3)
    d[1, 2] = np.nan
    for call in (tsvd.jax.svd, jax.jit(tsvd.jax.svdvals)):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"tsvd: matrix 1 of the batch: .*NaN"):
            jax.block_until_ready(call(d, e))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"tsvd: .*part"):
        jax.block_until_ready(
            tsvd.jax.svd(*_arrays(9), method="qr", select="i", select_range=(0, 1))
        )


def test_a_call_of_another_kind_is_refused():
    call = jax.ffi.ffi_call("tsvd_svd", jax.ShapeDtypeStruct((4,), np.float64))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"not one of tsvd\.jax"):
        jax.block_until_ready(call(*_arrays(4), lower=np.int64(0)))
    numbers = {"lower": 0, "method": 0, "first": 0, "count": -1, "check_finite": 1}
    numbers = {name: np.int64(x) for name, x in numbers.items()} | {"eps": np.float64(-1)}
    assert call(*_arrays(4), **numbers).shape == (4,)
    for wrong in ({"lower": np.int32(1)}, {"eps": np.int64(0)}):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"not one of tsvd\.jax"):
            jax.block_until_ready(call(*_arrays(4), **numbers | wrong))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"not one of tsvd\.jax"):
        jax.block_until_ready(call(*_arrays(4, dtype=np.int64), **numbers))
    with pytest.raises(jax.errors.JaxRuntimeError, match="tsvd: "):  # shapes, by the core
        jax.block_until_ready(call(*_arrays(5), **numbers))


# ---- vmap, derivatives ----


def test_vmap():
    d, e = _arrays(5, 3, 2)
    expected = tsvd.svd(d, e)
    for got, want in zip(jax.vmap(tsvd.jax.svd, (1, 1), 1)(d, e), expected, strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(tsvd.jax.svdvals)))(d, e), expected.s)
    one = jax.vmap(tsvd.jax.svdvals, (0, None))(d[:, 0], e[0, 0])
    np.testing.assert_array_equal(one, tsvd.svdvals(d[:, 0], e[0, 0]))


@KINDS
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("name", ["svd", "svdvals"])
def test_check_grads(name, n, lower):
    """In both modes."""
    call = functools.partial(getattr(tsvd.jax, name), lower=lower)
    check_grads(call, _arrays(n, 2), 1, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["svd", "svdvals"])
def test_second_derivatives(name):
    """Forward over reverse, with a derivative by differences of the first one."""
    d, e = _arrays(4)
    direction = np.array([1.0, -2, 0.5, 1])

    def loss(d):
        result = getattr(tsvd.jax, name)(d, e)
        return _loss(*result) if name == "svd" else (result**3).sum()

    gradient, step = jax.jit(jax.grad(loss)), 1e-5
    _, got = jax.jit(lambda d: jax.jvp(jax.grad(loss), (d,), (direction,)))(d)
    reverse = jax.jit(jax.grad(lambda d: jax.grad(loss)(d) @ direction))(d)
    want = (gradient(d + step * direction) - gradient(d - step * direction)) / (2 * step)
    for hessian in (got, reverse):
        np.testing.assert_allclose(hessian, want, rtol=0, atol=1e-6 * abs(want).max())


@KINDS
def test_gradients_of_the_dense_svd(lower):
    """JAX differentiates the SVD of the dense matrix by formulas of its own."""

    def dense(d, e):
        U, s, Vh = jnp.linalg.svd(jnp.diag(d) + jnp.diag(e, -1 if lower else 1))
        sign = jnp.sign(jnp.take_along_axis(U, abs(U).argmax(0)[None], 0))
        return _loss(U * sign, s, Vh * sign.T)

    d, e = _arrays(40)
    expected = jax.grad(dense, (0, 1))(d, e)
    got = jax.jit(jax.grad(lambda d, e: _loss(*tsvd.jax.svd(d, e, lower=lower)), (0, 1)))(d, e)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * abs(b).max())


def test_gradients_in_float32():
    double, single = (
        jax.jit(jax.grad(lambda d, e: _loss(*tsvd.jax.svd(d, e)), (0, 1)))(
            *_arrays(12, 4, dtype=dtype)
        )
        for dtype in (np.float64, np.float32)
    )
    for got, want in zip(single, double, strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-4 * abs(want).max())


@pytest.mark.parametrize(
    ("d", "e"),
    [
        ([1.0, 1, 1, 1], [0.0, 0, 0]),
        ([0.0, 0, 0, 0], [0.0, 0, 0]),
        ([1.0, 0, 1, 0], [1.0, 1, 1]),
        ([1e-320, 3e-320, 0, 1], [0.0, 0, 0]),
        ([1e300, 1e-300, 1e300, 1], [1.0, 0, 1e200]),
    ],
)
def test_equal_and_zero_values_have_finite_gradients(d, e):
    d, e = np.array(d), np.array(e)
    for g in jax.jit(jax.grad(lambda *x: tsvd.jax.svdvals(*x).sum(), (0, 1)))(d, e):
        assert abs(g).max() <= 4
    for g in jax.jit(jax.grad(lambda *x: _loss(*tsvd.jax.svd(*x)), (0, 1)))(d, e):
        assert np.isfinite(g).all()


def test_select_has_the_gradients_of_the_whole():
    d, e = _arrays(6, 2)

    def part(select):
        if select:
            return lambda *x: _loss(*tsvd.jax.svd(*x, select="i", select_range=(1, 3)))
        return lambda *x: _loss(
            *(x[..., 1:4] for x in tsvd.jax.svd(*x)[:2]), tsvd.jax.svd(*x).R[..., 1:4, :]
        )

    for got, want in zip(
        *(jax.jit(jax.grad(part(i), (0, 1)))(d, e) for i in (True, False)), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    one, all_ = (
        jax.grad(lambda d, o=o, i=i: tsvd.jax.svdvals(d, e, **o)[..., i].sum())(d)
        for o, i in (({"select": "i", "select_range": (1, 1), "method": "bisect"}, 0), ({}, 1))
    )
    np.testing.assert_allclose(one, all_, rtol=1e-12, atol=1e-12)


def test_values_alone_compute_no_vectors():
    d, e = _arrays(50)
    text = jax.jit(tsvd.jax.svdvals).lower(d, e).compile().as_text()
    assert text.count('custom_call_target="tsvd_svd"') == 1 and "50,50" not in text
    gradient = jax.jit(jax.grad(lambda d: tsvd.jax.svdvals(d, e).sum()))
    text = gradient.lower(d).compile().as_text()
    assert text.count('custom_call_target="tsvd_svd"') == 1 and "50,50" in text


def test_per_matrix_gradients():
    d, e = _arrays(4, 3)

    def loss(d, e):
        return _loss(*tsvd.jax.svd(d, e))

    each = jax.jit(jax.vmap(jax.grad(loss)))(d, e)
    total = jax.jit(jax.grad(lambda d: jax.vmap(loss)(d, e).sum()))(d)
    np.testing.assert_allclose(each, total, rtol=1e-10, atol=1e-10)


def test_scan():
    """A call within a loop of XLA: gradient descent towards given values."""
    wanted = jnp.array([4.0, 3, 2, 1])
    e = jnp.ones(3)

    def step(d, _):
        loss, slope = jax.value_and_grad(
            lambda d: jnp.square(tsvd.jax.svdvals(d, e) - wanted).sum()
        )(d)
        return d - 0.1 * slope, loss

    losses = jax.jit(lambda d: jax.lax.scan(step, d, length=400)[1])(jnp.array([4.0, 3, 2, 1]))
    assert losses[-1] < 1e-4 * losses[0]


def test_threads():
    """Handlers run at the same time, and beside calls of tsvd itself."""
    call = jax.enable_x64(True)(jax.jit(tsvd.jax.svd))  # the setting is one of each thread
    inputs = [_arrays(60, 4, seed=seed) for seed in range(16)]
    expected = [tsvd.svd(*x) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        for function in (call, tsvd.svd, call):
            results = pool.map(function, *zip(*inputs, strict=True))
            for result, want in zip(results, expected, strict=True):
                for a, b in zip(result, want, strict=True):
                    np.testing.assert_array_equal(a, b)


# ---- CUDA ----


@pytest.mark.cuda
@KINDS
@pytest.mark.parametrize("shape", [(1,), (30,), (5, 20), (900,)], ids=str)
def test_cuda(jax_gpu, shape, lower):
    d, e = (jax.device_put(x, jax_gpu) for x in _arrays(shape[-1], *shape[:-1]))
    result = jax.jit(tsvd.jax.svd, static_argnames="lower")(d, e, lower=lower)
    assert all(x.devices() == {jax_gpu} for x in result)
    B, i, j = np.zeros((*shape, shape[-1])), np.arange(shape[-1]), np.arange(shape[-1] - 1)
    B[..., i, i] = d
    B[..., j + lower, j + (not lower)] = e
    L, s, R = (np.asarray(x) for x in result)
    np.testing.assert_allclose(L * s[..., None, :] @ R, B, rtol=0, atol=1e-12 * shape[-1])
    np.testing.assert_allclose(
        s, tsvd.svdvals(np.asarray(d), np.asarray(e), lower=lower), rtol=1e-13
    )


@pytest.mark.cuda
def test_cuda_gradients_and_streams(jax_gpu):
    d, e = _arrays(40, 3)
    gradient = jax.jit(jax.grad(lambda d, e: _loss(*tsvd.jax.svd(d * 2, e * 2)), (0, 1)))
    expected = gradient(d, e)
    for _ in range(20):  # results are read by what XLA runs after the call, on its stream
        got = gradient(jax.device_put(d, jax_gpu), jax.device_put(e, jax_gpu))
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * abs(b).max())


@pytest.mark.cuda
def test_cuda_errors(jax_gpu):
    d, e = (jax.device_put(x, jax_gpu) for x in _arrays(4))
    with pytest.raises(jax.errors.JaxRuntimeError, match="NaN"):
        jax.block_until_ready(tsvd.jax.svd(d.at[1].set(np.nan), e))
