"""The singular value decomposition of dense matrices and what rests on it, as NumPy and SciPy have
them.

    from tsvd import linalg
    U, S, Vh = linalg.svd(a)
    x, residuals, rank, S = linalg.lstsq(a, b)
    U, S, Vh = linalg.svds(A, k=6)

Functions that have the name of one of `numpy.linalg` can replace it. `orth`, `null_space`,
`subspace_angles`, `polar`, `pinvh` and `orthogonal_procrustes` are those of `scipy.linalg`, and
`svds` is for a few values of any matrix, as that of `scipy.sparse.linalg`. `low_rank` is the best
approximation of a rank. `bidiagonalize` gives the first half of the work of an SVD, A = Q B Pᴴ.
"""

from numpy.linalg import LinAlgError

from ._dense import Bidiagonalization, bidiagonalize, inv, svd, svdvals
from ._nearest import low_rank, orthogonal_procrustes, polar
from ._partial import svds
from ._solutions import lstsq, pinv, pinvh
from ._subspaces import null_space, orth, subspace_angles
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
    "low_rank",
    "lstsq",
    "matrix_norm",
    "matrix_rank",
    "norm",
    "null_space",
    "orth",
    "orthogonal_procrustes",
    "pinv",
    "pinvh",
    "polar",
    "subspace_angles",
    "svd",
    "svds",
    "svdvals",
]


def __dir__():
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
