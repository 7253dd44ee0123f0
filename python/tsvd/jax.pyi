"""Types of the functions for JAX, for type checkers and editors."""

from typing import Literal

from jax import Array
from jax.typing import ArrayLike

from ._types import Method, SVDResult

__all__ = ["svd", "svdvals"]

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
