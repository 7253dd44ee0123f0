"""PyTorch's own samples of linalg.svd, linalg.svdvals and linalg.inv, given to tsvd.

Results are compared with PyTorch's, derivatives with finite differences. Both go through the
function that PyTorch has with each sample, which removes the phases of vectors. `run.py torch`
runs this file.
"""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close
from torch.testing._internal.opinfo.definitions.linalg import op_db

from tsvd import linalg
from tsvd.torch import linalg_svd, linalg_svdvals

OPS = {op.name: op for op in op_db}
OURS = {"linalg.svd": linalg.svd, "linalg.svdvals": linalg.svdvals, "linalg.inv": linalg.inv}
# The vectors that complete the bases have no derivative: PyTorch's functions leave them out too.
DIFFERENTIABLE = {
    "linalg.svd": lambda a, full_matrices: linalg_svd(a),
    "linalg.svdvals": linalg_svdvals,
}


def samples(name, dtype, **options):
    torch.manual_seed(0)
    return OPS[name].sample_inputs("cpu", dtype, **options)


def views(a):
    """a, and the same numbers laid out and marked otherwise."""
    yield a
    yield a.mT.contiguous().mT
    yield torch.stack([a, a], -1)[..., 0]
    if a.is_complex():
        yield a.conj().resolve_conj().conj()


def parts(result):
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("name", OURS)
def test_results(name, dtype):
    for sample in samples(name, dtype):
        compared, options = sample.output_process_fn_grad, sample.kwargs
        theirs = OPS[name](sample.input, **options)
        for a in views(sample.input):
            ours = OURS[name](a, **options)
            for x, y in zip(parts(ours), parts(theirs), strict=True):
                assert (x.shape, x.dtype) == (y.shape, y.dtype)
            assert_close(compared(ours), compared(theirs))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name, dtype):
    """Of first and second order, in reverse and forward mode."""
    fast = OPS[name].gradcheck_fast_mode
    for sample in samples(name, dtype, requires_grad=True):

        def function(a, sample=sample):
            return sample.output_process_fn_grad(DIFFERENTIABLE[name](a, **sample.kwargs))

        gradcheck(function, sample.input, check_forward_ad=True, fast_mode=fast)
        gradgradcheck(function, sample.input, check_fwd_over_rev=True, fast_mode=fast)
