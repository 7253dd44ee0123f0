"""What the functions of `tsvd.torch` share."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch._functorch import pyfunctorch
from torch.autograd import forward_ad

from . import _arrays
from ._precision import own_precision
from ._selection import index_range
from ._torch_operators import is_traced

# The select_range of an interval that holds no value.
NONE = (0, -1)


# Older releases put the forward part of a function of autograd into the graph of a torch.func.grad,
# and differentiate that instead of calling its backward.
_FOLLOWS_GRAD = torch.__version__ >= (2, 15)

# torch.compile breaks its graph at such a function, and calls it as it is.
outside_graphs = torch.compiler.disable


class Differentiable(NamedTuple):
    """A function of autograd, and the same without forward mode, which torch.compile can follow."""

    whole: type
    reverse: type


def differentiable(function):
    """Makes both of a function of autograd."""
    for name in ("forward", "backward", "jvp"):
        setattr(function, name, staticmethod(_in_own_precision(getattr(function, name))))
    names = ("forward", "setup_context", "backward", "vmap")
    kept = {name: function.__dict__[name] for name in names}
    name = f"{function.__name__}Reverse"
    return Differentiable(function, type(name, (torch.autograd.Function,), kept))


def _in_own_precision(method):
    """A method of a function of autograd whose products keep the precision of their factors.

    A graph holds the same for autocast. PyTorch's setting for products of float32 is that of the
    whole graph.
    """

    @functools.wraps(method)
    def call(*arguments):
        if not torch.compiler.is_compiling():
            with own_precision("torch"):
                return method(*arguments)
        kinds = [x.device.type for x in arguments if isinstance(x, torch.Tensor)]
        with torch.autocast(kinds[0] if kinds else "cpu", enabled=False):
            return method(*arguments)

    return call


def apply(function, *arguments):
    """Calls a differentiable function, within a graph of torch.compile or without one."""
    if not torch.compiler.is_compiling():
        return function.whole.apply(*arguments)
    if _is_first_order():
        return function.reverse.apply(*arguments)
    return _outside_graphs(function.whole, *arguments)


@outside_graphs
def _outside_graphs(function, *arguments):
    return function.apply(*arguments)


@torch.compiler.assume_constant_result
def _is_first_order():
    """Whether a graph that is being made asks for no derivative but one in reverse mode.

    Of another it would make zeros: it keeps the function of autograd for one level only, and within
    torch.vmap for none.
    """
    if forward_ad._current_level >= 0:
        return False
    levels, transform = _levels(), torch._C._functorch.TransformType
    follows = _FOLLOWS_GRAD and transform.Vmap not in levels
    return transform.Jvp not in levels and levels.count(transform.Grad) <= int(follows)


@torch.compiler.assume_constant_result
def _is_within_transformation():
    return bool(_levels())


def number(name, x):
    """A tensor as tsvd computes it."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} must be a tensor of PyTorch, not {type(x).__name__}")
    if not torch.compiler.is_compiling() and x.layout != torch.strided:
        raise TypeError(
            f"{name} is a sparse tensor: tsvd.torch takes {name}.to_dense(), and tsvd.linalg.svds "
            "finds a few values of sparse matrices of SciPy"
        )
    return x if x.is_floating_point() or x.is_complex() else x.double()


def indices(tensors, orders, compute, select, select_range):
    """select and select_range by index; the range is NONE where no value lies in an interval.

    compute(select=, select_range=): the values.
    """
    if select == "i" and select_range is not None and orders:
        return select, index_range(select_range, min(orders))
    if select != "v":
        return select, select_range
    if torch.compiler.is_compiling():
        return _indices_outside_graphs(tensors, orders, compute, select, select_range)
    if any(map(_arrays.is_transformed, tensors)) or any(map(is_traced, tensors)):
        raise NotImplementedError(
            'select="v" within a transformation of torch.func or a graph: how many values there '
            'are depends on their numbers; use select="i"'
        )

    def count(interval):
        return compute(select="v", select_range=interval).shape[-1]

    inside = count(select_range)
    if inside == 0:
        return "i", NONE
    above = count((select_range[1], math.inf)) if select_range[1] < math.inf else 0
    return "i", (above, above + inside - 1)


@outside_graphs
def _indices_outside_graphs(*arguments):
    return indices(*arguments)


def may_want_derivative(x):
    if torch.compiler.is_compiling():
        return x.requires_grad or _is_within_transformation()
    return _arrays.has_tangent(x) or (x.requires_grad and torch.is_grad_enabled())


def _levels():
    """The kinds of the transformations of torch.func that are going on, from the outermost one."""
    return [level.key() for level in pyfunctorch.retrieve_all_functorch_interpreters()]


def _has_outer_tangents():
    """Not in forward mode of one level, whose tangents may come together: vmap has no rule for
    taking them off."""
    return forward_ad._current_level > 0 or torch._C._functorch.TransformType.Jvp in _levels()


def outer_tangents():
    """What jvp() computes in: PyTorch turns forward mode off there, which loses outer tangents."""
    return forward_ad._set_fwd_grad_enabled(_has_outer_tangents())


def primals(tensors):
    """Tensors without the tangents of the level whose jvp() is computed."""
    if not _has_outer_tangents():
        return tuple(tensors)
    return tuple(x if x is None else forward_ad.unpack_dual(x).primal for x in tensors)


def in_front(x, dim, size):
    """x with the dimension that vmap maps over in front."""
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


def or_zeros(x, like):
    """A tangent or a gradient in full, where it is None."""
    return torch.zeros_like(like) if x is None else x
