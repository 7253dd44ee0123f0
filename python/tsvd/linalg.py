"""The singular value decomposition of dense matrices and what rests on it, as NumPy has them.

    from tsvd import linalg
    U, S, Vh = linalg.svd(a)
    x, residuals, rank, S = linalg.lstsq(a, b)
    U, S, Vh = linalg.svds(A, k=6)

All functions but `bidiagonalize` and `svds` can replace those of `numpy.linalg`. `bidiagonalize`
gives the first half of the work of an SVD, A = Q B Pᴴ. `svds` is for a few values of any matrix,
as that of SciPy.
"""

from numpy.linalg import LinAlgError

from ._dense import Bidiagonalization, bidiagonalize, inv, svd, svdvals
from ._partial import svds
from ._solutions import lstsq, pinv
from ._types import PartialSVDInfo, SVDResult
from ._values import cond, matrix_norm, matrix_rank, norm

__all__ = [
    "Bidiagonalization",
    "LinAlgError",
    "PartialSVDInfo",
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
    "svds",
    "svdvals",
]


def __dir__():
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
