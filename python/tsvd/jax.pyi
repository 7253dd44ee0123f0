"""Types of the functions for JAX, for type checkers and editors."""

from contextlib import AbstractContextManager
from typing import Literal

from jax import Array
from jax.typing import ArrayLike

from . import _jax_linalg as linalg
from ._types import DenseMethod, Method, SVDResult

__all__ = ["disable", "enable", "inv", "linalg", "linalg_svd", "linalg_svdvals", "svd", "svdvals"]

def svd(
    d: ArrayLike,
    e: ArrayLike,
    *,
    lower: bool = False,
    method: Method = "auto",
    eps: float | None = None,
    select: Literal["a", "i"] = "a",
    select_range: tuple[int, int] | None = None,
    check_finite: bool = True,
) -> SVDResult[Array]: ...
def svdvals(
    d: ArrayLike,
    e: ArrayLike,
    *,
    lower: bool = False,
    method: Method = "auto",
    eps: float | None = None,
    select: Literal["a", "i"] = "a",
    select_range: tuple[int, int] | None = None,
    check_finite: bool = True,
) -> Array: ...
def linalg_svd(
    a: ArrayLike,
    *,
    method: DenseMethod = "auto",
    eps: float | None = None,
    max_sweeps: int | None = None,
    select: Literal["a", "i"] = "a",
    select_range: tuple[int, int] | None = None,
    check_finite: bool = True,
) -> SVDResult[Array]: ...
def linalg_svdvals(
    a: ArrayLike,
    *,
    method: DenseMethod = "auto",
    eps: float | None = None,
    max_sweeps: int | None = None,
    select: Literal["a", "i"] = "a",
    select_range: tuple[int, int] | None = None,
    check_finite: bool = True,
) -> Array: ...
def inv(a: ArrayLike, *, refine: bool = False, check_finite: bool = True) -> Array: ...
def enable() -> AbstractContextManager[object]: ...
def disable() -> None: ...
