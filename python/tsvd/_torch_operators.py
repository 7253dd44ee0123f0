"""The computations of `tsvd.torch` as operators of PyTorch, `torch.ops.tsvd`.

A graph of torch.compile, torch.export or make_fx can hold them: the shapes of their results are
known without their numbers. They have no derivatives of their own: these are in the functions of
autograd that call them. Without a graph those call tsvd itself, which takes less time.
"""

from __future__ import annotations

import contextlib

import torch
from torch.autograd import forward_ad

from . import _api, _dense, _nearest, _space, linalg
from ._precision import own_precision

_LIBRARY = torch.library.Library("tsvd", "DEF")
_BELOW_AUTOGRAD = torch._C._after_autograd_keyset

_OPTIONS = "str? device=None, int? threads=None"
_PART = "str select='a', SymInt[]? select_range=None"
_METHOD = "str method='auto', float? eps=None, int? max_sweeps=None, bool check_finite=True"


def _operator(schema):
    """Makes an operator of a function that computes, and of one that says the shapes."""
    name = schema.partition("(")[0]

    def define(functions):
        compute, shapes = functions()

        def computed(*inputs, **options):
            with _plainly(), own_precision("torch"):
                found = compute(*(x.detach() for x in inputs), **options)
                if isinstance(found, torch.Tensor):
                    return found.resolve_conj().contiguous()
                return tuple(torch.as_tensor(x).resolve_conj().contiguous() for x in found)

        def differentiated(keys, *inputs, **options):
            if torch.is_grad_enabled() and any(map(_wants_derivative, inputs)):
                raise NotImplementedError(
                    f"torch.ops.tsvd.{name} has no derivative: tsvd.torch has the function that "
                    "calls it and has derivatives"
                )
            with torch._C._AutoDispatchBelowAutograd():
                return operator.redispatch(keys & _BELOW_AUTOGRAD, *inputs, **options)

        computed = torch.compiler.disable(computed)  # some releases look into it
        _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        _LIBRARY.impl(name, computed, "CPU")
        _LIBRARY.impl(name, computed, "CUDA")
        _LIBRARY.impl(name, differentiated, "Autograd", with_keyset=True)
        torch.library.register_fake(f"tsvd::{name}", shapes, lib=_LIBRARY)
        operator = getattr(torch.ops.tsvd, name).default
        return operator

    return define


def _wants_derivative(x):
    return x.requires_grad or forward_ad.unpack_dual(x).tangent is not None


@contextlib.contextmanager
def _plainly():
    """Where an operator computes: nothing is traced, and views of conjugates are what they are.

    A graph records the operator, and nothing that it does. Some graphs call operators with
    PyTorch's rules for such views turned off.
    """
    state = torch._C._get_tracing_state()
    with contextlib.ExitStack() as stack:
        for key in (torch._C.DispatchKey.Conjugate, torch._C.DispatchKey.Negative):
            if torch._C._dispatch_tls_is_dispatch_key_excluded(key):
                stack.enter_context(torch._C._SetExcludeDispatchKeyGuard(key, False))
        if state is not None:
            torch._C._set_tracing_state(None)
            stack.callback(torch._C._set_tracing_state, state)
        yield


def is_traced(x):
    """Whether a call on x is recorded, or x has no numbers: then an operator has to be called."""
    return (
        torch.compiler.is_compiling()
        or type(x) not in (torch.Tensor, torch.nn.Parameter)
        or x.is_meta
        or torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack() > 0
    )


def _count(order, select_range):
    return order if select_range is None else select_range[1] - select_range[0] + 1


# ---- bidiagonal matrices ----


@_operator(
    f"svd(Tensor d, Tensor e, *, bool lower=False, {_METHOD}, {_PART}, {_OPTIONS}) "
    "-> (Tensor L, Tensor s, Tensor R)"
)
def svd():
    def shapes(d, e, select_range=None, **_):
        *batch, n = d.shape
        k = _count(n, select_range)
        return d.new_empty((*batch, n, k)), d.new_empty((*batch, k)), d.new_empty((*batch, k, n))

    return _api.svd, shapes


