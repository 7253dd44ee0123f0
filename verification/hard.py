"""Matrices on which LAPACK's divide and conquer fails: its results, and the search for them.

    python -m verification hard            LAPACK and tsvd on the recorded matrices
    python -m verification hard search     draws matrices of families.BREAKING, and records the
                                           worst of each in testing/data/hard.npz and hard.json

dbdsdc and sbdsdc are SciPy's. "dense" is the SVD of the dense matrix. In float64 NumPy computes it,
with another build of LAPACK; in float32 SciPy, as NumPy would use float64. LAPACK prints "On entry
to ..." if it meets a NaN that it made itself.
"""

import json

import numpy as np
import scipy.linalg

import tsvd
from testing import families, lapack, measures, results

ORDERS = (26, 33, 52, 64, 103, 118, 150, 205, 257, 300, 411, 533)
SHARES = np.array([3, 3, 3, 3, 3, 3, 3, 1, 1, 1, 0.5, 0.5])
BROKEN = 100  # in the units of testing/measures.py; the bounds of tsvd are 2 and 3


def record(d, e, info, u, s, vt):
    """Facts about a decomposition: info, and its errors if info is 0."""
    if info != 0:
        return {"info": info}
    if not all(np.isfinite(x).all() for x in (u, s, vt)):
        return {"info": 0, "finite": False}
    return {
        "info": 0,
        "residual": float(f"{measures.residual(d, e, u, s, vt):.3g}"),
        "orthogonality": float(f"{measures.orthogonality(u, vt):.3g}"),
    }


def breach(found):
    """What is wrong with a record: "no convergence", "NaN", "inaccurate", or None."""
    if found["info"] != 0:
        return "no convergence"
    if not found.get("finite", True):
        return "NaN"
    return "inaccurate" if max(found["residual"], found["orthogonality"]) > BROKEN else None


def by_lapack(d, e):
    return record(d, e, *lapack.bdsdc(d, e))


def by_dense(d, e):
    svd = np.linalg.svd if d.dtype == np.float64 else scipy.linalg.svd
    try:
        return record(d, e, 0, *svd(np.diag(d) + np.diag(e, 1)))
    except np.linalg.LinAlgError:
        return {"info": 1}


def by_tsvd(method):
    return lambda d, e: record(d, e, 0, *tsvd.svd(d, e, method=method, device="cpu"))


def worst_of(family, dtype, draws):
    """For each kind of failure the worst draw: by its measures, or the one of least order."""
    worst = {}
    for seed in range(draws):
        n = int(np.random.default_rng(seed).choice(ORDERS, p=SHARES / SHARES.sum()))
        d, e = families.make(family, n, dtype, seed)
        found = by_lapack(d, e)
        way = breach(found)
        rank = max(found["residual"], found["orthogonality"]) if way == "inaccurate" else -n
        if way and (way not in worst or rank > worst[way][0]):
            facts = {"family": family, "n": n, "dtype": dtype, "seed": seed, "lapack": found}
            worst[way] = rank, facts, d, e
    return [worst[way][1:] for way in sorted(worst)]


def search(draws):
    matrices, arrays = {}, {}
    for family in families.BREAKING:
        for dtype in ("float64", "float32"):
            for facts, d, e in worst_of(family, dtype, draws):
                name = f"{family}_{facts['n']}_{dtype}_{facts['seed']}"
                matrices[name] = facts | {"dense": by_dense(d, e)}
                arrays |= {f"{name}/d": d, f"{name}/e": e}
                print(name, text(facts["lapack"]), sep=": ", flush=True)
    np.savez_compressed(families.HARD_FILE, **arrays)
    path = families.HARD_FILE.with_suffix(".json")
    surroundings = {"machine": results.machine(), "versions": results.versions()}
    path.write_text(json.dumps(surroundings | {"matrices": matrices}, indent=1) + "\n")


def text(found):
    way = breach(found)
    if way in ("no convergence", "NaN"):
        return way
    return f"{found['residual']:.2g}, {found['orthogonality']:.2g}"


def show():
    """Prints a line for each recorded matrix: residual and orthogonality, or the failure."""
    solvers = {
        "bdsdc": by_lapack,
        "dense": by_dense,
        "tsvd qr": by_tsvd("qr"),
        "tsvd dc": by_tsvd("dc"),
    }
    print(f"{'':44}", *(f"{name:>18}" for name in solvers))
    for name, (d, e) in families.hard().items():
        print(f"{name:44}", *(f"{text(solve(d, e)):>18}" for solve in solvers.values()))
