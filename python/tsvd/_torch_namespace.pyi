"""Types of `tsvd.torch.linalg`, for type checkers and editors."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "LinAlgError",
    "cond",
    "inv",
    "inv_ex",
    "lstsq",
    "matrix_norm",
    "matrix_rank",
    "pinv",
    "svd",
    "svdvals",
]

class LinAlgError(torch.linalg.LinAlgError, np.linalg.LinAlgError): ...

def svd(
    A: Tensor,
    full_matrices: bool = True,
    *,
    driver: Literal["gesvd", "gesvdj", "gesvda"] | None = None,
    out: tuple[Tensor, Tensor, Tensor] | None = None,
) -> torch.return_types.linalg_svd: ...
def svdvals(
    A: Tensor,
    *,
    driver: Literal["gesvd", "gesvdj", "gesvda"] | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def inv_ex(
    A: Tensor, *, check_errors: bool = False, out: tuple[Tensor, Tensor] | None = None
) -> torch.return_types.linalg_inv_ex: ...
def pinv(
    A: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def lstsq(
    A: Tensor,
    B: Tensor,
    rcond: float | None = None,
    *,
    driver: Literal["gels", "gelsy", "gelsd", "gelss"] | None = None,
) -> torch.return_types.linalg_lstsq: ...
def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def cond(
    A: Tensor,
    p: float | Literal["nuc", "fro"] | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def matrix_norm(
    A: Tensor,
    ord: float | Literal["nuc", "fro"] = "fro",
    dim: tuple[int, int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