@_operator(
    f"svdvals(Tensor d, Tensor e, *, bool lower=False, {_METHOD}, {_PART}, {_OPTIONS}) -> Tensor"
)
def svdvals():
    def shapes(d, e, select_range=None, **_):
        return d.new_empty((*d.shape[:-1], _count(d.shape[-1], select_range)))

    return _api.svdvals, shapes


# ---- dense matrices ----


def _sizes(a):
    """Batch, m, n and the smaller of these; or the error of tsvd.linalg."""
    if a.ndim < 2:
        raise linalg.LinAlgError(
            f"{a.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    return tuple(a.shape[:-2]), *a.shape[-2:], min(a.shape[-2:])


def _factors(a, k=None):
    """U, S and Vh of k values; None: of all."""
    batch, m, n, p = _sizes(a)
    k = p if k is None else k
    S = a.new_empty((*batch, k), dtype=a.dtype.to_real())
    return a.new_empty((*batch, m, k)), S, a.new_empty((*batch, k, n))


@_operator(
    f"linalg_svd(Tensor a, *, {_METHOD}, {_PART}, {_OPTIONS}) -> (Tensor U, Tensor S, Tensor Vh)"
)
def linalg_svd():
    def compute(a, **options):
        return linalg.svd(a, full_matrices=False, **options)

    def shapes(a, select_range=None, **_):
        return _factors(a, _count(_sizes(a)[-1], select_range))

    return compute, shapes


@_operator(f"linalg_svdvals(Tensor a, *, {_METHOD}, {_PART}, {_OPTIONS}) -> Tensor")
def linalg_svdvals():
    def shapes(a, select_range=None, **_):
        return _factors(a, _count(_sizes(a)[-1], select_range))[1]

    return linalg.svdvals, shapes


@_operator(
    f"linalg_inv(Tensor a, *, bool refine=False, bool check_finite=True, {_OPTIONS}) -> Tensor"
)
def linalg_inv():
    def compute(a, **options):
        return _dense.inverse(a, **options)[0]

    def shapes(a, **_):
        batch, m, n, _ = _sizes(a)
        if m != n:
            raise linalg.LinAlgError("Last 2 dimensions of the array must be square")
        return a.new_empty((*batch, n, n))

    return compute, shapes


@_operator(
    "linalg_pinv(Tensor a, *, Tensor? rcond=None, Tensor? rtol=None, Tensor? atol=None, "
    f"bool hermitian=False, bool check_finite=True, {_OPTIONS}) -> (Tensor X, Tensor rank)"
)
def linalg_pinv():
    def compute(a, rtol=None, **options):
        part = {} if rtol is None else {"rtol": rtol}
        return linalg.pinv(a, return_rank=True, **part, **options)

    def shapes(a, **_):
        batch, m, n, _ = _sizes(a)
        return a.new_empty((*batch, n, m)), a.new_empty(batch, dtype=torch.int64)

    return compute, shapes


@_operator(
    f"linalg_lstsq(Tensor a, Tensor b, *, Tensor? rcond=None, {_OPTIONS}) "
    "-> (Tensor x, Tensor residuals, Tensor rank, Tensor s)"
)
def linalg_lstsq():
    def shapes(a, b, **_):
        batch, m, n, p = _sizes(a)
        k = b.shape[-1]
        if not batch:  # as NumPy has them: of full rank alone
            k = 0 if m <= n else torch.library.get_ctx().new_dynamic_size()
        of_values = a.new_empty((*batch, p), dtype=a.dtype.to_real())
        rank = a.new_empty(batch, dtype=torch.int64)
        return (
            b.new_empty((*batch, n, b.shape[-1])),
            of_values.new_empty((*batch, k)),
            rank,
            of_values,
        )

    return linalg.lstsq, shapes


@_operator(
    f"linalg_polar(Tensor a, *, str side, {_OPTIONS}) "
    "-> (Tensor U, Tensor P, Tensor W, Tensor s, Tensor Vh)"
)
def linalg_polar():
    def compute(a, side, **options):
        U, P, factors = _nearest.polar_and_svd(torch, _space.matrices("a", a), side, options)
        return U, P, *factors

    def shapes(a, side, **_):
        batch, m, n, _ = _sizes(a)
        order = n if side == "right" else m
        U, P = a.new_empty((*batch, m, n)), a.new_empty((*batch, order, order))
        return U, P, *_factors(a)

    return compute, shapes
