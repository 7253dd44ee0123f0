"""PyTorch's own samples of functions of torch.linalg, given to those of tsvd, and to PyTorch's own
with tsvd.torch.enable().

Results are compared with PyTorch's, derivatives with finite differences. Both go through the
function that PyTorch has with each sample, which removes the phases of vectors. `run.py torch`
runs this file.
"""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close
from torch.testing._internal.common_methods_invocations import op_db as all_ops
from torch.testing._internal.opinfo.definitions.linalg import op_db

import tsvd.torch
from tsvd import linalg
from tsvd.torch import linalg_lstsq, linalg_pinv, linalg_svd, linalg_svdvals

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


# ---- tsvd's functions with PyTorch's arguments ----


def pinv_of_product(a, b):
    return linalg.pinv(a @ b.mT)


def matrix_rank(a, *, atol=None, rtol=None, hermitian=False):
    """Of two thresholds PyTorch takes the larger one."""
    if atol is None or rtol is None:
        return linalg.matrix_rank(a, atol, hermitian, rtol=rtol)
    given = {"tol": atol}, {"rtol": rtol}
    return torch.minimum(*(linalg.matrix_rank(a, hermitian=hermitian, **x) for x in given))


def norm(a, ord=None, dim=None, keepdim=False, *, dtype=None):
    return linalg.norm(a if dtype is None else a.to(dtype), ord, dim, keepdim)


