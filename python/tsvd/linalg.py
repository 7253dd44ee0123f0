"""The singular value decomposition of dense matrices and what rests on it, as NumPy has them.

    from tsvd import linalg
    U, S, Vh = linalg.svd(a)
    x, residuals, rank, S = linalg.lstsq(a, b)

All functions but `bidiagonalize` can replace those of `numpy.linalg`. `bidiagonalize` gives the
first half of the work of an SVD, A = Q B Pᴴ.
"""

from numpy.linalg import LinAlgError

from ._dense import Bidiagonalization, bidiagonalize, inv, svd, svdvals
from ._solutions import lstsq, pinv
from ._types import SVDResult
from ._values import cond, matrix_norm, matrix_rank, norm

__all__ = [
    "Bidiagonalization",
    "LinAlgError",
    "SVDResult",
    "bidiagonalize",
    "cond",
    "inv",
    "lstsq",
    "matrix_norm",
    "matrix_rank",
    "norm",
    "pinv",
    "svd",
    "svdvals",
]


def __dir__():
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
