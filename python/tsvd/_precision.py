"""Products in the precision of their arrays, also where a library was told to compute them in less.

PyTorch multiplies in half precision under autocast. By its setting for products of float32, and by
default in JAX, a GPU rounds their factors to 11 bits. A result of tsvd is to keep its digits.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading

from . import _arrays


def own_precision(library):
    """A context in which products of arrays of this library lose nothing."""
    if library == "torch":
        return _in_torch(sys.modules["torch"])
    if library == "jax":
        return sys.modules["jax"].default_matmul_precision("highest")
    return contextlib.nullcontext()


def in_own_precision(function):
    """Decorates a function of arrays, which computes so."""

    @functools.wraps(function)
    def call(*arguments, **options):
        libraries = map(_arrays.library_of, (*arguments, *options.values()))
        with own_precision(next(filter(None, libraries), None)):
            return function(*arguments, **options)

    return call


@contextlib.contextmanager
def _in_torch(torch):
    with contextlib.ExitStack() as stack:
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        stack.enter_context(_full_float32)
        yield


class _FullFloat32:
    """PyTorch's setting for products of float32 is one for all threads.

    The first thread that comes in sets it, and the last one that leaves puts it back.
    """

    def __init__(self):
        self._lock, self._inside, self._undo = threading.Lock(), 0, ()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self):
        """The threads that were inside are not in the child."""
        self._lock, self._inside = threading.Lock(), 0

    def __enter__(self):
        with self._lock:
            if self._inside == 0:
                self._undo = _set_full(sys.modules["torch"])
            self._inside += 1

    def __exit__(self, *_):
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for undo in self._undo:
                    undo()


_full_float32 = _FullFloat32()


def _set_full(torch):
    """Sets full precision; returns what brings back the setting that there was.

    PyTorch has an older setting, and from 2.9 on newer ones for parts of it. The older one sets
    those too, and refuses to answer where they contradict it.
    """
    places = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    places = [place for place in places if hasattr(place, "fp32_precision")]
    before = [place.fp32_precision for place in places]
    if before and all(setting in _FULL for setting in before):
        return ()
    undo = []
    with contextlib.suppress(RuntimeError):
        older = torch.get_float32_matmul_precision()
        if older != "highest":
            undo.append(functools.partial(torch.set_float32_matmul_precision, older))
            torch.set_float32_matmul_precision("highest")
    for place, setting in zip(places, before, strict=True):
        undo.append(functools.partial(_set, place, setting))
        _set(place, "ieee")
    return undo


_FULL = "ieee", "none"  # of their own, and that of no setting at all


def _set(place, setting):
    """Sets what a place answers; by inheritance, if it does so then."""
    for own in ("none", setting):
        if place.fp32_precision != setting:
            place.fp32_precision = own
