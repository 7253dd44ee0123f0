"""What the functions of `tsvd.torch` share."""

from __future__ import annotations

import math

import torch
from torch.autograd import forward_ad

from . import _arrays
from ._selection import index_range

# torch.compile leaves these functions out of its graphs: it cannot follow a call of the C core.
outside_graphs = torch.compiler.disable

# The select_range of an interval that holds no value.
NONE = (0, -1)


def number(name, x):
    """A tensor as tsvd computes it."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} must be a tensor of PyTorch, not {type(x).__name__}")
    return x if x.is_floating_point() or x.is_complex() else x.double()


def indices(tensors, orders, compute, select, select_range):
    """select and select_range by index; the range is NONE where no value lies in an interval.

    compute(select=, select_range=): the values.
    """
    if select == "i" and select_range is not None and orders:
        return select, index_range(select_range, min(orders))
    if select != "v":
        return select, select_range
    if any(map(_arrays.is_transformed, tensors)):
        raise NotImplementedError(
            'select="v" within a transformation of torch.func: how many values there are depends '
            'on their numbers; use select="i"'
        )

    def count(interval):
        return compute(select="v", select_range=interval).shape[-1]

    inside = count(select_range)
    if inside == 0:
        return "i", NONE
    above = count((select_range[1], math.inf)) if select_range[1] < math.inf else 0
    return "i", (above, above + inside - 1)


def may_want_derivative(x):
    return _arrays.has_tangent(x) or (x.requires_grad and torch.is_grad_enabled())


def outer_tangents():
    """What jvp() computes in: PyTorch turns forward mode off there, which loses outer tangents."""
    return forward_ad._set_fwd_grad_enabled(True)


def primals(tensors):
    """Tensors without the tangents of the level whose jvp() is computed."""
    return tuple(x if x is None else forward_ad.unpack_dual(x).primal for x in tensors)


def in_front(x, dim, size):
    """x with the dimension that vmap maps over in front."""
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


def or_zeros(x, like):
    """A tangent or a gradient in full, where it is None."""
    return torch.zeros_like(like) if x is None else x
