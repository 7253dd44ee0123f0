"""Calls on several CUDA devices whose arrays lie on a device: results stay where they are made."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys

import numpy as np

from . import _arrays, _call
from ._several import model_of, share_of


def shared(job, split, team):
    """The results, and what each share returned. A result is a list of an array for each device.

    Those of JAX are one array that is sharded over the devices, where all shares are of one size.
    Of a single matrix each device gets all values.
    """
    library = _library_of(job.inputs)
    devices, place = split.devices, job.place
    with library.on(place.device):
        flat = [library.flat(x, split.batch, tuple(x.shape[-split.ends :])) for x in job.inputs]
    library.synchronize(place.device)
    form = job.form if job.options.compute_uv else job.form._replace(results=job.form.results[1:2])
    empty = tuple(np.empty((0, *x.shape[1:]), _numpy_dtype(x)) for x in flat)
    made = model_of(job, empty, devices[0])

    def work(i):
        inputs, options = share_of(split, i, flat, job, team)
        device = devices[i]
        with library.on(device):
            inputs = tuple(library.moved(x, device) for x in inputs)
            outs = library.outputs(_shapes(split, i, made), device)
            inputs, options, place = _call.arranged(form, inputs, options, None, None, outs)
            result, _ = _call.computed(job.compute, inputs, options, place, None, None)
            outcome = _outcome(job, place, result)
            library.synchronize(device)
        return outcome

    outcomes = team.run(work)
    columns = list(zip(*(arrays for arrays, *_ in outcomes), strict=True))
    if split.of_values:
        at = len(columns) // 2  # of the values
        columns[at] = [library.joined(columns[at], device) for device in devices]
        columns = [[x.reshape(split.batch + tuple(x.shape)) for x in arrays] for arrays in columns]
    results = tuple(library.together(split, columns, at, devices) for at in range(len(columns)))
    return results, outcomes


def _outcome(job, place, result):
    """(the arrays, what else a share returns)."""
    rest = ()
    if job.form is _arrays.INVERSE or job.options.full_output:
        result, *rest = result
    if not isinstance(result, tuple):
        result = (result,)
    return (_arrays.results(place, result), *rest)


def _shapes(split, i, made):
    """Shapes and dtypes of the results of a share. made: results of no matrix."""
    size = split.bounds[i + 1] - split.bounds[i]
    if not split.of_values:
        return [((size, *x.shape[1:]), x.dtype) for x in made]
    if len(made) == 1:
        return [((size,), made[0].dtype)]
    left, values, right = made
    return [
        ((left.shape[1], size), left.dtype),
        ((size,), values.dtype),
        ((size, right.shape[2]), right.dtype),
    ]


def _numpy_dtype(x):
    return np.dtype(str(x.dtype).rpartition(".")[2])


# ---- the libraries ----


def _library_of(inputs):
    for x in inputs:
        known = _LIBRARIES.get(_arrays.library_of(x))
        if known is not None:
            return known(sys.modules[_arrays.library_of(x)])
    raise ValueError(
        "device names several devices, and the arrays lie on one: this takes arrays of PyTorch, "
        "CuPy and JAX, and of the host"
    )


class _Library:
    """What differs between the libraries. space: the module."""

    def __init__(self, space):
        self.space = self.arrays = space

    def flat(self, x, batch, own):
        """x with one leading dimension. batch: all of them. own: the shape of one matrix."""
        return self.arrays.broadcast_to(x, batch + own).reshape(math.prod(batch), *own)

    def outputs(self, shapes, device):
        """New arrays for results, from the library's own memory: it keeps that for later calls."""
        return tuple(self.empty(shape, dtype, device) for shape, dtype in shapes)

    def together(self, split, columns, at, devices):
        """A result for the caller of those of all devices."""
        return list(columns[at])


class _Torch(_Library):
    def on(self, device):
        return self.space.cuda.device(device)

    def synchronize(self, device):
        self.space.cuda.synchronize(device)

    def moved(self, x, device):
        return x.to(f"cuda:{device}")

    def empty(self, shape, dtype, device):
        return self.space.empty(
            shape, dtype=getattr(self.space, dtype.name), device=f"cuda:{device}"
        )

    def joined(self, parts, device):
        return self.space.cat([self.moved(x, device) for x in parts])


class _CuPy(_Library):
    def on(self, device):
        return self.space.cuda.Device(device)

    def synchronize(self, device):
        self.space.cuda.Device(device).synchronize()

    def moved(self, x, device):
        with self.on(device):
            return x if x.device.id == device else x.copy()

    def empty(self, shape, dtype, device):
        return self.space.empty(shape, dtype)

    def joined(self, parts, device):
        with self.on(device):
            return self.space.concatenate([self.moved(x, device) for x in parts])


class _JAX(_Library):
    def __init__(self, space):
        super().__init__(space)
        self.arrays = space.numpy

    def on(self, device):
        return contextlib.nullcontext()

    def synchronize(self, device):
        """Work of JAX on an array is waited for where it is read."""

    def moved(self, x, device):
        return self.space.device_put(x, self._device(device))

    def outputs(self, shapes, device):
        return None  # its arrays are read-only

    def joined(self, parts, device):
        return self.arrays.concatenate([self.moved(x, device) for x in parts])

    def together(self, split, columns, at, devices):
        sizes = {end - begin for begin, end in itertools.pairwise(split.bounds)}
        if len(sizes) > 1 or (len(split.batch) > 1 and not split.of_values):
            return list(columns[at])
        sharding = self.space.sharding
        mesh = sharding.Mesh(np.array([self._device(x) for x in devices]), ("devices",))
        spec, axis = (), None
        if not split.of_values or at != len(columns) // 2:
            axis = len(split.batch) + (1 if at == 0 else 0) if split.of_values else 0
            spec = (None,) * axis + ("devices",)
        shape = list(columns[at][0].shape)
        if axis is not None:
            shape[axis] *= len(devices)
        return self.space.make_array_from_single_device_arrays(
            tuple(shape),
            sharding.NamedSharding(mesh, sharding.PartitionSpec(*spec)),
            list(columns[at]),
        )

    def _device(self, number):
        devices = self.space.local_devices(backend="gpu")
        return next(x for x in devices if x.local_hardware_id == number)


_LIBRARIES = {"torch": _Torch, "cupy": _CuPy, "jax": _JAX}
