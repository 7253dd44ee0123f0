"""The course of a call: its arrays, the device, the computation, the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import _arrays, _libraries
from ._devices import cuda_index, is_several, number_of
from ._options import selected
from ._selection import keep_within
from ._types import SVDInfo

if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN = _arrays.PLAIN


class Kind(NamedTuple):
    """What differs between the SVD of bidiagonal matrices and that of dense ones."""

    form: _arrays.Form
    # (inputs, method, vectors): the device of a call that names none
    default_device: Callable
    # (compute, inputs, options, interval, place): compute and options for select="v"
    within: Callable
    # (inputs): refuses shapes
    check: Callable | None = None


def svd(kind, compute, inputs, options, select, select_range, device, stream, out):
    """compute(inputs, options, device) for a user: the result, or (the result, SVDInfo)."""
    made_by = run
    if device is not None and is_several(device):
        from ._several import svd as made_by  # few calls need it
    try:
        return made_by(kind, compute, inputs, options, select, select_range, device, stream, out)
    except (TypeError, ValueError) as error:
        explain(error, kind.form, inputs)
        raise


def explain(error, form, inputs):
    """Adds to an error what was likely meant."""
    from . import _diagnosis  # only now: no other call needs it

    _diagnosis.explain(error, form, inputs)


def run(kind, compute, inputs, options, select, select_range, device, stream, out):
    """The same on one device, with errors as they are."""
    form = kind.form
    if out is not None and not options.compute_uv:
        form, out = form._replace(results=(form.results[1],)), (out,)
    inputs, options, place = arranged(form, inputs, options, device, stream, out)
    if kind.check is not None:
        kind.check(inputs)
    interval = None
    if select != "a" or select_range is not None:
        options, interval = wanted(options, select, select_range)
    if interval is not None:
        compute, options = kind.within(compute, inputs, options, interval, place)
    result, cuda = computed(compute, inputs, options, place, device, kind.default_device)
    return finished(result, options, interval, place, cuda)


def arranged(form, inputs, options, device, stream, out, lasts=False):
    """The input and options as _core takes them, and the place of the arrays."""
    # there are one or two: a loop would take noticeable time at n = 8
    if stream is None and type(inputs[0]) in _PLAIN and type(inputs[-1]) in _PLAIN:
        if out is None:
            return inputs, options, _arrays.HOST
        if type(out) is tuple and _PLAIN.issuperset(map(type, out)):
            return inputs, options.replace(out=out), _arrays.HOST
    number = None if device is None else number_of(device)
    inputs, place = _arrays.arrange(form, inputs, out, number, stream, lasts)
    if place.device >= 0:
        _libraries.prepare_cuda()
    return inputs, in_place(options, place), place


def in_place(options, place):
    """The options with what the place of the arrays says."""
    return options.replace(
        out=place.out,
        on_device=place.device >= 0,
        stream=place.stream,
        keep=place.keep,
        wait=place.wait,
    )


def wanted(options, select, select_range):
    """The options with the range of select="i"; the bounds of select="v", or None."""
    if select == "a" and select_range is None:
        return options, None
    low, high = selected(select, select_range)
    if select == "v":
        return options, (low, high)
    return options.replace(first=low, count=high), None


def computed(compute, inputs, options, place, device, default_device):
    """compute(inputs, options, cuda), and cuda: a CUDA device, or -1 for the CPU.

    If the caller named no device and that of its choice has too little memory, the CPU computes.
    """
    if place.device >= 0:
        cuda = place.device
    elif device is not None:
        cuda = cuda_index(device)
    else:
        cuda = default_device(inputs, options.method, options.compute_uv)
    try:
        return compute(inputs, options, cuda), cuda
    except MemoryError as error:
        if device is not None or place.device >= 0 or getattr(error, "device", None) is None:
            raise  # no CUDA device is the reason, or none else can be used
    return compute(inputs, options, -1), -1


def finished(result, options, interval, place, cuda):
    """What the user gets. interval: the bounds of select="v", or None."""
    vectors, full_output = options.compute_uv, options.full_output
    if full_output:
        result, info = result
    if interval is not None and place.device < 0:
        keep_within(result[1] if vectors else result, *interval)
    if place is not _arrays.HOST:
        result = _arrays.results(place, result)
        if vectors:
            result = options.result(*result)
        elif place.given is not None:
            (result,) = result
    if full_output:
        return result, SVDInfo(device="cpu" if cuda < 0 else f"cuda:{cuda}", **info)
    return result
