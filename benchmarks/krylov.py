"""The largest triplets by tsvd.linalg.svds, beside ARPACK and PROPACK as SciPy calls them.

All are asked for the precision of the dtype. Times are seconds of the processor, all threads
together, as other work on the machine matters less for them. The texts and the graph are those of
Debian's packages, as far as `apt-cache dumpavail` knows them; elsewhere they are left out.
"""

import collections
import functools
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import ArpackError, svds

from benchmarks import bars
from benchmarks.group import Group, Part
from tsvd import linalg

SEEDS = 30
SHORT = 1e-9  # a value that is so much of s_1 too small was missed
RAREST = 3  # packages that a word is in, at least
COMPONENTS = 30
ACCURATE = 50  # target: residuals in units of eps s_1


@dataclass(frozen=True)
class Case:
    what: str
    make: Callable
    k: int


# ---- matrices ----


def gaussian():
    return np.random.default_rng(0).standard_normal((2000, 1000))


def laplacian():
    """Of a square of 80 x 80 points: nearly all values are double."""
    n = 80
    line = sparse.diags_array(
        [np.full(n, 2.0), np.full(n - 1, -1.0), np.full(n - 1, -1.0)], offsets=[0, 1, -1]
    )
    return sparse.kronsum(line, line, format="csr")


def copies():
    G = np.random.default_rng(0).standard_normal((240, 120))
    return sparse.kron(sparse.eye_array(5), G, format="csr")


def components():
    """The normalised adjacency of a graph of some thousand nodes: 1 is a value once for each of its
    components."""
    rng = np.random.default_rng(0)
    blocks = []
    for _ in range(COMPONENTS):
        n = int(rng.integers(20, 300))
        ends = rng.integers(0, n, (2, 4 * n))
        path = np.array([np.arange(n - 1), np.arange(1, n)])
        i, j = np.hstack([ends, path, [[0], [2]]])  # 0, 1, 2 is an odd circle: -1 is no eigenvalue
        blocks.append(normalised(sparse.coo_array((np.ones(len(i)), (i, j)), shape=(n, n))))
    return sparse.block_diag(blocks, format="csr")


def normalised(W):
    """D^-1/2 W D^-1/2 of a graph, whose edges have no directions, and D its degrees."""
    W = ((W + W.T) > 0).astype(float)
    degrees = W.sum(axis=1)
    scale = sparse.diags_array(1 / np.sqrt(np.maximum(degrees, 1)))
    return (scale @ W @ scale).tocsr()


@functools.cache
def packages():
    """Name -> what Debian's index says of a package; empty where there is no index."""
    if not shutil.which("apt-cache"):
        return {}
    said = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True).stdout
    found = {}
    for record in said.split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*(?:\n .*)*)", record, re.MULTILINE))
        if "Package" in fields:
            found.setdefault(fields["Package"], fields)
    return dict(sorted(found.items()))


def descriptions():
    """Packages by words of their descriptions, weighted by tf-idf; rows have length 1."""
    texts = [
        re.findall("[a-z]{2,}", fields.get("Description", fields.get("Description-en", "")).lower())
        for fields in packages().values()
    ]
    within = collections.Counter(word for text in texts for word in set(text))
    kept = sorted(word for word, count in within.items() if count >= RAREST)
    column = {word: j for j, word in enumerate(kept)}
    entries = [
        (i, column[word], count * np.log(len(texts) / within[word]))
        for i, text in enumerate(texts)
        for word, count in collections.Counter(text).items()
        if word in column
    ]
    i, j, weights = map(np.array, zip(*entries, strict=True))
    A = sparse.csr_array((weights, (i, j)), shape=(len(texts), len(column)))
    lengths = np.sqrt((A * A).sum(axis=1))
    return (sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ A).tocsr()


@functools.cache
def dependencies():
    """1 where a package depends on another one."""
    number = {name: i for i, name in enumerate(packages())}
    edges = set()
    for name, fields in packages().items():
        needed = f"{fields.get('Depends', '')},{fields.get('Pre-Depends', '')}"
        for other in re.findall(r"(?:^|[,|])\s*([a-z0-9.+-]+)", needed):
            if other in number:
                edges.add((number[name], number[other]))
    i, j = np.array(sorted(edges)).T
    return sparse.csr_array((np.ones(len(i)), (i, j)), shape=(len(number),) * 2)


CASES = (
    Case("Gaussian", gaussian, 50),
    Case("Laplacian of a square", laplacian, 10),
    Case("words of descriptions, tf-idf", descriptions, 50),
    Case("dependencies of packages", dependencies, 50),
    Case("dependencies, normalised", lambda: normalised(dependencies()), 10),
)
NEEDS_DEBIAN = {case.what for case in CASES[2:]}


# ---- contenders ----


def ours(A, k, seed, **options):
    return linalg.svds(A, k, rng=seed, **options)


