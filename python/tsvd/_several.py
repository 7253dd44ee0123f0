"""One call on several CUDA devices.

A batch is shared out by its matrices. A single matrix is shared out by its values: each device
makes the vectors of its own, as a part of the whole call (tsvd_part in tsvd.h). A thread of the
host works with each device; the first is the caller's.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import _arrays, _call, _core
from ._devices import cuda_index, facts_of, shape_of, usable
from ._selection import keep_within
from ._team import Team
from ._types import SVDInfo

if TYPE_CHECKING:
    from collections.abc import Callable

# Results with fewer numbers are made by one device: they take as long as the threads do to start.
_BATCH_LEAST = 1 << 21
# The same of a single matrix: of order 8192 with vectors or dense, and of order 32,768 without.
_VECTORS_LEAST, _VALUES_LEAST = 1 << 26, 1 << 30
# The work on the values of a warp is the same wherever a share begins with a warp.
_TOGETHER = 32
# Bytes of results that are compared with what is free.
_MUCH = 1 << 26
# Seconds of work that tell how fast a device is.
_LONG = 0.02

# Methods that make the vectors of some values.
_TAKE_PARTS = tuple(_core.METHODS[name] for name in ("auto", "dc", "twisted"))


def _devices_of(device, stream):
    """The numbers of the devices that the argument `device` names."""
    if stream is not None:
        raise ValueError("a stream belongs to one device, and device names several")
    numbers = list(usable()) if device == "cuda:*" else [cuda_index(x) for x in device]
    if not numbers:
        raise ValueError("device names no device: give one or more")
    if -1 in numbers:
        raise ValueError("of several devices each must be a CUDA device, and one is the CPU")
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"device names a CUDA device twice: {list(device)}")
    return numbers


class Job(NamedTuple):
    """A call that may be shared out."""

    form: _arrays.Form
    compute: Callable  # (inputs, options, cuda): of _core
    inputs: tuple
    options: _core.Options
    place: _arrays.Place
    interval: tuple[float, float] | None = None  # of select="v"


def svd(kind, compute, inputs, options, select, select_range, device, stream, out):
    """What `_call.svd` does, on several devices."""
    devices = _devices_of(device, stream)
    asked = (kind, compute, inputs, options, select, select_range)
    form, given = kind.form, out

    def alone():
        """By the first device, or that where the arrays lie."""
        on_host = place.device < 0
        result = _call.run(*asked, devices[0] if on_host else None, None, given)
        return result if on_host else _as_lists(form, inputs, options, result)

    if out is not None and not options.compute_uv:
        form, out = form._replace(results=(form.results[1],)), (out,)
    inputs, options, place = _call.arranged(form, inputs, options, None, None, out)
    if kind.check is not None:
        kind.check(inputs)
    options, interval = _call.wanted(options, select, select_range)
    dense = form.inputs == _arrays.DENSE.inputs
    if interval is not None:
        if dense:
            return alone()  # which counts by the reduction that it needs in any case
        compute, options = kind.within(compute, inputs, options, interval, place)
    made = _shared(Job(form, compute, inputs, options, place, interval), devices)
    if made is None:
        return alone()
    result, outcomes, split = made
    if not options.compute_uv:
        (result,) = result
    else:
        result = options.result(*result)
    if not options.full_output:
        return result
    return result, _merged([info for _, info in outcomes], split)


def _as_lists(form, inputs, options, result):
    """Results of one device in the form of those of several: lists, but for arrays of JAX."""
    if any(_arrays.library_of(x) == "jax" for x in inputs):
        return result
    if form is _arrays.INVERSE:
        return [result]
    result, *info = result if options.full_output else (result,)
    lists = options.result(*([x] for x in result)) if options.compute_uv else [result]
    return (lists, *info) if info else lists


def inverse(inputs, options, device, stream, out):
    """(X, the least reciprocal condition, the matrix that has it), on several devices."""
    devices = _devices_of(device, stream)
    inputs, options, place = _call.arranged(_arrays.INVERSE, inputs, options, None, None, out)
    made = _shared(Job(_arrays.INVERSE, _core.inv, inputs, options, place), devices)
    if made is None:
        on_device = place.device >= 0
        result, *found = _core.inv(inputs, options, place.device if on_device else devices[0])
        result = _arrays.results(place, result)
        return _as_lists(_arrays.INVERSE, inputs, options, result) if on_device else result, *found
    (result,), outcomes, split = made
    found = [(x[1], begin + x[2]) for x, begin in zip(outcomes, split.bounds[:-1], strict=True)]
    return result, *min(found)


# ---- who makes what ----


class Split(NamedTuple):
    """What each device makes: bounds[i] .. bounds[i + 1] - 1, of matrices or of values."""

    devices: list[int]
    bounds: tuple[int, ...]
    of_values: bool
    batch: tuple[int, ...]  # leading dimensions
    ends: int  # dimensions of one matrix in the input
    first: int  # the values that are wanted
    values: int  # how many


def _shared(job, devices):
    """The results of a job, what each share returned, and the split; None: it is not worth it."""
    if job.place.device >= 0 and job.options.out is not None:
        raise ValueError("out takes the results of one device, and device names several")
    split = _split(job, devices)
    if split is None:
        return None
    begins = None if split.of_values else split.bounds
    team = Team(len(split.devices), job.options.progress, begins)
    if job.place.device >= 0:
        from ._sharding import shared
    else:
        shared = _shared_on_host
    made = shared(job, split, team)
    if made is None:
        return None
    if job.options.progress is not None:
        job.options.progress(1.0)
    _learn(split, team.seconds)
    return (*made, split)


def _shared_on_host(job, split, team):
    """The results, and what each share returned; None: the arrays that are given do not fit."""
    flat = _flat(job.inputs, split)
    outs = _outputs(job, split, flat)
    if outs is None:
        return None
    into = [x.reshape(-1, *x.shape[len(split.batch) :]) for x in outs]

    def work(i):
        inputs, options = share_of(split, i, flat, job, team)
        options = options.replace(out=_share_of_outputs(split, i, into))
        return job.compute(inputs, options, split.devices[i])

    outcomes = team.run(work)
    if split.of_values:  # neighbours of two parts may have crossed by an ulp, as those of one
        values = into[len(into) // 2]
        np.minimum.accumulate(values, axis=-1, out=values)
        if job.interval is not None:
            keep_within(values, *job.interval)
    if job.place.given is not None:
        outs = job.place.given
    elif job.place.wrap is not None:
        outs = tuple(map(job.place.wrap, outs))
    return outs, outcomes


def _split(job, devices):
    """How a job is shared out over devices; None: it is not."""
    ends = 1 if len(job.inputs) == 2 else 2
    shapes = [shape_of(x) for x in job.inputs]
    if len(devices) == 1 or any(len(shape) < ends for shape in shapes) or 0 in shapes[0]:
        return None
    try:
        batch = np.broadcast_shapes(*(shape[:-ends] for shape in shapes))
    except ValueError:
        return None  # one device says what is wrong
    options, n = job.options, min(shapes[0][-ends:])
    if ends == 1 and shapes[1][-1] not in (n - 1, n):
        return None
    count = n - options.first if options.count < 0 else options.count
    matrices = math.prod(batch)
    if not 0 < count <= n - options.first:
        return None
    sides = sum(shapes[0][-ends:]) if ends == 2 else 2 * n
    vectors = options.compute_uv or job.form is _arrays.INVERSE
    numbers = count * (sides if vectors else 1)
    rest = (batch, ends, options.first, count)
    if matrices == 0 or (matrices > 1 and matrices * numbers < _BATCH_LEAST):
        return None
    if matrices > 1:
        bounds = _cut(matrices, devices)
        return Split(devices[: len(bounds) - 1], bounds, False, *rest)
    least = _VECTORS_LEAST if options.compute_uv or ends == 2 else _VALUES_LEAST
    square = shapes[0][-1] == shapes[0][-2] if ends == 2 else shapes[1][-1] < n
    if job.form is _arrays.INVERSE or options.method not in _TAKE_PARTS or n * count < least:
        return None
    if options.full and options.compute_uv and not square:
        return None  # null vectors belong to no value
    # others would round in another way, and their vectors of close values would not fit
    devices = [x for x in devices if _are_alike([x, devices[0]])]
    *bounds, _ = (x * _TOGETHER for x in _cut(-(-count // _TOGETHER), devices))
    if len(bounds) == 1:
        return None
    return Split(devices[: len(bounds)], (*bounds, count), True, *rest)


# What work has shown of the speeds of devices: factors of _rate().
_corrections: dict[int, float] = {}


def _cut(count, devices):
    """The bounds of as many shares as there is work for.

    Devices of one model have equal shares, however busy they are: results must not depend on it.
    """
    devices = devices[:count]
    speeds = [1.0] * len(devices) if _are_alike(devices) else _speeds(devices)
    bounds = [0]
    for i, end in enumerate(itertools.accumulate(speeds)):
        most = count - (len(devices) - 1 - i)  # each of the others gets something, too
        bounds.append(min(max(round(count * end / sum(speeds)), bounds[-1] + 1), most))
    return tuple(bounds)


def _are_alike(devices):
    return len({facts_of(x)["name"] for x in devices}) == 1


def _speeds(devices):
    return [_rate(x) * _corrections.get(x, 1.0) for x in devices]


def _rate(device):
    facts = facts_of(device)
    return facts["multiprocessors"] * facts["clock_khz"]


def _learn(split, seconds):
    """Corrects the speeds of devices of different models, by half of what a batch has shown."""
    devices = split.devices
    if split.of_values or min(seconds) < _LONG or _are_alike(devices):
        return
    work = [end - begin for begin, end in itertools.pairwise(split.bounds)]
    before = np.array(_speeds(devices))
    shown = np.divide(work, seconds)
    factors = (shown / shown.sum() / (before / before.sum())).tolist()
    for device, factor in zip(devices, factors, strict=True):
        _corrections[device] = _corrections.get(device, 1.0) * math.sqrt(factor)


def share_of(split, i, flat, job, team):
    """The inputs and options of share i. flat: the inputs, with one leading dimension."""
    begin, end = split.bounds[i : i + 2]
    options = job.options.replace(progress=team.watch(i))
    if not split.of_values:
        whole = {} if job.form is _arrays.INVERSE else {"whole_count": split.values}
        return tuple(x[begin:end] for x in flat), options.replace(
            **whole, whole_first=split.first, whole_matrices=split.bounds[-1]
        )
    return tuple(x[0] for x in flat), options.replace(
        full=False,
        first=split.first + begin,
        count=end - begin,
        whole_first=split.first,
        whole_count=split.values,
        sum=team.sum(i),
    )


def _flat(inputs, split):
    """The inputs with one leading dimension, that of all matrices; copied where they must be."""
    arrays = map(np.asarray, inputs)
    own = [(x, x.shape[-split.ends :]) for x in arrays]
    all_matrices = math.prod(split.batch)
    return [np.broadcast_to(x, split.batch + end).reshape(all_matrices, *end) for x, end in own]


# ---- results on the host ----


def model_of(job, empty, device):
    """Results of no matrix, which tell the shapes and dtypes of those of one, on the host.

    empty: the inputs as a batch on the host without matrices.
    """
    plain = {"out": None, "on_device": False, "stream": 0, "keep": None, "wait": False}
    options = job.options.replace(**plain, progress=None, full_output=False)
    made = job.compute(empty, options, device)
    if job.form is _arrays.INVERSE:
        return made[:1]
    return made if isinstance(made, tuple) else (made,)


def _outputs(job, split, flat):
    """Arrays of the host for the results; None: those that are given do not fit."""
    models = model_of(job, tuple(x[:0] for x in flat), split.devices[0])
    made = [(split.batch + x.shape[1:], x.dtype) for x in models]
    given = job.options.out
    if given is None:
        _check_memory(job.form, made)
        return [np.empty(shape, dtype) for shape, dtype in made]
    fits = isinstance(given, tuple) and len(given) == len(made)
    fits = fits and all(
        isinstance(x, np.ndarray) and x.shape == shape and x.dtype == dtype and x.flags.carray
        for x, (shape, dtype) in zip(given, made, strict=True)
    )
    arrays = (*given, *map(np.asarray, job.inputs))
    apart = not any(
        np.may_share_memory(x, y) for x, y in itertools.combinations(arrays, 2) if x is not y
    )
    return list(given) if fits and apart else None


def _check_memory(form, made):
    """Refuses results that have no room."""
    wanted = sum(math.prod(shape) * dtype.itemsize for shape, dtype in made)
    if wanted < _MUCH:
        return
    free = _core.config()["memory_free"]
    if 0 < free < wanted:
        shapes = ", ".join(f"{shape}" for shape, _ in made)
        raise MemoryError(
            f"the results, {' and '.join(form.results)} of shape {shapes}, want {wanted} bytes; "
            f"{free} bytes are free"
        )


def _share_of_outputs(split, i, into):
    begin, end = split.bounds[i : i + 2]
    if not split.of_values:
        return tuple(x[begin:end] for x in into)
    if len(into) == 1:
        return (into[0][0, begin:end],)
    left, values, right = (x[0] for x in into)
    return left[:, begin:end], values[begin:end], right[begin:end]


# ---- what is told of a call ----


def _merged(infos, split):
    """An SVDInfo of those of all shares, dicts or SVDInfos."""
    infos = [info if isinstance(info, dict) else info._asdict() for info in infos]
    first = infos[0]
    fields = {
        "method": min((x["method"] for x in infos), key=_core.METHODS.__getitem__),
        "seconds": {key: max(x["seconds"][key] for x in infos) for key in first["seconds"]},
    }
    add = max if split.of_values else sum  # each part merges and refuses as the whole does
    for key in ("sweeps", "iterations", "iterations_saved", "rotations", "deflated", "refused"):
        fields[key] = add(x[key] for x in infos)
    return SVDInfo(device=",".join(f"cuda:{x}" for x in split.devices), **fields)
