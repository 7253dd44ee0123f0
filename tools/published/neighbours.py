"""Repeats the published tables of two neighbours on a GPU: one-sided Jacobi, and inverses.

The authors vary the kind of memory, the loop step, and the shapes of blocks and grids
(benchmarks/data/README.md). The kernels of tsvd have fixed shapes, so each of our times stands
beside all published settings of its size. What can be varied from outside is where the arrays lie,
and whether a matrix comes alone or in a batch. Of the published matrices only the kind is known.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.inverse import LARGEST_CHECKED
from benchmarks.published_data import published_and_remade
from benchmarks.timing import interleaved
from testing import dense_families, measures
from testing.exporters import Raw, driver
from tsvd import linalg

# Where A and the results lie. "cpu" computes on the CPU, the others on the GPU.
# "managed_with_host": the host writes A before each call, and reads the results after it.
PLACES = {"cpu": ("cpu",), "cuda": ("cpu", "host", "device", "managed", "managed_with_host")}
REPEATS = 5
BATCH = 200
LARGEST_IN_BATCH = 128  # a batch of larger matrices takes up to a minute for each call

MATRICES = {
    "gaussian": lambda n: dense_families.make("gaussian", n, n),
    "prime_toeplitz": dense_families.prime_toeplitz,
}


@dataclass(frozen=True)
class Study:
    """One publication.

    key: in the published tables. matrices: names in MATRICES. call: (A, out, device) -> results.
    shapes: A.shape -> those of the results. errors: (A, results) -> measure -> value.
    """

    key: str
    matrices: tuple
    call: Callable
    shapes: Callable
    errors: Callable


def _svd(A, out, device=None, method="jacobi"):
    return linalg.svd(A, method=method, device=device, out=out)


def _svd_shapes(shape):
    return shape, shape[:-1], shape


def _svd_errors(A, results):
    U, S, Vh = results
    return {
        "residual": measures.dense_residual(A, U, S, Vh),
        "orthogonality": measures.orthogonality(U, Vh),
    }


def _inv(A, out, device=None):
    return linalg.inv(A, device=device, out=out and out[0])


def _inv_shapes(shape):
    return (shape,)


def _inv_errors(A, X):
    return {"residual": measures.inverse_residual(A, X)} if len(A) <= LARGEST_CHECKED else {}


JACOBI = Study("jacobi_svd", ("gaussian",), _svd, _svd_shapes, _svd_errors)
INVERSE = Study("gauss_jordan_inverse", tuple(MATRICES), _inv, _inv_shapes, _inv_errors)
STUDIES = {"jacobi": JACOBI, "inverse": INVERSE}


def rows(study, device, until):
    """A row for each published size and each kind of matrix. until: time.monotonic() at the end."""
    published = published_and_remade()[0][study.key]
    print(f"\n{published['source']}\nseconds; publ.: published, the fastest and the slowest\n")
    return [
        _row(study, device, n, settings, matrix, until)
        for n, settings in _by_size(published).items()
        for matrix in study.matrices
    ]


def _row(study, device, n, published, matrix, until):
    row = {"n": n, "matrix": matrix, "device": device, "published": published}
    if time.monotonic() < until:
        A = MATRICES[matrix](n)
        row |= _timed(_contenders(study, A, device))
        if ("cpu" if device == "cpu" else "host") in row["seconds"]:
            row |= study.errors(A, study.call(A, None, device))
    _show(row)
    return row


def _by_size(study):
    """n -> experiment -> setting -> published seconds"""
    found = {}
    for name, experiment in study.items():
        if isinstance(experiment, dict):
            settings = {
                key: seconds
                for key, seconds in experiment.items()
                if isinstance(seconds, list) and key != "sizes"
            }
            for i, n in enumerate(experiment["sizes"]):
                at = {key: seconds[i] for key, seconds in settings.items()}
                found.setdefault(n, {})[name] = at
    return dict(sorted(found.items()))


def _timed(contenders):
    """The median seconds for a matrix by each contender, and why others are refused."""
    accepted, refused = {}, {}
    for name, contender in contenders:
        try:
            contender()
            accepted[name] = contender
        except (NotImplementedError, np.linalg.LinAlgError) as error:
            refused[name] = str(error)
    seconds = {name: median(times) for name, times in interleaved(accepted, REPEATS).items()}
    if "batch" in seconds:
        seconds["batch"] /= BATCH
    return {"seconds": seconds, "refused": refused}


def _contenders(study, A, device):
    """Name -> function that computes and ends when the results are there."""
    for place in PLACES[device]:
        yield place, _placed(study, A, place)
    if study is not JACOBI:
        return
    main = "cpu" if device == "cpu" else "device"
    if len(A) <= LARGEST_IN_BATCH:
        stacked = np.random.default_rng(len(A)).standard_normal((BATCH, *A.shape))
        yield "batch", _placed(study, stacked, main)
    yield "auto", _placed(study, A, main, method="auto")
    if device != "cpu":
        yield "cusolver", _cusolver(A)


def _placed(study, A, place, **options):
    out = tuple(np.ones(shape) for shape in study.shapes(A.shape))
    if place in ("cpu", "host"):
        device = "cpu" if place == "cpu" else "cuda"
        return lambda: study.call(A, out, device, **options)
    there, *results = (Raw(x, managed=place != "device") for x in (A, *out))

    def compute():
        study.call(there, tuple(results), **options)
        driver("cuCtxSynchronize")

    def with_host():
        there.on_host()[...] = A
        compute()
        for x in results:
            x.on_host().copy()

    return with_host if place == "managed_with_host" else compute


def _cusolver(A):
    from benchmarks import cuda

    library = cuda.library()
    there = library.array(A)

    def compute():
        library.svd(there, "gesvdj")
        driver("cuCtxSynchronize")

    return compute


def _show(row):
    print(f"{row['n']:>6} {row['matrix']:<15}", end="")
    if "seconds" not in row:
        print("not run, the time is up", flush=True)
        return
    published = [x for settings in row["published"].values() for x in settings.values()]
    print(f"publ. {min(published):.3f} to {max(published):.3f}", end="")
    print("".join(f"  {name} {x:.3g}" for name, x in row["seconds"].items()), end="")
    for measure in ("residual", "orthogonality"):
        if measure in row:
            print(f"  {measure} {row[measure]:.2g}", end="")
    print("".join(f"\n{'':>7}{name}: {why}" for name, why in row["refused"].items()), flush=True)