def peer(solver, A, k, seed):
    options = {"maxiter": 3000} if solver == "propack" else {}
    U, s, Vh = svds(A, k, solver=solver, rng=seed, **options)
    order = np.argsort(-s)
    return U[:, order], s[order], Vh[order]


TSVD, UNCHECKED, ARPACK = "tsvd", "tsvd, no check", "ARPACK"
CONTENDERS = {
    TSVD: ours,
    UNCHECKED: functools.partial(ours, check="none"),
    ARPACK: functools.partial(peer, "arpack"),
    "PROPACK": functools.partial(peer, "propack"),
}


def called(call, A, k, seed):
    """Seconds of the processor and the result; None: it did not converge."""
    start = time.process_time()
    try:
        result = call(A, k, seed)
    except (ArpackError, np.linalg.LinAlgError):
        result = None
    return time.process_time() - start, result


def residual(A, U, s, Vh):
    """In units of eps s_1. Products are in long double: SciPy's sums of many numbers have errors
    that are larger than what is measured."""
    A, U, V = (x.astype(np.longdouble) for x in (A, U, Vh.T))
    sides = (A @ V - U * s, A.T @ U - V * s)
    return float(max(np.linalg.norm(side.astype(float), axis=0).max() for side in sides)) / (
        float(np.finfo(float).eps) * float(s[0])
    )


# ---- what is measured ----


def _measure(run, case):
    record = {"what": case.what, "k": case.k}
    if case.what in NEEDS_DEBIAN and not packages():
        return record | {"skipped": "there is no index of Debian's packages"}
    A = case.make()
    record |= {"rows": A.shape[0], "columns": A.shape[1]}
    record["entries"] = int(A.nnz) if sparse.issparse(A) else A.size
    seconds, results = {name: [] for name in CONTENDERS}, {}
    for _ in range(run.repeats):
        for name, call in CONTENDERS.items():
            took, results[name] = called(call, A, case.k, 0)
            seconds[name].append(took)
    known = [result[1] for result in results.values() if result is not None]
    largest = np.max(known, axis=0)
    record["contenders"] = {
        name: {"median": median(times), "seconds": times} | _found(A, results[name], largest)
        for name, times in seconds.items()
    }
    return record


def _found(A, result, largest):
    if result is None:
        return {"note": "no convergence"}
    short = largest - result[1] > SHORT * largest[0]
    return {"residual": residual(A, *result), "missed": int(short.sum())}


def _shown(record):
    if "skipped" in record:
        return record
    first = {key: record[key] for key in ("what", "rows", "columns", "entries", "k")}
    lines = []
    for name, found in record["contenders"].items():
        lines.append((first if not lines else {"what": ""}) | found | {"name": name})
    return lines


SEARCHED = (
    Case("five copies of every value", copies, 10),
    Case("graph of 30 components", components, COMPONENTS),
)


def _search(run, case):
    """Runs from many starts: how many of them miss a value."""
    A = case.make()
    exact = linalg.svdvals(A.toarray())[: case.k]
    record = {"what": case.what, "k": case.k, "runs": SEEDS, "contenders": {}}
    for name, call in CONTENDERS.items():
        outcomes = [called(call, A, case.k, seed) for seed in range(SEEDS)]
        wrong = [
            result is None or bool((exact - result[1] > SHORT * exact[0]).any())
            for _, result in outcomes
        ]
        took = median(seconds for seconds, _ in outcomes)
        record["contenders"][name] = {"median": took, "wrong": sum(wrong)}
    return record


def _shown_search(record):
    return [
        {"what": record["what"] if i == 0 else "", "name": name} | found
        for i, (name, found) in enumerate(record["contenders"].items())
    ]


def _bars(run):
    """A case that was left out counts for none of them."""
    cases = [case["contenders"] for case in run.records["cases"] if "contenders" in case]
    searches = [case["contenders"] for case in run.records["searches"]]
    own = [case[TSVD] for case in cases]
    ours, theirs = (sum(case[name]["median"] for case in cases) for name in (TSVD, ARPACK))
    wrong = bars.worst(case[TSVD]["wrong"] for case in searches)
    return [
        bars.at_most("seconds of all cases, beside ARPACK", theirs, ours),
        bars.largest("residual", ACCURATE, own, "residual"),
        bars.largest("values missed", 0, own, "missed"),
        bars.at_most(f"wrong runs of {SEEDS}", 0, wrong, ""),
    ]


GROUP = Group(
    files={"cpu": "krylov_cpu"},
    parts=[
        Part(
            "cases",
            lambda run: CASES,
            _measure,
            "what:<30 rows:d columns:d entries:d k:d name:<15 median:s residual:.3g missed:d",
            _shown,
            head="seconds of the processor; residual over eps s_1; missed: of the k values",
        ),
        Part(
            "searches",
            lambda run: SEARCHED,
            _search,
            "what:<30 name:<15 median:s wrong:d",
            _shown_search,
            head=f"{SEEDS} starts each: runs in which a value is missing",
        ),
    ],
    bars=_bars,
    contents=lambda run: {"device": "cpu", "repeats": run.repeats},
)
