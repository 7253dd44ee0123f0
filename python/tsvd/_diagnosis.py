"""What was likely meant by a call that is refused.

Nothing here runs before a failure, but for refuse_kind(), which looks at arrays of unknown kinds.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._arrays import Form

_SPARSE = (
    "tsvd.linalg.svds finds its largest values and their vectors, and "
    "tsvd.linalg.svd({name}.toarray()) all of them; of a bidiagonal one "
    "tsvd.svd({name}.diagonal(), {name}.diagonal(1)) does"
)
_OPERATOR = (
    "this function needs the entries; tsvd.linalg.svds finds the largest values of an operator, "
    "and their vectors"
)
_LAZY = (
    "tsvd does not gather it: give {name}.compute(), or use the functions of tsvd.dask, which work "
    "on the parts"
)

# Keywords of other libraries, and what stands for them here.
_FEW = 'select="i", select_range=(0, k - 1) selects the k largest values'
_KEYWORDS = {
    **dict.fromkeys(("k", "n_components", "num", "nsv", "rank", "n", "q", "which"), _FEW),
    "subset_by_index": 'use select="i", select_range=(first, last), where 0 is the largest value',
    "subset_by_value": 'use select="v", select_range=(min, max)',
    **dict.fromkeys(
        ("tol", "rtol", "atol", "rcond"),
        "eps says how far the matrix may be perturbed, and select which values are wanted",
    ),
    **dict.fromkeys(("driver", "lapack_driver", "algorithm", "svd_solver"), "use method"),
    **dict.fromkeys(("gpu", "cuda", "backend"), 'use device="cuda"'),
    **dict.fromkeys(("n_jobs", "workers", "num_threads", "nthreads"), "use threads"),
    **dict.fromkeys(("uplo", "UPLO", "upper"), "use lower"),
    **dict.fromkeys(("dtype", "precision"), "the dtype of the input is computed in: convert it"),
    **dict.fromkeys(
        ("compute_vectors", "return_vectors", "vectors", "compute_u", "return_singular_vectors"),
        "compute_uv=False gives the values alone",
    ),
    "some": "use full_matrices=False",
    "full_matrices": "that is an argument of tsvd.linalg.svd, which takes dense matrices",
    "hermitian": "tsvd.linalg.svd takes it",
    "compute_uv": "svdvals computes the values alone; svd has vectors too",
}


def missing_e(function: str) -> TypeError:
    """tsvd.svd and svdvals of one argument: probably a dense matrix."""
    return TypeError(
        f"{function}() missing 1 required positional argument: 'e'. It takes the two diagonals of "
        f"a bidiagonal matrix. For a dense matrix A use tsvd.linalg.{function}(A); if A is "
        f"bidiagonal, tsvd.{function}(np.diag(A), np.diag(A, 1))"
    )


def unknown_keyword(function: str, unknown: dict) -> TypeError:
    """As Python's own error, and what to use."""
    name = next(iter(unknown))
    text = f"{function}() got an unexpected keyword argument {name!r}"
    return TypeError(f"{text}: {_KEYWORDS[name]}" if name in _KEYWORDS else text)


def refuse_kind(name: str, x: object) -> None:
    """Refuses what NumPy would make an array of objects of, or would gather without a word."""
    kind = type(x)
    package = kind.__module__.partition(".")[0]
    if package == "dask" or (package == "xarray" and getattr(x, "chunks", None)):
        raise TypeError(f"{name} is a lazy array of Dask: " + _LAZY.format(name=name))
    if hasattr(x, "toarray") and hasattr(x, "nnz"):
        raise TypeError(f"{name} is a sparse matrix: " + _SPARSE.format(name=name))
    if hasattr(x, "matvec") and hasattr(x, "shape"):
        raise TypeError(f"{name} is a linear operator: {_OPERATOR}")


def explain(error: Exception, form: Form, inputs: tuple) -> None:
    """Adds to the error of a call what helps."""
    text = str(error)
    addition = None
    if "dtype object" in text:
        addition = next(filter(None, map(_objects, form.inputs, inputs)), None)
    elif "NaN or infinity" in text and "select_range" not in text:
        with contextlib.suppress(Exception):  # the arrays may be of any library
            addition = next(filter(None, map(_first_not_finite, form.inputs, inputs)), None)
    if addition is not None:
        error.args = (f"{text}: {addition}",)


def _objects(name, x):
    if x is None:
        return f"{name} is None"
    if type(x).__module__.partition(".")[0] == "pandas":
        return f"give {name}.to_numpy(float)"
    array = np.asarray(x)
    if array.ndim == 0:
        return f"{name} is a {type(x).__name__}, give a list or an array"
    if array.dtype == object:
        return f"give {name}.astype(float), if {name} is an array of numbers"
    return None


def _first_not_finite(name, x):
    """Where the first NaN or infinity of an array is, asked by its own library."""
    library = sys.modules.get(type(x).__module__.partition(".")[0])
    if not hasattr(library, "isfinite") or not hasattr(library, "argwhere"):
        library, x = np, np.asarray(x)
    places = library.argwhere(~library.isfinite(x))
    if len(places) == 0:
        return None
    place = tuple(int(i) for i in places[0])
    index = place[0] if len(place) == 1 else place
    value = (complex if "complex" in str(x.dtype) else float)(x[place])
    return f"{name}[{str(index).strip('()')}] is {value}"
