"""The cases whose results are compared bit for bit.

A case's name says all that it is made of, GROUP/..., so that it can be made again alone.
Matrices come from seeds, so that two installations with the same NumPy see the same ones.
"""

import functools
import inspect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import tsvd
from testing import families

GROUPS: dict[str, Callable] = {}

ALL = sorted(families.FAMILIES)
CLASSES = ("uniform_1", "chi", "toeplitz")
DTYPES = ("float64", "float32")

# Around the orders of a thread's, a warp's and a block's matrix, of a leaf and of levels of merges.
SMALL = (0, 1, 2, 3, 8, 9, 16, 17, 31, 32, 33, 34, *range(47, 66))
ORDERS = (*SMALL, 100, 127, 128, 129, 130, 256, 257, 500)
FEW_ORDERS = (2, 3, 17, 33, 65, 130)


class Case(NamedTuple):
    name: str
    d: np.ndarray
    e: np.ndarray
    options: dict  # of tsvd.svd, without the device


VALUES = {"compute_uv": False}


def groups(device, wanted=None):
    """Yields each group's name and its cases; wanted: how the names of the cases begin."""
    for name, make in GROUPS.items():
        if wanted is None:
            yield name, make(device)
        elif wanted.split("/")[0] == name:
            yield name, (c for c in make(device) if f"{c.name}/".startswith(f"{wanted}/"))


def _group(make):
    GROUPS[make.__name__.strip("_")] = make
    return make


@functools.cache
def _matrix(family, n, dtype):
    """Read-only, as it is shared by the cases."""
    d, e = families.make(family, n, np.dtype(dtype))
    for array in (d, e):
        array.setflags(write=False)
    return d, e


def _largest(d, e):
    return float(max(np.max(abs(d), initial=0), np.max(abs(e), initial=0)))


def _singles(group, orders, names, variants, dtypes=DTYPES):
    """variants: (d, e) -> {what: options}."""
    for n in orders:
        for family in names:
            for dtype in dtypes:
                d, e = _matrix(family, n, dtype)
                for what, options in variants(d, e).items():
                    yield Case(f"{group}/{n}/{family}/{dtype}/{what}", d, e, options)


def _some(device, step):
    """Every family on the CPU; where calls take longer every step-th of them."""
    return ALL if device == "cpu" else ALL[::step]


def _value_methods(device):
    """What finds values without vectors there, but "givens"."""
    return ("auto", "qr", "bisect") if device == "cpu" else ("auto", "bisect")


# ---- one matrix ----


@_group
def _dc(device):
    return _singles("dc", ORDERS, ALL, lambda d, e: {"all": {"method": "dc"}})


@_group
def _auto(device):
    return _singles("auto", ORDERS, _some(device, 3), lambda d, e: {"all": {}})


@_group
def _qr(device):
    return _singles("qr", ORDERS, _some(device, 3), lambda d, e: {"all": {"method": "qr"}})


@_group
def _values(device):
    variants = {method: VALUES | {"method": method} for method in _value_methods(device)}
    return _singles("values", ORDERS, ALL, lambda d, e: variants)


@_group
def _givens(device):
    """With a loose eps and a bound on sweeps: it converges slowly, on some families hardly."""

    def variants(d, e):
        shared = {"method": "givens", "eps": 2.0**-10 * _largest(d, e), "max_sweeps": 3000}
        cut = shared | {"tuning": {"blocks": 3, "block_threads": 5}}
        whole = shared | {"tuning": {"split": 0}}
        return {"all": shared, "values": shared | VALUES, "blocks": cut, "whole": whole}

    yield from _singles("givens", (0, 1, 2, 3, 8, 17, 32, 33), _some(device, 2), variants)
    yield from _singles("givens", (64, 65, 100, 130), ALL[::4], variants)


