from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike
from typing_extensions import Buffer

__version__: str
METHODS: dict[str, int]
CUDA_ORDER: int
CUDA_VALUES_ORDER: int
CUDA_BATCH_VALUES: int

def svd(
    d: ArrayLike,
    e: ArrayLike,
    compute_uv: bool,
    out: tuple | None,
    full_output: bool,
    progress: Callable[[float], Any] | None,
    first: int,
    count: int,
    lower: bool,
    method: int,
    eps: float,
    max_sweeps: int,
    check_finite: bool,
    threads: int,
    blocks: int,
    block_threads: int,
    split: int,
    fallback: int,
    on_device: bool,
    stream: int,
    keep: object,
    wait: bool,
    device: int,
    /,
) -> Any: ...
def dense_svd(
    a: ArrayLike,
    full: bool,
    compute_uv: bool,
    out: tuple | None,
    full_output: bool,
    progress: Callable[[float], Any] | None,
    first: int,
    count: int,
    lower: bool,
    method: int,
    eps: float,
    max_sweeps: int,
    check_finite: bool,
    threads: int,
    blocks: int,
    block_threads: int,
    split: int,
    fallback: int,
    on_device: bool,
    stream: int,
    keep: object,
    wait: bool,
    device: int,
    /,
) -> Any: ...
def inv(
    a: ArrayLike,
    refine: bool,
    compute_uv: bool,
    out: tuple | None,
    full_output: bool,
    progress: Callable[[float], Any] | None,
    first: int,
    count: int,
    lower: bool,
    method: int,
    eps: float,
    max_sweeps: int,
    check_finite: bool,
    threads: int,
    blocks: int,
    block_threads: int,
    split: int,
    fallback: int,
    on_device: bool,
    stream: int,
    keep: object,
    wait: bool,
    device: int,
    /,
) -> tuple[Any, float, int]: ...
def dense_offered(device: int, /) -> bool: ...
def reduce(
    a: ArrayLike,
    check_finite: bool,
    progress: Callable[[float], Any] | None,
    threads: int,
    on_device: bool,
    stream: int,
    keep: object,
    device: int,
    /,
) -> Reduction: ...
def restore(
    shape: tuple[int, ...], dtype: str, state: Buffer, on_device: bool, device: int, /
) -> Reduction: ...

class Reduction:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    def save(self, state: Buffer, /) -> None: ...
    def entries(self, on_device: bool, /) -> tuple[Any, Any]: ...
    def select(self, low: float, high: float, /) -> tuple[int, int]: ...
    def apply(self, x: Any, right: bool, transposed: bool, on_device: bool, /) -> None: ...
    def svd(self, a: None, full: bool, /, *arguments: Any) -> Any: ...

def select(
    d: ArrayLike,
    e: ArrayLike,
    check_finite: bool,
    low: float,
    high: float,
    device: int,
    stream: int,
    /,
) -> tuple[int, int]: ...
def borrow(capsule: object, name: str, /) -> Any: ...
def aside() -> list[tuple[int, int, Any]]: ...
def give_back(memory: Any, /) -> None: ...

class DeviceArray:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def for_jax(self) -> None: ...

def cuda_device_count() -> tuple[int, str]: ...
def cuda_device_unusable(index: int, /) -> str: ...
def cuda_device(index: int, /) -> dict[str, Any]: ...
def cuda_device_of(address: int, /) -> int: ...
def cuda_pays(
    rates: tuple[int, int, int, int, int] | None,
    single: bool,
    method: int,
    n: int,
    matrices: int,
    vectors: bool,
    /,
) -> bool: ...
def cuda_pays_dense(
    rates: tuple[int, int, int, int, int] | None,
    single: bool,
    method: int,
    rows: int,
    columns: int,
    matrices: int,
    vectors: bool,
    /,
) -> bool: ...
def cuda_open(index: int, /) -> None: ...
def trim() -> int: ...
def cuda_library_paths(directories: Sequence[str], /) -> None: ...
def cuda_blas(major: int, /) -> str: ...
def config() -> dict[str, Any]: ...

# Where tsvd was built with XLA's headers.
def xla_handlers() -> dict[str, Any]: ...
def xla_version() -> tuple[int, int]: ...
def load_blas() -> None: ...
