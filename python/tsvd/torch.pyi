"""Types of the differentiable functions for PyTorch, for type checkers and editors."""

from torch import Tensor

from ._types import DenseMethod, Device, Method, Select, SVDResult

__all__ = ["linalg_svd", "linalg_svdvals", "svd", "svdvals"]

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