@_group
def _lower(device):
    def variants(d, e):
        lower = {"lower": True}
        made = {method: lower | {"method": method} for method in ("dc", "qr")}
        return made | {"values": lower | VALUES, "part": lower | _part(0, len(d) // 2)}

    return _singles("lower", FEW_ORDERS, _some(device, 2), variants)


@_group
def _eps(device):
    def variants(d, e):
        made = {}
        for share in (2.0**-6, 2.0**-20):
            eps = {"eps": share * _largest(d, e)}
            for method in ("dc", "qr"):
                made[f"{method}, {share:.0e}"] = eps | {"method": method}
            for method in _value_methods(device):
                made[f"values by {method}, {share:.0e}"] = eps | VALUES | {"method": method}
        return made

    return _singles("eps", (17, 33, 65, 130), _some(device, 3), variants)


def _part(first, last):
    return {"select": "i", "select_range": (first, last)}


@_group
def _select(device):
    """Parts by index, at both ends and between, and by interval."""

    def variants(d, e):
        n, top = len(d), _largest(d, e)
        indices = {(0, 0), (n - 1, n - 1), (0, n // 2), (n // 3, min(n // 3 + 2, n - 1))}
        chosen = {f"{i} to {j}": _part(i, j) for i, j in sorted(indices)}
        intervals = {"middle": (0.25 * top, 0.75 * top), "top": (0.5 * top, np.inf)}
        for what, bounds in intervals.items():
            chosen[what] = {"select": "v", "select_range": bounds}
        values = {f"values {what}": options | VALUES for what, options in chosen.items()}
        return chosen | values

    return _singles("select", (1, 2, 3, 17, 33, 64, 65, 130, 257), _some(device, 4), variants)


def _by(threads):
    """The option for a number of threads, also of installations in which it was a knob."""
    if "threads" in inspect.signature(tsvd.svd).parameters:
        return {"threads": threads}
    return {"tuning": {"threads": threads}}


@_group
def _threads(device):
    def variants(d, e):
        made = {}
        for threads in (1, 2, 3):
            by = _by(threads)
            for method in ("dc", "qr"):
                made[f"{method}, {threads}"] = by | {"method": method}
            made[f"values, {threads}"] = by | VALUES
            made[f"part, {threads}"] = by | _part(0, len(d) // 3)
        return made

    names = dict.fromkeys((*CLASSES, *ALL[::8]))
    return _singles("threads", (33, 65, 130, 257, 500), names, variants)


@_group
def _real(device):
    for dtype in DTYPES:
        for name, (d, e) in families.real(np.dtype(dtype)).items():
            yield from _each_method("real", f"{name}/{dtype}", d, e)


@_group
def _hard(device):
    for name, (d, e) in families.hard().items():
        yield from _each_method("hard", name, d, e)


def _each_method(group, name, d, e):
    for method in ("dc", "qr"):
        yield Case(f"{group}/{name}/{method}", d, e, {"method": method})
    yield Case(f"{group}/{name}/values", d, e, VALUES)


@_group
def _large(device):
    """A few, as a case takes long."""
    whole, values = {"all": {"method": "dc"}}, {"values": VALUES}
    part = {"part": _part(0, 99)}
    orders = {"cpu": (1000, 1025), "cuda": (511, 513, 1000, 1023, 1024, 1025, 2049)}[device]
    names = (*CLASSES, "graded_both", "many_equal", "zeros_many", "blocks_nearly_singular")
    yield from _singles("large", orders, names, lambda d, e: whole | values | part)
    yield from _singles("large", (1000,), CLASSES[:1], lambda d, e: {"qr": {"method": "qr"}})
    long = {"cpu": (4000, 1500), "cuda": (10_000, 4096)}[device]
    yield from _singles("large", long[:1], CLASSES, lambda d, e: values)
    yield from _singles("large", long[1:], CLASSES, lambda d, e: whole, DTYPES[:1])
    few = {"few": VALUES | _part(0, 9)}
    yield from _singles("large", (100_000,), CLASSES, lambda d, e: few)
    if device != "cpu":
        yield from _singles("large", (100_000,), CLASSES[:1], lambda d, e: values)


# ---- many matrices in a call ----


def _stack(n, count, dtype):
    """Families in turns, beginning elsewhere at each order."""
    names = [ALL[(n + i) % len(ALL)] for i in range(count)]
    return families.stack(
        families.make(name, n, np.dtype(dtype), i) for i, name in enumerate(names)
    )


def _batch_variants(device):
    made = {method: {"method": method} for method in ("auto", "qr")}
    return made | {f"values by {m}": VALUES | {"method": m} for m in _value_methods(device)}


@_group
def _batch(device):
    """Numbers of matrices around the lanes of a vector register, a warp and a chunk."""
    for n in (*range(1, 41), 64, 100, 300):
        for dtype in DTYPES:
            largest = 33 if n < 300 else 9
            d, e = _stack(n, largest, dtype)
            for count in (1, 2, 7, 8, 9, 17, 33):
                if count > largest:
                    continue
                for what, options in _batch_variants(device).items():
                    if device != "cpu" and "qr" in what and (n % 8 or count != 9):
                        continue
                    yield Case(f"batch/{n}/{count}/{dtype}/{what}", d[:count], e[:count], options)


@_group
def _stack_of_all(device):
    """Every family, zero matrices, and some that hold NaN or infinity, side by side."""
    for n in (*range(1, 66), 100, 128, 257):
        for dtype in DTYPES:
            d, e = _stack(n, len(ALL) + 9, dtype)
            d[7], e[7] = 0, 0
            d[3, n // 2] = d[-1, 0] = np.nan
            d[20, -1] = np.inf
            e[11, n // 3 : n // 3 + 1] = -np.inf
            shared = {"check_finite": False}
            chosen = {"auto": {}, "values": VALUES, "lower": {"lower": True}}
            chosen["part"] = _part(0, n // 2)
            chosen["values of a part"] = VALUES | _part(n // 3, n - 1)
            chosen["eps"] = {"eps": 1e-3}
            if device == "cpu" or n % 16 == 0:
                chosen["qr"] = {"method": "qr"}
            for what, options in chosen.items():
                yield Case(f"stack_of_all/{n}/{dtype}/{what}", d, e, shared | options)


@_group
def _many(device):
    """More matrices than a chunk or a launch takes."""
    counts = {
        "cpu": (2000, 1000, 500, 300, 100, 40, 16),
        "cuda": (20_000, 20_000, 10_000, 5000, 2000, 500, 200),
    }
    for n, count in zip((8, 16, 32, 33, 64, 128, 256), counts[device], strict=True):
        for dtype in DTYPES:
            rng = np.random.default_rng([n, count])
            d, e = (rng.random((count, size)).astype(dtype) for size in (n, n - 1))
            for what, options in {"auto": {}, "values": VALUES}.items():
                for threads in (None, 1, 2) if device == "cpu" else (None,):
                    by = {} if threads is None else _by(threads)
                    name = f"many/{n}/{count}/{dtype}/{what}, {threads or 'all'} threads"
                    yield Case(name, d, e, options | by)


# ---- arrays, and what is refused ----


@_group
def _layout(device):
    """Strides, broadcasting, dtypes, outputs that are given, progress."""
    for n in (3, 8, 17, 33, 70, 130):
        made = {}
        d, e = _stack(n, 24, "float64")
        made["every second"] = np.repeat(d, 2, axis=-1)[:, ::2], np.repeat(e, 2, axis=-1)[:, ::2]
        made["backwards"] = d[::-1, ::-1], e[::-1, ::-1]
        made["columns"] = np.asfortranarray(d), np.asfortranarray(e)
        made["three axes"] = d.reshape(2, 3, 4, n), e.reshape(2, 3, 4, n - 1)
        made["axes in turns"] = d.reshape(6, 4, n).swapaxes(0, 1), e.reshape(4, 6, n - 1)
        made["one e"] = d, e[0]
        made["one d"] = d[5], e
        made["a grid"] = d[:4, None], e[None, :3]
        made["no matrix"] = d[:0], e[:0]
        made["mixed dtypes"] = _stack(n, 1, "float32")[0], e[0]
        made["integers"] = np.arange(n) % 7 - 3, np.arange(n - 1) % 5 - 2
        made["bools"] = np.arange(n) % 3 > 0, np.arange(n - 1) % 4 > 0
        made["lists"] = d[1].tolist(), e[1].tolist()
        for what, (own_d, own_e) in made.items():
            for kind, options in {"all": {}, "values": VALUES}.items():
                yield Case(f"layout/{n}/{what}/{kind}", own_d, own_e, options)
            yield Case(f"layout/{n}/{what}/lower", own_d, own_e, {"lower": True})
        for dtype in DTYPES:
            own_d, own_e = _stack(n, 24, dtype)
            out = np.ones((24, n, n), dtype), np.ones((24, n), dtype), np.ones((24, n, n), dtype)
            yield Case(f"layout/{n}/out/{dtype}", own_d, own_e, {"out": out})
            one = tuple(x[0] for x in out)
            for method in ("dc", "qr"):
                name = f"layout/{n}/out of one/{dtype}/{method}"
                yield Case(name, own_d[2], own_e[2], {"out": one, "method": method})
                name = f"layout/{n}/progress/{dtype}/{method}"
                yield Case(name, own_d, own_e, {"progress": _ignore, "method": method})


def _ignore(done):
    pass


@_group
def _refused(device):
    """Arguments that are errors, and matrices that do not converge."""
    d, e = np.ones(9), np.ones(8)
    nan = np.array([1.0, np.nan, 2.0])
    pairs = {
        "NaN": (nan, nan[::2]),
        "infinity": (np.array([1.0, np.inf]), np.ones(1)),
        "long e": (d, d),
        "other batches": (np.ones((2, 3)), np.ones((3, 2))),
        "complex": (d * 1j, e),
        "float16": (d.astype("float16"), e),
    }
    for what, pair in pairs.items():
        yield Case(f"refused/{what}", *pair, {})
        yield Case(f"refused/{what}, values", *pair, VALUES)
    options = {
        "unknown method": {"method": "jacobi"},
        "bisect with vectors": {"method": "bisect"},
        "part by qr": _part(0, 2) | {"method": "qr"},
        "part past the end": _part(0, 9),
        "empty interval": {"select": "v", "select_range": (1.0, 1.0)},
        "interval without values": {"select": "v", "select_range": (50.0, 60.0)},
        "values of none": VALUES | {"select": "v", "select_range": (50.0, 60.0)},
        "eps below 0": {"eps": -1.0},
        "unknown knob": {"tuning": {"speed": 1}},
        "no threads": _by(0),
        "values by qr": VALUES | {"method": "qr"},
        "one sweep of qr": {"method": "qr", "max_sweeps": 1},
        "one sweep of givens": {"method": "givens", "max_sweeps": 1},
        "one sweep of dc": {"method": "dc", "max_sweeps": 1},
    }
    for what, own in options.items():
        yield Case(f"refused/{what}", d, e, own)
    yield Case("refused/interval of a batch", *_stack(9, 2, "float64"), _interval_of_all())
    yield Case(
        "refused/one sweep in a batch", *_stack(9, 20, "float64"), options["one sweep of qr"]
    )
    yield Case("refused/NaN in a batch", np.where(np.eye(40, 5), np.nan, 1.0), np.ones(4), {})


def _interval_of_all():
    return {"select": "v", "select_range": (0.0, np.inf)}
