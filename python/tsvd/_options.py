"""The checks of options that svd of bidiagonal and of dense matrices share."""

from __future__ import annotations

import inspect
import math
import operator
import sys
from collections.abc import Mapping

from . import _core
from ._selection import indices

_METHODS = _core.METHODS
_INT_MAX = 2**31 - 1
# For each setting of `tuning`: the least value and the largest.
_KNOBS = {
    "blocks": (1, _INT_MAX),
    "block_threads": (1, _INT_MAX),
    "split": (0, 1),
    "fallback": (0, 1),
    "stages": (1, 2),
}
INT64_MAX = 2**63 - 1
_FLOAT_MAX = sys.float_info.max


def binds(*required):
    """A decorator: the signature that is shown has no default for these, and no other keywords.

    The function takes both, so that it can say itself what is wrong (refusal()).
    """

    def shown(function):
        signature = inspect.signature(function)
        parameters = [
            p.replace(default=p.empty) if p.name in required else p
            for p in signature.parameters.values()
            if p.kind != p.VAR_KEYWORD
        ]
        function.__signature__ = signature.replace(parameters=parameters)
        return function

    return shown


def refusal(function, unknown):
    """The exception of a call with keywords that the function does not have, or without e."""
    from . import _diagnosis  # only now: no other call needs it

    if unknown:
        return _diagnosis.unknown_keyword(function, unknown)
    return _diagnosis.missing_e(function)


def method_number(method, vectors, dense=False):
    """The number of a method. dense: also of those that take dense matrices only."""
    try:
        number = _METHODS[method if dense or method != "jacobi" else None]
    except (KeyError, TypeError):
        if method == "jacobi":
            raise ValueError('method="jacobi" takes dense matrices: use tsvd.linalg.svd') from None
        names = ", ".join(f'"{name}"' for name in _METHODS if dense or name != "jacobi")
        raise ValueError(f"unknown method {method!r}; use one of {names}") from None
    if method == "bisect" and vectors:
        raise ValueError(
            'method="bisect" computes values only; use svdvals, or svd with compute_uv=False'
        )
    return number


def checked(
    result,
    method,
    compute_uv,
    full_output,
    eps,
    max_sweeps,
    check_finite,
    threads,
    progress,
    tuning,
    *,
    lower=False,
    full=False,
    dense=False,
):
    """The options of svd as _core takes them. result: a type. dense: also the methods for it."""
    number = method_number(method, compute_uv, dense)
    # The checks of what is left out would take noticeable time at n = 8.
    if eps is not None:
        eps = eps_number(eps)
    if max_sweeps is not None:
        max_sweeps = integer("max_sweeps", max_sweeps, 1, INT64_MAX)
    if threads is not None:
        check_threads(threads)
    known = None if tuning is None else knobs(tuning)
    if progress is not None:
        check_progress(progress)
    options = _core.options(
        compute_uv=compute_uv,
        full_output=full_output,
        full=full,
        result=result,
        lower=lower,
        method=number,
        eps=eps,
        max_sweeps=max_sweeps,
        check_finite=check_finite,
        progress=progress,
        threads=threads,
    )
    return options.replace(**known) if known else options


def eps_number(eps):
    """eps as the core takes it; negative: full accuracy."""
    if eps is None:
        return -1.0
    if not 0 <= real("eps", eps) <= _FLOAT_MAX:
        raise ValueError(f"eps must be None or a finite number >= 0, not {eps!r}")
    return eps


def integer(name, value, least, largest):
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if not least <= number <= largest:
        raise ValueError(f"{name} must be from {least} to {largest}, not {number}")
    return number


def knobs(tuning):
    """The settings of `tuning` as a dict."""
    if not isinstance(tuning, Mapping):
        raise TypeError(f"tuning must be a mapping, not {type(tuning).__name__}")
    for name in tuning:
        if name == "threads":
            raise ValueError("threads is an argument of its own, no tuning knob")
        if name not in _KNOBS:
            raise ValueError(f"unknown tuning knob {name!r}; use {', '.join(_KNOBS)}")
    return {
        name: integer(f"tuning[{name!r}]", tuning[name], least, largest)
        for name, (least, largest) in _KNOBS.items()
        if name in tuning
    }


def check_threads(threads):
    if threads is not None:
        integer("threads", threads, 1, _INT_MAX)


def check_progress(progress):
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be callable, not {type(progress).__name__}")


def real(name, value):
    """The number as a float; infinite if it is beyond all floats."""
    try:
        if isinstance(value, (str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}") from None


def selected(select, select_range):
    """What of the values is wanted, if it is not all.

    The bounds of an interval, or the index of the first value and the number of values.
    """
    if select not in ("a", "v", "i"):
        raise ValueError(f'select must be "a", "v" or "i", not {select!r}')
    if select == "a":
        raise ValueError('select_range needs select="v" or select="i"')
    if select_range is None:
        raise ValueError(f"select={select!r} needs select_range=(min, max)")
    try:
        low, high = select_range
    except (TypeError, ValueError):
        raise TypeError(f"select_range must be a pair (min, max), not {select_range!r}") from None
    if select == "v":
        low, high = real("min of select_range", low), real("max of select_range", high)
        if not low < high:
            raise ValueError(f"select_range must have min < max, not {select_range!r}")
        return low, high
    low, high = indices((low, high))
    if high >= INT64_MAX:
        raise ValueError(f"select_range={select_range!r} is out of range")
    return low, high - low + 1
