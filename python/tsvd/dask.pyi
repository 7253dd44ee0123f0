"""Types of the functions for Dask, for type checkers and editors."""

from typing import Any, Literal

import numpy as np
from dask.array import Array
from numpy.typing import ArrayLike

from ._types import DenseMethod, Method, SVDResult

__all__ = [
    "linalg_inv",
    "linalg_lstsq",
    "linalg_pinv",
    "linalg_svd",
    "linalg_svds",
    "linalg_svdvals",
    "svd",
    "svdvals",
]

def svd(
    d: ArrayLike | Array,
    e: ArrayLike | Array,
    *,
    chunks: int | tuple[int, ...] | Literal["auto"] = "auto",
    lower: bool = False,
    method: Method = "auto",
    eps: float | None = None,
    select: Literal["a", "i"] = "a",
    select_range: tuple[int, int] | None = None,
    check_finite: bool = True,
    device: str | int | None = None,
    threads: int | None = None,
) -> SVDResult[Array]: ...
def svdvals(
    d: ArrayLike | Array, e: ArrayLike | Array, *, lower: bool = False, **options: Any
) -> Array: ...
def linalg_svd(
    a: Array,
    full_matrices: bool = True,
    compute_uv: bool = True,
    *,
    select: Literal["a", "i"] = "a",
    select_range: tuple[int, int] | None = None,
    again: bool = False,
    method: DenseMethod = "auto",
    eps: float | None = None,
    max_sweeps: int | None = None,
    check_finite: bool = True,
    device: str | int | None = None,
    threads: int | None = None,
) -> Any: ...
def linalg_svdvals(
    a: Array,
    *,
    select: Literal["a", "i"] = "a",
    select_range: tuple[int, int] | None = None,
    method: DenseMethod = "auto",
    eps: float | None = None,
    max_sweeps: int | None = None,
    check_finite: bool = True,
    device: str | int | None = None,
    threads: int | None = None,
) -> Array: ...
def linalg_inv(
    a: Array,
    *,
    refine: bool = False,
    check_finite: bool = True,
    device: str | int | None = None,
    threads: int | None = None,
) -> Array: ...
def linalg_pinv(
    a: Array,
    rcond: float | None = None,
    *,
    again: bool = False,
    check_finite: bool = True,
    device: str | int | None = None,
    threads: int | None = None,
) -> Array: ...
def linalg_lstsq(
    a: Array,
    b: Array,
    rcond: float | None = None,
    *,
    device: str | int | None = None,
    threads: int | None = None,
) -> tuple[Array, Array, Array, Array]: ...
def linalg_svds(
    a: Array, k: int = 6, **options: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | np.ndarray: ...
