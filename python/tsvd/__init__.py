"""Singular value decomposition of bidiagonal matrices.

    B = diag(d) + diag(e, 1) = L @ diag(s) @ R

``L, s, R = tsvd.svd(d, e)`` gives what ``U, S, Vh = numpy.linalg.svd(B)`` gives,
but never forms B. ``s = tsvd.svdvals(d, e)`` computes the values only.

`tsvd.torch` and `tsvd.jax` have both with derivatives. They must be imported by name.
"""

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
    "show_config",
    "svd",
    "svdvals",
    "trim",
]
