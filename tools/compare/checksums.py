"""Checksums of results: whether two installations of tsvd compute the same, bit for bit.

    python -m tools.compare checksums -o NEW.json
    PYTHON_OF_THE_OTHER -m tools.compare checksums -o OLD.json
    python -m tools.compare checksums --compare OLD.json NEW.json

Measured is the tsvd that the interpreter imports.  An older one will do, as only tsvd.svd is
called.  Where it was not made from the sources beside, TSVD_CSRC_TREE and TSVD_CUDA_TREE name
those that it was made from.

Bits depend on the instruction set, on NumPy and on SciPy's BLAS: compare files of one machine.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import tsvd
from testing import results
from tools.compare.checksum_cases import groups

DIGITS = 16  # of a SHA-256 in hexadecimal
# Of SVDInfo.  The method is none of them: where matrices of a batch take different ones, which is
# named depends on the threads.
COUNTS = ("sweeps", "iterations", "iterations_saved", "rotations", "deflated")
SHOWN = 10  # cases of a group and kind that compare() names, unless some are asked for


def run(path, threads, device, wanted):
    """Writes `path`; wanted: how the names of the cases begin, None: all."""
    start, load = time.monotonic(), os.getloadavg()[0]
    tsvd.svd([1.0, 2.0], [1.0], device=device)  # loads the kernels; a device must be usable
    cases, inputs, seconds = {}, {}, {}
    for group, made in groups(device, wanted):
        began = time.monotonic()
        cases[group], inputs[group] = checksums(made, device)
        seconds[group] = time.monotonic() - began
        failed = sum(" " not in one for one in cases[group].values())
        print(
            f"{group:<14}{len(cases[group]):>8,} cases, {failed:>5,} of them errors"
            f"{seconds[group]:>8.1f} s",
            flush=True,
        )
    total = sum(map(len, cases.values()))
    print(f"{total:,} cases in {time.monotonic() - start:.0f} s")
    results.write(
        path,
        threads,
        load,
        device=device,
        wanted=wanted,
        surroundings=surroundings(),
        seconds=seconds,
        inputs=inputs,
        cases=cases,
    )
    return 0 if total else 1


def checksums(cases, device):
    """name -> checksum of the results; one checksum of all input."""
    found, inputs = {}, hashlib.sha256()
    for case in cases:
        if case.name in found:
            raise ValueError(f"two cases are called {case.name}")
        _add(inputs, case.d, case.e)
        found[case.name] = _checksum(case, device)
    return found, inputs.hexdigest()[:DIGITS]


def _checksum(case, device):
    """Of the bits of (L, s, R), then the counts; of an error its type alone."""
    try:
        result, info = tsvd.svd(case.d, case.e, device=device, full_output=True, **case.options)
    except Exception as error:  # whatever it is, it is part of what is compared
        return type(error).__name__
    digest = hashlib.sha256()
    _add(digest, *(result if isinstance(result, tuple) else (result,)))
    counts = " ".join(str(getattr(info, count)) for count in COUNTS)
    return f"{digest.hexdigest()[:DIGITS]} {counts}"


def _add(digest, *arrays):
    for array in map(np.ascontiguousarray, arrays):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array)


def surroundings():
    """What bits may depend on, and which build of tsvd this is."""
    core = Path(sys.modules["tsvd._core"].__file__)
    variables = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_CORETYPE", "CUDA_VISIBLE_DEVICES")
    return {
        "build": hashlib.sha256(core.read_bytes()).hexdigest()[:DIGITS],
        "processor": _processor(),
        "environment": {name: os.environ.get(name) for name in variables},
    }


def _processor():
    """Of the first one the model and the vector instructions, where Linux says."""
    first = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    facts = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in first)}
    flags = facts.get("flags", "").split()
    known = {key: facts.get(key) for key in ("cpu family", "model", "stepping")}
    return known | {"flags": [x for x in flags if x.startswith(("avx", "fma", "amx"))]}


# ---- two files ----

BUILD = "surroundings, build"
KINDS = ("bits", "counts", "only old", "only new")


def compare(old_path, new_path, wanted):
    """Prints where two files differ; the exit status is 0 if cases, bits and counts are the same.

    wanted: how the names of the cases begin that are compared, None: all.  Counts of single
    matrices depend on the number of threads.
    """
    old, new = (json.loads(path.read_text()) for path in (old_path, new_path))
    for what in _other_facts(old, new):
        print(what)
    differ, total = {}, 0
    for group in dict.fromkeys((*old["cases"], *new["cases"])):
        before, after = (_wanted(file["cases"].get(group, {}), wanted) for file in (old, new))
        total += len(before.keys() | after.keys())
        found = _differences(before, after)
        if any(found.values()):
            differ[group] = found
    if not total:
        print("no cases to compare")
    elif not differ:
        print(f"{total:,} cases, all the same bits")
    else:
        _show(differ, None if wanted else SHOWN)
        sums = {kind: sum(len(found[kind]) for found in differ.values()) for kind in KINDS}
        print(f"{total:,} cases: {', '.join(f'{kind} {count:,}' for kind, count in sums.items())}")
    return 1 if differ or not total else 0


def _show(differ, most):
    """differ: group -> kind -> names, of which at most so many are printed."""
    print(f"\n{'group':<14}" + "".join(f"{kind:>10}" for kind in KINDS))
    for group, found in differ.items():
        print(f"{group:<14}" + "".join(f"{len(found[kind]):>10,}" for kind in KINDS))
        for kind, names in found.items():
            for name in names[:most]:
                print(f"    {kind:<10}{name}")
            if most and len(names) > most:
                print(f"    {kind:<10}and {len(names) - most:,} more (--group {group})")


def _wanted(cases, wanted):
    return {n: c for n, c in cases.items() if not wanted or f"{n}/".startswith(f"{wanted}/")}


def _differences(old, new):
    """kind -> names; "counts": of SVDInfo, where the bits are the same."""
    both = [name for name in old if name in new and old[name] != new[name]]
    bits = [name for name in both if old[name].split()[0] != new[name].split()[0]]
    return {
        "bits": bits,
        "counts": [name for name in both if name not in set(bits)],
        "only old": [name for name in old if name not in new],
        "only new": [name for name in new if name not in old],
    }


def _other_facts(old, new):
    """What the bits may depend on and differs, as lines; whether the builds differ."""
    for section in ("device", "threads", "machine", "versions", "surroundings"):
        before, after = (_flat(section, file[section]) for file in (old, new))
        for key in sorted(before.keys() | after.keys()):
            if key != BUILD and before.get(key) != after.get(key):
                yield f"{key}: {before.get(key)} in the old file, {after.get(key)} in the new"
    same = old["wanted"] == new["wanted"]  # otherwise other cases are no wonder
    for group in old["inputs"].keys() & new["inputs"].keys() if same else ():
        if old["inputs"][group] != new["inputs"][group]:
            yield f"{group}: the matrices are others"
    if old["surroundings"]["build"] == new["surroundings"]["build"]:
        yield "both files are of the same build"


def _flat(name, value):
    if not isinstance(value, dict):
        return {name: value}
    return {k: v for key, own in value.items() for k, v in _flat(f"{name}, {key}", own).items()}
