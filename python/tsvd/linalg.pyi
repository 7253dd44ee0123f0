"""Types of tsvd.linalg, for type checkers and editors."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, SupportsIndex, overload

import numpy as np
from numpy.linalg import LinAlgError as LinAlgError
from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypeVar, Unpack

from ._types import (
    Array,
    Complex,
    DenseNoVectors,
    DenseValues,
    DenseVectors,
    Device,
    Devices,
    Float64,
    Integers,
    Knob,
    Method,
    Reals,
    Select,
    SVDInfo,
)
from ._types import PartialSVDInfo as PartialSVDInfo
from ._types import SVDResult as SVDResult

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

@overload
def svd(  # type: ignore[overload-overlap]
    a: Integers,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    hermitian: bool = ...,
    *,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseVectors],
) -> SVDResult[Float64]: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: NDArray[Complex],
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    hermitian: bool = ...,
    *,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseVectors],
) -> SVDResult[NDArray[Complex], Reals]: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: Integers,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    hermitian: bool = ...,
    *,
    full_output: Literal[True],
    **options: Unpack[DenseVectors],
) -> tuple[SVDResult[Float64], SVDInfo]: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: NDArray[Complex],
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    hermitian: bool = ...,
    *,
    full_output: Literal[True],
    **options: Unpack[DenseVectors],
) -> tuple[SVDResult[NDArray[Complex], Reals], SVDInfo]: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: Integers,
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseNoVectors],
) -> Float64: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: NDArray[Complex],
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseNoVectors],
) -> Reals: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: Integers,
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    *,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseNoVectors],
) -> Float64: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: NDArray[Complex],
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    *,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseNoVectors],
) -> Reals: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: Integers,
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    full_output: Literal[True],
    **options: Unpack[DenseNoVectors],
) -> tuple[Float64, SVDInfo]: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: NDArray[Complex],
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    full_output: Literal[True],
    **options: Unpack[DenseNoVectors],
) -> tuple[Reals, SVDInfo]: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: Integers,
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    *,
    full_output: Literal[True],
    **options: Unpack[DenseNoVectors],
) -> tuple[Float64, SVDInfo]: ...
@overload
def svd(  # type: ignore[overload-overlap]
    a: NDArray[Complex],
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    *,
    full_output: Literal[True],
    **options: Unpack[DenseNoVectors],
) -> tuple[Reals, SVDInfo]: ...
@overload
def svd(
    a: Array,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    hermitian: bool = ...,
    *,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseVectors],
) -> SVDResult[Array]: ...
@overload
def svd(
    a: Array,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    hermitian: bool = ...,
    *,
    full_output: Literal[True],
    **options: Unpack[DenseVectors],
) -> tuple[SVDResult[Array], SVDInfo]: ...
@overload
def svd(
    a: Array,
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseNoVectors],
) -> Array: ...
@overload
def svd(
    a: Array,
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    *,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseNoVectors],
) -> Array: ...
@overload
def svd(
    a: Array,
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    full_output: Literal[True],
    **options: Unpack[DenseNoVectors],
) -> tuple[Array, SVDInfo]: ...
@overload
def svd(
    a: Array,
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    *,
    full_output: Literal[True],
    **options: Unpack[DenseNoVectors],
) -> tuple[Array, SVDInfo]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    hermitian: bool = ...,
    *,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseVectors],
) -> SVDResult[Float64]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    hermitian: bool = ...,
    *,
    full_output: Literal[True],
    **options: Unpack[DenseVectors],
) -> tuple[SVDResult[Float64], SVDInfo]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseNoVectors],
) -> Float64: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    *,
    full_output: Literal[False] = ...,
    **options: Unpack[DenseNoVectors],
) -> Float64: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    full_output: Literal[True],
    **options: Unpack[DenseNoVectors],
) -> tuple[Float64, SVDInfo]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    *,
    full_output: Literal[True],
    **options: Unpack[DenseNoVectors],
) -> tuple[Float64, SVDInfo]: ...
@overload
def svdvals(a: Integers, **options: Unpack[DenseValues]) -> Float64: ...  # type: ignore[overload-overlap]
@overload
def svdvals(a: NDArray[Complex], **options: Unpack[DenseValues]) -> Reals: ...  # type: ignore[overload-overlap]
@overload
def svdvals(a: Array, **options: Unpack[DenseValues]) -> Array: ...
@overload
def svdvals(a: ArrayLike, **options: Unpack[DenseValues]) -> Float64: ...
@overload
def bidiagonalize(  # type: ignore[overload-overlap]
    a: Integers,
    *,
    device: Device | None = None,
    stream: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    progress: Callable[[float], Any] | None = None,
    tuning: Mapping[Knob, int] | None = None,
) -> Bidiagonalization[Float64]: ...
@overload
def bidiagonalize(  # type: ignore[overload-overlap]
    a: NDArray[Complex],
    *,
    device: Device | None = None,
    stream: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    progress: Callable[[float], Any] | None = None,
    tuning: Mapping[Knob, int] | None = None,
) -> Bidiagonalization[NDArray[Complex], Reals]: ...
@overload
def bidiagonalize(
    a: Array,
    *,
    device: Device | None = None,
    stream: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    progress: Callable[[float], Any] | None = None,
    tuning: Mapping[Knob, int] | None = None,
) -> Bidiagonalization[Array]: ...
@overload
def bidiagonalize(
    a: ArrayLike,
    *,
    device: Device | None = None,
    stream: Any = None,
    check_finite: bool = True,
    threads: int | None = None,
    progress: Callable[[float], Any] | None = None,
    tuning: Mapping[Knob, int] | None = None,
) -> Bidiagonalization[Float64]: ...
@overload
def inv(  # type: ignore[overload-overlap]
    a: Integers,
    *,
    refine: bool = False,
    device: Devices | None = None,
    stream: Any = None,
    out: Any = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    threads: int | None = None,
    progress: Callable[[float], Any] | None = None,
) -> Float64: ...
@overload
def inv(
    a: Array,
    *,
    refine: bool = False,
    device: Devices | None = None,
    stream: Any = None,
    out: Any = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    threads: int | None = None,
    progress: Callable[[float], Any] | None = None,
) -> Array: ...
@overload
def inv(
    a: ArrayLike,
    *,
    refine: bool = False,
    device: Devices | None = None,
    stream: Any = None,
    out: Any = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    threads: int | None = None,
    progress: Callable[[float], Any] | None = None,
) -> Float64: ...
@overload
def pinv(  # type: ignore[overload-overlap]
    a: Integers,
    rcond: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: Any = ...,
    atol: ArrayLike | None = None,
    return_rank: Literal[False] = False,
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> Float64: ...
@overload
def pinv(  # type: ignore[overload-overlap]
    a: Integers,
    rcond: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: Any = ...,
    atol: ArrayLike | None = None,
    return_rank: Literal[True],
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Float64, Any]: ...
@overload
def pinv(
    a: Array,
    rcond: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: Any = ...,
    atol: ArrayLike | None = None,
    return_rank: Literal[False] = False,
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> Array: ...
@overload
def pinv(
    a: Array,
    rcond: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: Any = ...,
    atol: ArrayLike | None = None,
    return_rank: Literal[True],
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Array, Any]: ...
@overload
def pinv(
    a: ArrayLike,
    rcond: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: Any = ...,
    atol: ArrayLike | None = None,
    return_rank: Literal[False] = False,
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> Float64: ...
@overload
def pinv(
    a: ArrayLike,
    rcond: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: Any = ...,
    atol: ArrayLike | None = None,
    return_rank: Literal[True],
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Float64, Any]: ...
@overload
def pinvh(  # type: ignore[overload-overlap]
    a: Integers,
    atol: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    lower: bool = True,
    return_rank: Literal[False] = False,
    check_finite: bool = True,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Float64: ...
@overload
def pinvh(  # type: ignore[overload-overlap]
    a: Integers,
    atol: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    lower: bool = True,
    *,
    return_rank: Literal[True],
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Float64, Any]: ...
@overload
def pinvh(  # type: ignore[overload-overlap]
    a: Integers,
    atol: ArrayLike | None,
    rtol: ArrayLike | None,
    lower: bool,
    return_rank: Literal[True],
    check_finite: bool = True,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Float64, Any]: ...
@overload
def pinvh(
    a: Array,
    atol: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    lower: bool = True,
    return_rank: Literal[False] = False,
    check_finite: bool = True,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Array: ...
@overload
def pinvh(
    a: Array,
    atol: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    lower: bool = True,
    *,
    return_rank: Literal[True],
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Array, Any]: ...
@overload
def pinvh(
    a: Array,
    atol: ArrayLike | None,
    rtol: ArrayLike | None,
    lower: bool,
    return_rank: Literal[True],
    check_finite: bool = True,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Array, Any]: ...
@overload
def pinvh(
    a: ArrayLike,
    atol: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    lower: bool = True,
    return_rank: Literal[False] = False,
    check_finite: bool = True,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Float64: ...
@overload
def pinvh(
    a: ArrayLike,
    atol: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    lower: bool = True,
    *,
    return_rank: Literal[True],
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Float64, Any]: ...
@overload
def pinvh(
    a: ArrayLike,
    atol: ArrayLike | None,
    rtol: ArrayLike | None,
    lower: bool,
    return_rank: Literal[True],
    check_finite: bool = True,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Float64, Any]: ...
@overload
def lstsq(  # type: ignore[overload-overlap]
    a: Integers,
    b: Integers,
    rcond: ArrayLike | None = None,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Float64, Float64, Any, Float64]: ...
@overload
def lstsq(
    a: Array,
    b: Array,
    rcond: ArrayLike | None = None,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Array, Any, Any, Any]: ...
@overload
def lstsq(
    a: Any,
    b: Any,
    rcond: ArrayLike | None = None,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Any, Any, Any, Any]: ...
@overload
def svds(
    A: Any,
    k: SupportsIndex = ...,
    *,
    which: Literal["LM", "SM"] = ...,
    tol: float = ...,
    v0: ArrayLike | None = ...,
    maxiter: int | None = ...,
    return_singular_vectors: Literal[True] = ...,
    rng: int | np.random.Generator | None = ...,
    check: Literal["auto", "probabilistic", "cholesky", "none"] = ...,
    center: ArrayLike | Literal[True] | None = ...,
    full_output: Literal[False] = ...,
) -> SVDResult[Any]: ...
@overload
def svds(
    A: Any,
    k: SupportsIndex = ...,
    *,
    which: Literal["LM", "SM"] = ...,
    tol: float = ...,
    v0: ArrayLike | None = ...,
    maxiter: int | None = ...,
    return_singular_vectors: Literal[True] = ...,
    rng: int | np.random.Generator | None = ...,
    check: Literal["auto", "probabilistic", "cholesky", "none"] = ...,
    center: ArrayLike | Literal[True] | None = ...,
    full_output: Literal[True],
) -> tuple[SVDResult[Any], PartialSVDInfo]: ...
@overload
def svds(
    A: Any,
    k: SupportsIndex = ...,
    *,
    which: Literal["LM", "SM"] = ...,
    tol: float = ...,
    v0: ArrayLike | None = ...,
    maxiter: int | None = ...,
    return_singular_vectors: Literal["u", "vh"],
    rng: int | np.random.Generator | None = ...,
    check: Literal["auto", "probabilistic", "cholesky", "none"] = ...,
    center: ArrayLike | Literal[True] | None = ...,
    full_output: Literal[False] = ...,
) -> SVDResult[Any]: ...
@overload
def svds(
    A: Any,
    k: SupportsIndex = ...,
    *,
    which: Literal["LM", "SM"] = ...,
    tol: float = ...,
    v0: ArrayLike | None = ...,
    maxiter: int | None = ...,
    return_singular_vectors: Literal["u", "vh"],
    rng: int | np.random.Generator | None = ...,
    check: Literal["auto", "probabilistic", "cholesky", "none"] = ...,
    center: ArrayLike | Literal[True] | None = ...,
    full_output: Literal[True],
) -> tuple[SVDResult[Any], PartialSVDInfo]: ...
@overload
def svds(
    A: Any,
    k: SupportsIndex = ...,
    *,
    which: Literal["LM", "SM"] = ...,
    tol: float = ...,
    v0: ArrayLike | None = ...,
    maxiter: int | None = ...,
    return_singular_vectors: Literal[False],
    rng: int | np.random.Generator | None = ...,
    check: Literal["auto", "probabilistic", "cholesky", "none"] = ...,
    center: ArrayLike | Literal[True] | None = ...,
    full_output: Literal[False] = ...,
) -> Any: ...
@overload
def svds(
    A: Any,
    k: SupportsIndex = ...,
    *,
    which: Literal["LM", "SM"] = ...,
    tol: float = ...,
    v0: ArrayLike | None = ...,
    maxiter: int | None = ...,
    return_singular_vectors: Literal[False],
    rng: int | np.random.Generator | None = ...,
    check: Literal["auto", "probabilistic", "cholesky", "none"] = ...,
    center: ArrayLike | Literal[True] | None = ...,
    full_output: Literal[True],
) -> tuple[Any, PartialSVDInfo]: ...
def matrix_rank(
    A: Any,
    tol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: ArrayLike | None = None,
    device: Device | None = None,
    threads: int | None = None,
) -> Any: ...
def cond(
    x: Any,
    p: float | Literal["fro", "nuc"] | None = None,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Any: ...
def norm(
    x: Any,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: int | tuple[int, int] | None = None,
    keepdims: bool = False,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Any: ...
def matrix_norm(
    x: Any,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
    device: Device | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def orth(  # type: ignore[overload-overlap]
    A: Integers,
    rcond: ArrayLike | None = None,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Float64: ...
@overload
def orth(
    A: Array,
    rcond: ArrayLike | None = None,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Array: ...
@overload
def orth(
    A: ArrayLike,
    rcond: ArrayLike | None = None,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Float64: ...
@overload
def null_space(  # type: ignore[overload-overlap]
    A: Integers,
    rcond: ArrayLike | None = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> Float64: ...
@overload
def null_space(
    A: Array,
    rcond: ArrayLike | None = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> Array: ...
@overload
def null_space(
    A: ArrayLike,
    rcond: ArrayLike | None = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    device: Device | None = None,
    threads: int | None = None,
) -> Float64: ...
def subspace_angles(
    A: Any,
    B: Any,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> Any: ...
@overload
def polar(  # type: ignore[overload-overlap]
    a: Integers,
    side: Literal["right", "left"] = "right",
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Float64, Float64]: ...
@overload
def polar(
    a: Array,
    side: Literal["right", "left"] = "right",
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Array, Array]: ...
@overload
def polar(
    a: ArrayLike,
    side: Literal["right", "left"] = "right",
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Float64, Float64]: ...
def orthogonal_procrustes(
    A: Any,
    B: Any,
    check_finite: bool = True,
    *,
    device: Device | None = None,
    threads: int | None = None,
) -> tuple[Any, Any]: ...
@overload
def low_rank(  # type: ignore[overload-overlap]
    a: Integers,
    rank: Any = None,
    *,
    rtol: ArrayLike | None = None,
    energy: ArrayLike | None = None,
    device: Device | None = None,
    threads: int | None = None,
) -> Float64: ...
@overload
def low_rank(
    a: Array,
    rank: Any = None,
    *,
    rtol: ArrayLike | None = None,
    energy: ArrayLike | None = None,
    device: Device | None = None,
    threads: int | None = None,
) -> Array: ...
@overload
def low_rank(
    a: ArrayLike,
    rank: Any = None,
    *,
    rtol: ArrayLike | None = None,
    energy: ArrayLike | None = None,
    device: Device | None = None,
    threads: int | None = None,
) -> Float64: ...

_Values = TypeVar("_Values", default=Array)

class Bidiagonalization(Generic[Array, _Values]):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    lower: bool
    def __init__(self, reduction: Any, place: Any, cuda: int) -> None: ...
    @property
    def d(self) -> _Values: ...
    @property
    def e(self) -> _Values: ...
    def form_q(self, full: bool = False) -> Array: ...
    def form_pt(self, full: bool = False) -> Array: ...
    def apply_q(self, x: Any, transposed: bool = False) -> Any: ...
    def apply_p(self, x: Any, transposed: bool = False) -> Any: ...
    @overload
    def svd(
        self,
        full_matrices: bool = ...,
        compute_uv: Literal[True] = ...,
        *,
        method: Method = "auto",
        eps: float | None = None,
        max_sweeps: int | None = None,
        select: Select = "a",
        select_range: tuple[float, float] | None = None,
        threads: int | None = None,
        progress: Callable[[float], Any] | None = None,
        tuning: Mapping[Knob, int] | None = None,
        full_output: Literal[False] = ...,
    ) -> SVDResult[Array, _Values]: ...
    @overload
    def svd(
        self,
        full_matrices: bool = ...,
        compute_uv: Literal[True] = ...,
        *,
        method: Method = "auto",
        eps: float | None = None,
        max_sweeps: int | None = None,
        select: Select = "a",
        select_range: tuple[float, float] | None = None,
        threads: int | None = None,
        progress: Callable[[float], Any] | None = None,
        tuning: Mapping[Knob, int] | None = None,
        full_output: Literal[True],
    ) -> tuple[SVDResult[Array, _Values], SVDInfo]: ...
    @overload
    def svd(
        self,
        full_matrices: bool = ...,
        *,
        compute_uv: Literal[False],
        method: Method = "auto",
        eps: float | None = None,
        max_sweeps: int | None = None,
        select: Select = "a",
        select_range: tuple[float, float] | None = None,
        threads: int | None = None,
        progress: Callable[[float], Any] | None = None,
        tuning: Mapping[Knob, int] | None = None,
        full_output: Literal[False] = ...,
    ) -> _Values: ...
    @overload
    def svd(
        self,
        full_matrices: bool = ...,
        *,
        compute_uv: Literal[False],
        method: Method = "auto",
        eps: float | None = None,
        max_sweeps: int | None = None,
        select: Select = "a",
        select_range: tuple[float, float] | None = None,
        threads: int | None = None,
        progress: Callable[[float], Any] | None = None,
        tuning: Mapping[Knob, int] | None = None,
        full_output: Literal[True],
    ) -> tuple[_Values, SVDInfo]: ...
    def svdvals(
        self,
        *,
        method: Method = "auto",
        eps: float | None = None,
        max_sweeps: int | None = None,
        select: Select = "a",
        select_range: tuple[float, float] | None = None,
        threads: int | None = None,
        progress: Callable[[float], Any] | None = None,
        tuning: Mapping[Knob, int] | None = None,
    ) -> _Values: ...
