"""The names of devices, and which CUDA device a call takes that names none."""

from __future__ import annotations

import functools
import operator
import os

import numpy as np

from . import _core, _libraries


def is_several(device):
    """Whether the argument `device` names several devices."""
    return isinstance(device, (list, tuple)) or (isinstance(device, str) and device == "cuda:*")


def number_of(device):
    """The number of a device that has a name; -1 is the CPU."""
    if is_several(device):
        raise TypeError(
            "this function takes one device; tsvd.svd and svdvals, and svd, svdvals and inv of "
            "tsvd.linalg take several"
        )
    if type(device).__module__ == "torch":  # a torch.device
        device = str(device)
    return -1 if device == "cpu" else _index_of(device)


def cuda_index(device):
    """The number of a CUDA device that exists; -1 is the CPU."""
    index = number_of(device)
    if index < 0:
        return -1
    _libraries.prepare_cuda()
    count, why = _core.cuda_device_count()
    if count == 0:
        raise RuntimeError(f"device={device!r} cannot be used: {why}")
    if index >= count:
        raise RuntimeError(f"device={device!r} does not exist: CUDA devices are 0 to {count - 1}")
    return index


def _index_of(device):
    if isinstance(device, str):
        kind, colon, digits = device.partition(":")
        if kind == "cuda" and (digits.isdecimal() if colon else True):
            return int(digits or 0)
        raise ValueError(f'unknown device {device!r}; use "cpu", "cuda", "cuda:1" or 1')
    if isinstance(device, bool) or not hasattr(device, "__index__"):
        raise TypeError(f"device must be a string or an integer, not {type(device).__name__}")
    index = operator.index(device)
    if index < 0:
        raise ValueError(f"device must not be negative, not {index}")
    return index


@functools.cache
def usable():
    """The numbers of all CUDA devices that can be used; an error if there is none."""
    _libraries.prepare_cuda()
    count, why = _core.cuda_device_count()
    reasons = [_core.cuda_device_unusable(i) for i in range(count)]
    if all(reasons):
        raise RuntimeError(f'device="cuda:*" cannot be used: {next(iter(reasons), why)}')
    return tuple(i for i, reason in enumerate(reasons) if not reason)


@functools.cache
def facts_of(index):
    """What a CUDA device is, as `_core.cuda_device` tells it; what it has free changes."""
    return _core.cuda_device(index)


# ---- the default ----


def default_device(pays, single, opens):
    """The CUDA device of a large call that asks for none; -1 is the CPU.

    pays(rates, single) says whether a device is the faster place; single() whether the call
    computes in float32; opens(index) whether it can use the device. CUDA is asked about its devices
    only here, and a context is made on the device that is taken, no other.
    """
    index, rates = first_cuda()
    if index < 0 or not pays(rates, single()):
        return -1
    try:
        return index if opens(index) else -1
    except MemoryError:  # others may give it back: the next call tries again
        return -1


def is_single(*arrays):
    """Whether _core computes in float32, or in complex numbers of its parts."""
    return all(np.asarray(x).dtype.type in (np.float32, np.complex64) for x in arrays)


def shape_of(x):
    """The shape; (0,) if _core will refuse x."""
    try:
        return x.shape or (0,)
    except AttributeError:
        pass
    try:
        return np.shape(x) or (0,)
    except ValueError:
        return (0,)


@functools.cache
def first_cuda():
    """The first usable CUDA device and what its speed depends on; (-1, None): there is none."""
    try:
        _libraries.prepare_cuda()
        count, _ = _core.cuda_device_count()
        index = next((i for i in range(count) if not _core.cuda_device_unusable(i)), -1)
        if index < 0:
            return -1, None
        facts = _core.cuda_device(index)
    except RuntimeError:
        return -1, None
    rates = (facts["multiprocessors"], facts["clock_khz"], facts["single_to_double"])
    return index, facts["compute_capability"] + rates


@functools.cache
def opens(index, multiplies):
    """Whether a call can use the CUDA device. multiplies: it needs cuBLAS too."""
    try:
        if multiplies:
            _core.cuda_blas(0)
        _core.cuda_open(index)
    except RuntimeError:
        return False
    return True


@functools.cache
def opens_dense(index):
    """Whether a call for dense matrices can use the CUDA device."""
    return opens(index, True) and _core.dense_offered(index)


# A forked child cannot use the CUDA devices of its parent.
for _answer in (usable, facts_of, first_cuda, opens, opens_dense):
    os.register_at_fork(after_in_child=_answer.cache_clear)