def matrix_norm(a, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    return norm(a, ord, dim, keepdim, dtype=dtype)


def pinv_of_triangle(a, *, hermitian):
    """PyTorch reads one triangle, and the samples are not Hermitian."""
    assert hermitian
    return linalg.pinvh(a)


# (name, variant) of PyTorch's samples -> what is called.
OURS = {
    ("linalg.svd", ""): linalg.svd,
    ("linalg.svdvals", ""): linalg.svdvals,
    ("linalg.inv", ""): linalg.inv,
    ("linalg.pinv", ""): linalg.pinv,
    ("linalg.pinv", "singular"): pinv_of_product,
    ("linalg.pinv", "hermitian"): pinv_of_triangle,
    ("linalg.matrix_rank", ""): matrix_rank,
    ("linalg.matrix_rank", "hermitian"): matrix_rank,
    ("linalg.cond", ""): linalg.cond,
    ("linalg.norm", ""): norm,
    ("linalg.matrix_norm", ""): matrix_norm,
}
OPS = {(op.name, op.variant_test_name): op for op in op_db}
# The vectors that complete the bases have no derivative: PyTorch's functions leave them out too.
DIFFERENTIABLE = {
    ("linalg.svd", ""): lambda a, full_matrices: linalg_svd(a),
    ("linalg.svdvals", ""): linalg_svdvals,
    ("linalg.pinv", ""): linalg_pinv,
    ("linalg.lstsq", "grad_oriented"): lambda a, b, driver: linalg_lstsq(a, b)[0],
}


def samples(op, device, dtype, **options):
    torch.manual_seed(0)
    return op.sample_inputs(device, dtype, **options)


def views(a):
    """a, and the same numbers laid out and marked otherwise."""
    yield a
    if a.ndim >= 2:
        yield a.mT.contiguous().mT
    yield torch.stack([a, a], -1)[..., 0]
    if a.is_complex():
        yield a.conj().resolve_conj().conj()


def parts(result):
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("which", OURS, ids="-".join)
def test_results(which, device, dtype):
    op, function = OPS[which], OURS[which]
    for sample in samples(op, device, dtype):
        compared, options = sample.output_process_fn_grad, sample.kwargs
        theirs = op(sample.input, *sample.args, **options)
        for a in views(sample.input):
            ours = function(a, *sample.args, **options)
            for x, y in zip(parts(ours), parts(theirs), strict=True):
                assert (x.shape, x.dtype, x.device) == (y.shape, y.dtype, y.device)
            assert_close(compared(ours), compared(theirs), **tolerance(op, theirs))


def tolerance(op, theirs):
    """That of PyTorch, but for condition numbers, whose errors are in proportion to them."""
    if op.name != "linalg.cond":
        return {}
    largest = theirs[theirs.isfinite()].amax().item() if theirs.isfinite().any() else 0
    return {"rtol": 10 * torch.finfo(theirs.dtype).eps * (1 + largest), "atol": 0}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("device", DEVICES)
def test_lstsq(device, dtype):
    """All drivers have the solution, and "gelsd" the rest as tsvd has it."""
    for sample in samples(OPS["linalg.lstsq", ""], device, dtype):
        theirs = torch.linalg.lstsq(sample.input, *sample.args, **sample.kwargs)
        for a in views(sample.input):
            x, residuals, rank, s = linalg.lstsq(a, *sample.args)
            assert_close(x, theirs.solution)
            if theirs.residuals.numel() > 0:  # PyTorch leaves out those of any matrix of low rank
                assert_close(residuals, theirs.residuals)
            if sample.kwargs["driver"] == "gelsd":
                assert_close(s, theirs.singular_values)
                assert (torch.as_tensor(rank) == theirs.rank).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("which", DIFFERENTIABLE, ids="-".join)
def test_derivatives(which, dtype):
    """Of first and second order, in reverse and forward mode."""
    op = OPS[which]
    for sample in samples(op, "cpu", dtype, requires_grad=True):

        def function(*inputs, sample=sample):
            result = DIFFERENTIABLE[which](*inputs, **sample.kwargs)
            return sample.output_process_fn_grad(result)

        inputs, fast = (sample.input, *sample.args), op.gradcheck_fast_mode
        gradcheck(function, inputs, check_forward_ad=True, fast_mode=fast)
        gradgradcheck(function, inputs, check_fwd_over_rev=True, fast_mode=fast)


# ---- tsvd.torch.enable() ----

# PyTorch's functions that rest on its SVD.
RESTING = {
    (op.name, op.variant_test_name): op
    for op in all_ops
    if op.name in ("svd", "svd_lowrank", "pca_lowrank")
    or (op.name, op.variant_test_name) == ("norm", "nuc")
    or (
        op.name.removeprefix("linalg.")
        in ("svd", "svdvals", "pinv", "matrix_rank", "cond", "norm", "matrix_norm")
        and op.name.startswith("linalg.")
    )
}


@pytest.fixture
def calls(monkeypatch):
    """Counts the calls of tsvd."""
    made, svd = [], linalg.svd
    monkeypatch.setattr(
        linalg, "svd", lambda *x, **options: (made.append(1), svd(*x, **options))[1]
    )
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("which", RESTING, ids="-".join)
def test_results_of_pytorch_enabled(which, device, dtype, calls):
    op = RESTING[which]
    for sample in samples(op, device, dtype):
        compared = sample.output_process_fn_grad
        for a in views(sample.input) if isinstance(sample.input, torch.Tensor) else [sample.input]:
            with torch.random.fork_rng():  # of svd_lowrank
                theirs = op(a, *sample.args, **sample.kwargs)
            with tsvd.torch.enabled(), torch.random.fork_rng():
                ours = op(a, *sample.args, **sample.kwargs)
            for x, y in zip(parts(ours), parts(theirs), strict=True):
                assert (x.shape, x.dtype, x.device) == (y.shape, y.dtype, y.device)
                assert x.stride() == y.stride()
            if "lowrank" not in op.name:  # of less than the whole rank they are random
                assert_close(compared(ours), compared(theirs), **tolerance(op, theirs))
    assert calls or which[1] == "hermitian"


# Those whose derivatives PyTorch checks itself with all these samples, and that take seconds.
CHECKED = [
    which
    for which, op in RESTING.items()
    if op.supports_autograd
    and "lowrank" not in op.name
    and which[1] not in ("hermitian", "singular")
    and op.name != "linalg.norm"
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("which", CHECKED, ids="-".join)
def test_derivatives_of_pytorch_enabled(which, dtype):
    op = RESTING[which]
    for sample in samples(op, "cpu", dtype, requires_grad=True):

        def function(*inputs, sample=sample):
            result = op(*inputs, **sample.kwargs)
            return sample.output_process_fn_grad(result)

        inputs = (sample.input, *sample.args)
        with tsvd.torch.enabled():
            gradcheck(function, inputs, check_forward_ad=True, fast_mode=True)
            gradgradcheck(function, inputs, fast_mode=True)
