"""A user's script, for the type checkers: tests/test_typing.py runs them on it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import tsvd
from tsvd import SVDInfo, SVDResult, linalg


class Tensor:
    """Stands for an array of another library."""

    def __dlpack_device__(self) -> tuple[int, int]: ...  # type: ignore[empty-body]
    def __dlpack__(self, *, stream: Any = None) -> Any: ...


F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
C64 = NDArray[np.complex64]


def bidiagonal(single: F32, double: F64, whole: NDArray[np.int64], tensor: Tensor) -> None:
    assert_type(tsvd.svd(double, double), SVDResult[F64])
    assert_type(tsvd.svd(single, single, method="dc", threads=2), SVDResult[F32])
    assert_type(tsvd.svd(whole, whole), SVDResult[F64])
    assert_type(tsvd.svd([1.0, 2.0], [1.0], lower=True), SVDResult[F64])
    assert_type(tsvd.svd(tensor, tensor, device="cuda:1"), SVDResult[Tensor])
    assert_type(tsvd.svd(single, single, compute_uv=False), F32)
    assert_type(tsvd.svd(tensor, tensor, full_output=True), tuple[SVDResult[Tensor], SVDInfo])
    assert_type(tsvd.svd(double, double, compute_uv=False, full_output=True), tuple[F64, SVDInfo])
    assert_type(tsvd.svdvals(single, single, select="i", select_range=(0, 3)), F32)
    assert_type(tsvd.svdvals(tensor, tensor, stream=7), Tensor)
    assert_type(tsvd.svdvals([1, 2], [1]), F64)
    L, s, R = tsvd.svd(single, single)
    assert_type(L, F32)
    assert_type(s, F32)
    assert_type(R, F32)
    result = tsvd.svd(double, double)
    assert_type(result.U, F64)
    assert_type(result.L, F64)
    assert_type(result.s, F64)


def partial(double: F64, tensor: Tensor) -> None:
    assert_type(linalg.svds(double, 3), SVDResult[Any])
    assert_type(linalg.svds(tensor, 3, return_singular_vectors="u", rng=1), SVDResult[Any])
    found, info = linalg.svds(double, which="LM", check="cholesky", full_output=True)
    assert_type(found, SVDResult[Any])
    assert_type(info, linalg.PartialSVDInfo)
    assert_type(info.repaired, int)


def dense(single: F32, double: F64, whole: NDArray[np.int64], tensor: Tensor) -> None:
    assert_type(linalg.svd(double, full_matrices=False), SVDResult[F64])
    assert_type(linalg.svd(single, False, False), F32)
    assert_type(linalg.svd(whole, compute_uv=False), F64)
    assert_type(linalg.svd([[1.0, 2.0]], False), SVDResult[F64])
    assert_type(linalg.svd(tensor, method="jacobi"), SVDResult[Tensor])
    assert_type(linalg.svd(tensor, full_output=True), tuple[SVDResult[Tensor], SVDInfo])
    assert_type(linalg.svdvals(tensor, threads=1), Tensor)
    assert_type(linalg.svdvals(single), F32)
    assert_type(linalg.inv(single, refine=True), F32)
    assert_type(linalg.inv([[1.0]]), F64)
    assert_type(linalg.orth(single), F32)
    assert_type(linalg.null_space([[1, 2]], rcond=1e-3), F64)
    assert_type(linalg.polar(tensor, "left"), tuple[Tensor, Tensor])
    assert_type(linalg.low_rank(whole, energy=0.9), F64)
    assert_type(linalg.pinvh(single, lower=False), F32)
    assert_type(linalg.pinvh(single, return_rank=True), tuple[F32, Any])
    assert_type(linalg.pinvh(double, None, None, True, True), tuple[F64, Any])
    form = linalg.bidiagonalize(single)
    assert_type(form.d, F32)
    assert_type(form.svd(full_matrices=False), SVDResult[F32])
    assert_type(form.svd(compute_uv=False), F32)
    assert_type(form.svdvals(), F32)
    assert_type(linalg.bidiagonalize(tensor).form_q(), Tensor)


def rest() -> None:
    assert_type(tsvd.devices(), list[tsvd.Device])
    assert_type(tsvd.devices()[0].memory_total, int | None)
    try:
        tsvd.svdvals([1.0], [])
    except linalg.LinAlgError as error:
        print(error)
    print(tsvd.__version__, tsvd.show_config(mode="dicts"))


def wrong(double: F64) -> None:
    """Each line has an error: a checker that finds none complains of the comment."""
    tsvd.svd(double)  # type: ignore  # pyright: ignore
    tsvd.svd(double, double, method="fast")  # type: ignore  # pyright: ignore
    tsvd.svd(double, double, k=3)  # type: ignore  # pyright: ignore
    tsvd.svdvals(double, double, select="b")  # type: ignore  # pyright: ignore
    linalg.svd(double, method="bisection")  # type: ignore  # pyright: ignore
    linalg.svdvals(double, tuning={"speed": 1})  # type: ignore  # pyright: ignore
    linalg.inv(double, device=1.5)  # type: ignore  # pyright: ignore


def of_complex(twofold: C64) -> None:
    assert_type(linalg.svd(twofold), SVDResult[C64, NDArray[np.floating[Any]]])
    assert_type(linalg.svdvals(twofold), NDArray[np.floating[Any]])
    assert_type(linalg.inv(twofold), C64)
    form = linalg.bidiagonalize(twofold)
    assert_type(form.d, NDArray[np.floating[Any]])
    assert_type(form.form_q(), C64)
