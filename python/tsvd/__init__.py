"""Singular value decomposition of bidiagonal and of dense matrices.

    B = diag(d) + diag(e, 1) = L @ diag(s) @ R

``L, s, R = tsvd.svd(d, e)`` gives what ``U, S, Vh = numpy.linalg.svd(B)`` gives,
but never forms B. ``s = tsvd.svdvals(d, e)`` computes the values only.

`tsvd.linalg` has `svd` and `svdvals` of dense matrices, as `numpy.linalg` has them.

`tsvd.torch` and `tsvd.jax` have both with derivatives, and `tsvd.dask` has both for chunked arrays.
They must be imported by name.
"""

from . import linalg
from ._api import svd, svdvals
from ._config import Device, devices, show_config, trim
from ._core import __version__
from ._types import SVDInfo, SVDResult

__all__ = [
    "Device",
    "SVDInfo",
    "SVDResult",
    "__version__",
    "devices",
    "linalg",
    "show_config",
    "svd",
    "svdvals",
    "trim",
]


def __dir__() -> list[str]:
    # with tsvd.torch, tsvd.jax and tsvd.dask, where they are imported
    return [name for name in globals() if name.startswith("__") or not name.startswith("_")]
