"""Types of the differentiable functions for PyTorch, for type checkers and editors."""

from contextlib import AbstractContextManager
from typing import Literal, overload

from numpy.typing import ArrayLike
from torch import Tensor

from . import _torch_namespace as linalg
from ._types import DenseMethod, Device, Method, Select, SVDResult

__all__ = [
    "disable",
    "enable",
    "enabled",
    "is_enabled",
    "linalg",
    "linalg_inv",
    "linalg_low_rank",
    "linalg_lstsq",
    "linalg_nuclear_norm",
    "linalg_pinv",
    "linalg_polar",
    "linalg_svd",
    "linalg_svdvals",
    "svd",
    "svdvals",
]

def enable() -> None: ...
def disable() -> None: ...
def enabled() -> AbstractContextManager[None]: ...
def is_enabled() -> bool: ...
def svd(
    d: Tensor,
    e: Tensor,
    *,
    lower: bool = False,
    method: Method = "auto",
    eps: float | None = None,
    max_sweeps: int | None = None,
    select: Select = "a",
    select_range: tuple[float, float] | None = None,
    device: Device | None = None,
    check_finite: bool = True,
) -> SVDResult[Tensor]: ...
def svdvals(
    d: Tensor,
    e: Tensor,
    *,
    lower: bool = False,
    method: Method = "auto",
    eps: float | None = None,
    max_sweeps: int | None = None,
    select: Select = "a",
    select_range: tuple[float, float] | None = None,
    device: Device | None = None,
    check_finite: bool = True,
) -> Tensor: ...
def linalg_svd(
    a: Tensor,
    *,
    method: DenseMethod = "auto",
    eps: float | None = None,
    max_sweeps: int | None = None,
    select: Select = "a",
    select_range: tuple[float, float] | None = None,
    device: Device | None = None,
    check_finite: bool = True,
) -> SVDResult[Tensor]: ...
def linalg_svdvals(
    a: Tensor,
    *,
    method: DenseMethod = "auto",
    eps: float | None = None,
    max_sweeps: int | None = None,
    select: Select = "a",
    select_range: tuple[float, float] | None = None,
    device: Device | None = None,
    check_finite: bool = True,
) -> Tensor: ...
def linalg_inv(
    a: Tensor,
    *,
    refine: bool = False,
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> Tensor: ...
@overload
def linalg_pinv(
    a: Tensor,
    rcond: ArrayLike | Tensor | None = None,
    hermitian: bool = False,
    *,
    rtol: ArrayLike | Tensor | None = None,
    atol: ArrayLike | Tensor | None = None,
    return_rank: Literal[False] = False,
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> Tensor: ...
@overload
def linalg_pinv(
    a: Tensor,
    rcond: ArrayLike | Tensor | None = None,
    hermitian: bool = False,
    *,
    rtol: ArrayLike | Tensor | None = None,
    atol: ArrayLike | Tensor | None = None,
    return_rank: Literal[True],
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Tensor, Tensor]: ...
def linalg_lstsq(
    a: Tensor,
    b: Tensor,
    rcond: ArrayLike | Tensor | None = None,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def linalg_polar(
    a: Tensor,
    side: Literal["right", "left"] = "right",
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Tensor, Tensor]: ...
def linalg_low_rank(
    a: Tensor,
    rank: int,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Tensor: ...
def linalg_nuclear_norm(
    a: Tensor,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Tensor: ...
