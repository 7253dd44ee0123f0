"""The primitive of JAX by which `tsvd.jax` calls the C core, and what JAX must know of it.

A call takes arrays with the same leading dimensions, a batch, and so are its results. vmap adds to
the batch. A batch that is sharded stays so, and each device computes its part. Within
`jax.shard_map` results vary over the axes of the mesh over which an argument varies.
"""

from __future__ import annotations

import contextlib
import functools

import jax
import numpy as np

try:
    from jax import ffi
except ImportError as error:
    raise ImportError(f"tsvd.jax needs JAX 0.5.0 or newer, not {jax.__version__}") from error

from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.interpreters import batching, mlir
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from . import _core, _libraries

try:
    from jax.extend.mlir.dialects import sdy
except ImportError:  # a JAX that partitions by GSPMD
    sdy = None

_typeof = jax.typeof if hasattr(jax, "typeof") else jax.core.get_aval
_call_p = Primitive("tsvd_call")
_call_p.multiple_results = True

_libraries.prepare_cuda()
for _target, _handlers in _core.xla_handlers().items():
    for _platform, _handler in _handlers.items():
        ffi.register_ffi_target(_target, _handler, platform=_platform)
    if hasattr(ffi, "register_ffi_target_as_batch_partitionable"):
        ffi.register_ffi_target_as_batch_partitionable(_target)
with contextlib.suppress(ImportError):  # then calls that need a BLAS say so
    _core.load_blas()  # handlers cannot import it


def call(target, inputs, core_ndim, results, **attributes):
    """The results of a target of XLA.

    core_ndim: how many dimensions of an input are no batch. results: (shape without the batch,
    dtype) of each result. attributes: integers, and floats.
    """
    numbers = {
        name: (np.int64, np.float64)[isinstance(x, float)](x) for name, x in attributes.items()
    }
    return _call_p.bind(
        *vary_alike(*inputs),
        target=target,
        core_ndim=core_ndim,
        results=tuple(results),
        attributes=tuple(sorted(numbers.items())),
    )


# ---- shard_map ----


def _varying(x):
    """The manual axes of a mesh over which x varies."""
    aval = _typeof(x)
    if hasattr(aval, "mat"):
        return aval.mat.varying
    return getattr(aval, "vma", frozenset())


def vary_alike(*arrays):
    """The arrays, each varying over all axes over which one of them does."""
    axes = frozenset().union(*map(_varying, arrays))
    return tuple(_made_varying(x, tuple(axes - _varying(x))) for x in arrays)


def _made_varying(x, axes):
    if not axes:
        return x
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(x, axes, to="varying")
    return jax.lax.pvary(x, axes)


# ---- the rules of the primitive ----


@functools.lru_cache(maxsize=1024)
def _compiled(**params):
    return jax.jit(functools.partial(_call_p.bind, **params))


@_call_p.def_impl
def _run(*inputs, **params):
    with jax.disable_jit(False):
        return _compiled(**params)(*inputs)


@_call_p.def_abstract_eval
def _results(*avals, target, core_ndim, results, attributes):
    (a, *_), batch_ndim = avals, avals[0].ndim - core_ndim
    batch = a.shape[:batch_ndim]
    sharding = _batch_sharding(avals, batch_ndim)
    return [
        a.update(
            shape=(*batch, *shape),
            dtype=np.dtype(dtype),
            weak_type=False,
            **sharding(len(shape)),
        )
        for shape, dtype in results
    ]


def _batch_sharding(avals, batch_ndim):
    """What says of results how their batch is sharded, as a function of their other dimensions."""
    if getattr(avals[0], "sharding", None) is None:
        return lambda ndim: {}
    specs = [tuple(x.sharding.spec) + (None,) * (x.ndim - len(x.sharding.spec)) for x in avals]
    if any(axis is not None for spec in specs for axis in spec[batch_ndim:]):
        raise ValueError(
            f"tsvd computes whole matrices: an argument is sharded within them, as {specs} say; "
            "shard the batch alone"
        )
    if any(spec[:batch_ndim] != specs[0][:batch_ndim] for spec in specs):
        raise ValueError(f"the batches of the arguments are sharded in different ways: {specs}")
    mesh, batch = avals[0].sharding.mesh, specs[0][:batch_ndim]
    return lambda ndim: {"sharding": NamedSharding(mesh, P(*batch, *(None,) * ndim))}


def _mapped(inputs, dims, **params):
    (size,) = {x.shape[i] for x, i in zip(inputs, dims, strict=True) if i is not None}
    inputs = (
        jax.numpy.broadcast_to(x, (size, *x.shape)) if i is None else jax.numpy.moveaxis(x, i, 0)
        for x, i in zip(inputs, dims, strict=True)
    )
    results = _call_p.bind(*vary_alike(*inputs), **params)
    return results, [0] * len(results)


batching.primitive_batchers[_call_p] = _mapped


def _lowered(context, *inputs, target, core_ndim, results, attributes):
    avals = (*context.avals_in, *context.avals_out)
    more = {}
    batch_ndim = context.avals_in[0].ndim - core_ndim
    # XLA does not shard a batch whose size it is not told.
    if batch_ndim > 0 and all(isinstance(k, int) for x in avals for k in x.shape):
        number = ir.StringAttr.get(str(batch_ndim))
        more["mhlo.frontend_attributes"] = ir.DictAttr.get({"num_batch_dims": number})
        if sdy is not None and getattr(jax.config, "jax_use_shardy_partitioner", False):
            more["sdy.sharding_rule"] = _sharding_rule(context, batch_ndim)
    rule = ffi.ffi_lowering(target, **({"extra_attributes": more} if more else {}))
    return rule(context, *inputs, **dict(attributes))


def _sharding_rule(context, batch_ndim):
    """Shardy's rule: the dimensions of the batch are those of all arrays, the others of one."""
    sizes = list(context.avals_in[0].shape[:batch_ndim])
    batch = [sdy.DimMappingAttr.get([i]) for i in range(batch_ndim)]

    def mapping(aval):
        first = len(sizes)
        sizes.extend(aval.shape[batch_ndim:])
        others = [sdy.DimMappingAttr.get([i]) for i in range(first, len(sizes))]
        return sdy.TensorMappingAttr.get([*batch, *others])

    operands, results = (
        [mapping(x) for x in avals] for avals in (context.avals_in, context.avals_out)
    )
    return sdy.OpShardingRuleAttr.get(sizes, operands, results, is_custom=True)


mlir.register_lowering(_call_p, _lowered)
