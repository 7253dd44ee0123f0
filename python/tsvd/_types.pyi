"""Types of the public functions, for type checkers and editors."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

class Exporter(Protocol):
    """An array of NumPy, PyTorch, CuPy, JAX or another library with DLPack."""

    def __dlpack_device__(self) -> tuple[Any, Any]: ...
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

# Arrays that are computed in their own dtype, and whose library the results are of.
Array = TypeVar("Array", bound=Exporter)

# Arrays that become float64.
Integers: TypeAlias = NDArray[np.integer[Any]] | NDArray[np.bool_]
Float64: TypeAlias = NDArray[np.float64]

# NumPy's arrays of complex numbers, whose values are real.
Complex = TypeVar("Complex", bound=np.complexfloating[Any, Any])
Reals: TypeAlias = NDArray[np.floating[Any]]

Select: TypeAlias = Literal["a", "v", "i"]
Method: TypeAlias = Literal["auto", "dc", "qr", "givens", "bisect", "twisted"]
DenseMethod: TypeAlias = Method | Literal["jacobi"]
# "cuda:1" and the like are strings of their own.
Device: TypeAlias = Literal["cpu", "cuda"] | str | int
Devices: TypeAlias = Device | list[str] | list[int] | tuple[str | int, ...]
Knob: TypeAlias = Literal["blocks", "block_threads", "split", "fallback", "stages"]

class Common(TypedDict, total=False):
    """Options of all functions that decompose; they do not change the type of the result."""

    eps: float | None
    max_sweeps: int | None
    select: Select
    select_range: tuple[float, float] | None
    device: Devices | None
    stream: Any
    check_finite: bool
    threads: int | None
    progress: Callable[[float], Any] | None
    tuning: Mapping[Knob, int] | None

class Values(Common, total=False):
    """Options of tsvd.svdvals."""

    lower: bool
    method: Method
    out: Any

class NoVectors(Values, total=False):
    """Options of tsvd.svd without vectors."""

    full_matrices: bool

class Vectors(Common, total=False):
    """Options of tsvd.svd with vectors."""

    lower: bool
    full_matrices: bool
    method: Method
    out: tuple[Any, Any, Any] | None

class DenseValues(Common, total=False):
    """Options of tsvd.linalg.svdvals."""

    method: DenseMethod
    out: Any

class DenseVectors(Common, total=False):
    """Options of tsvd.linalg.svd with vectors."""

    method: DenseMethod
    out: tuple[Any, Any, Any] | None
    overwrite_a: bool

class DenseNoVectors(DenseValues, total=False):
    """Options of tsvd.linalg.svd without vectors."""

    overwrite_a: bool

_A = TypeVar("_A")
_S = TypeVar("_S", default=_A)

class SVDResult(NamedTuple, Generic[_A, _S]):
    U: _A
    S: _S
    Vh: _A
    @property
    def L(self) -> _A: ...
    @property
    def s(self) -> _S: ...
    @property
    def R(self) -> _A: ...

class SVDInfo(NamedTuple):
    method: str
    device: str
    sweeps: int
    iterations: int
    iterations_saved: int
    rotations: int
    deflated: int
    refused: int
    seconds: dict[str, float]

class PartialSVDInfo(NamedTuple):
    method: Literal["krylov", "full"]
    reads: int
    steps: int
    restarts: int
    residuals: np.ndarray[Any, Any] | None
    check: Literal["all values", "probabilistic", "cholesky", "none"]
    eta: float | None
    failure: float | None
    repaired: int
