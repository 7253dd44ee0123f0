"""Types of svd and svdvals of bidiagonal matrices, for type checkers and editors."""

from typing import Literal, overload

from numpy.typing import ArrayLike
from typing_extensions import Unpack

from ._types import (
    Array,
    Exporter,
    Float64,
    Integers,
    NoVectors,
    SVDInfo,
    SVDResult,
    Values,
    Vectors,
)

@overload
def svd(  # type: ignore[overload-overlap]
    d: Integers,
    e: ArrayLike | Exporter,
    *,
    compute_uv: Literal[True] = ...,
    full_output: Literal[False] = ...,
    **options: Unpack[Vectors],
) -> SVDResult[Float64]: ...
@overload
def svd(  # type: ignore[overload-overlap]
    d: Integers,
    e: ArrayLike | Exporter,
    *,
    compute_uv: Literal[True] = ...,
    full_output: Literal[True],
    **options: Unpack[Vectors],
) -> tuple[SVDResult[Float64], SVDInfo]: ...
@overload
def svd(  # type: ignore[overload-overlap]
    d: Integers,
    e: ArrayLike | Exporter,
    *,
    compute_uv: Literal[False],
    full_output: Literal[False] = ...,
    **options: Unpack[NoVectors],
) -> Float64: ...
@overload
def svd(  # type: ignore[overload-overlap]
    d: Integers,
    e: ArrayLike | Exporter,
    *,
    compute_uv: Literal[False],
    full_output: Literal[True],
    **options: Unpack[NoVectors],
) -> tuple[Float64, SVDInfo]: ...
@overload
def svd(
    d: Array,
    e: Array,
    *,
    compute_uv: Literal[True] = ...,
    full_output: Literal[False] = ...,
    **options: Unpack[Vectors],
) -> SVDResult[Array]: ...
@overload
def svd(
    d: Array,
    e: Array,
    *,
    compute_uv: Literal[True] = ...,
    full_output: Literal[True],
    **options: Unpack[Vectors],
) -> tuple[SVDResult[Array], SVDInfo]: ...
@overload
def svd(
    d: Array,
    e: Array,
    *,
    compute_uv: Literal[False],
    full_output: Literal[False] = ...,
    **options: Unpack[NoVectors],
) -> Array: ...
@overload
def svd(
    d: Array,
    e: Array,
    *,
    compute_uv: Literal[False],
    full_output: Literal[True],
    **options: Unpack[NoVectors],
) -> tuple[Array, SVDInfo]: ...
@overload
def svd(
    d: ArrayLike,
    e: ArrayLike | Exporter,
    *,
    compute_uv: Literal[True] = ...,
    full_output: Literal[False] = ...,
    **options: Unpack[Vectors],
) -> SVDResult[Float64]: ...
@overload
def svd(
    d: ArrayLike,
    e: ArrayLike | Exporter,
    *,
    compute_uv: Literal[True] = ...,
    full_output: Literal[True],
    **options: Unpack[Vectors],
) -> tuple[SVDResult[Float64], SVDInfo]: ...
@overload
def svd(
    d: ArrayLike,
    e: ArrayLike | Exporter,
    *,
    compute_uv: Literal[False],
    full_output: Literal[False] = ...,
    **options: Unpack[NoVectors],
) -> Float64: ...
@overload
def svd(
    d: ArrayLike,
    e: ArrayLike | Exporter,
    *,
    compute_uv: Literal[False],
    full_output: Literal[True],
    **options: Unpack[NoVectors],
) -> tuple[Float64, SVDInfo]: ...
@overload
def svdvals(  # type: ignore[overload-overlap]
    d: Integers, e: ArrayLike | Exporter, **options: Unpack[Values]
) -> Float64: ...
@overload
def svdvals(d: Array, e: Array, **options: Unpack[Values]) -> Array: ...
@overload
def svdvals(d: ArrayLike, e: ArrayLike | Exporter, **options: Unpack[Values]) -> Float64: ...
