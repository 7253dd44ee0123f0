from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Final, TypedDict, final

from numpy.typing import ArrayLike
from typing_extensions import Buffer, Unpack

__version__: str
METHODS: dict[str, int]
CUDA_ORDER: int
CUDA_VALUES_ORDER: int
CUDA_BATCH_VALUES: int

class _Fields(TypedDict, total=False):
    """What options() and replace() take; the table in csrc/python/options.c says what each is."""

    compute_uv: bool
    full_output: bool
    full: bool
    result: type
    lower: bool
    refine: bool
    method: int
    eps: float | None
    max_sweeps: int | None
    check_finite: bool
    progress: Callable[[float], Any] | None
    threads: int | None
    blocks: int
    block_threads: int
    split: int
    stages: int
    fallback: int
    out: tuple | None
    on_device: bool
    stream: int
    keep: object
    wait: bool
    first: int
    count: int
    whole_first: int
    whole_count: int
    whole_matrices: int
    sum: Callable[[memoryview], Any] | None

@final
class Options:
    compute_uv: Final[bool]
    full_output: Final[bool]
    full: Final[bool]
    result: Final[type]
    lower: Final[bool]
    refine: Final[bool]
    method: Final[int]
    eps: Final[float]
    max_sweeps: Final[int]
    check_finite: Final[bool]
    progress: Final[Callable[[float], Any] | None]
    threads: Final[int]
    blocks: Final[int]
    block_threads: Final[int]
    split: Final[int]
    stages: Final[int]
    fallback: Final[int]
    out: Final[tuple[Any, ...] | None]
    on_device: Final[bool]
    stream: Final[int]
    keep: Final[object]
    wait: Final[bool]
    first: Final[int]
    count: Final[int]
    whole_first: Final[int]
    whole_count: Final[int]
    whole_matrices: Final[int]
    sum: Final[Callable[[memoryview], Any] | None]
    def replace(self, **fields: Unpack[_Fields]) -> Options: ...

def options(**fields: Unpack[_Fields]) -> Options: ...
def svd(inputs: tuple[ArrayLike, ArrayLike], options: Options, device: int, /) -> Any: ...
def dense_svd(inputs: tuple[ArrayLike], options: Options, device: int, /) -> Any: ...
def inv(inputs: tuple[ArrayLike], options: Options, device: int, /) -> tuple[Any, float, int]: ...
def dense_direct(inputs: tuple[ArrayLike], options: Options, device: int, /) -> bool: ...
def dense_offered(device: int, /) -> bool: ...
def reduce(inputs: tuple[ArrayLike], options: Options, device: int, /) -> Reduction: ...
def restore(
    shape: tuple[int, ...], dtype: str, state: Buffer, on_device: bool, device: int, /
) -> Reduction: ...

@final
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
    def svd(self, options: Options, /) -> Any: ...

def select(
    inputs: tuple[ArrayLike, ArrayLike],
    options: Options,
    low: float,
    high: float,
    device: int,
    /,
) -> tuple[int, int]: ...
def borrow(capsule: object, name: str, /) -> Any: ...
def aside() -> list[tuple[int, int, Any]]: ...
def give_back(memory: Any, /) -> None: ...
def python_ends() -> None: ...

class Stopped(Exception): ...

@final
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
def cuda_may_pay(inputs: tuple[ArrayLike, ArrayLike], method: int, vectors: bool, /) -> bool: ...
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
def cuda_load(file: str | PathLike[str], /) -> None: ...
def cuda_open(index: int, /) -> None: ...
def trim() -> int: ...
def cuda_library_paths(directories: Sequence[str], /) -> None: ...
def cuda_blas(major: int, /) -> str: ...
def config() -> dict[str, Any]: ...
def tuning() -> dict[str, float]: ...

# Where tsvd was built with XLA's headers.
def xla_handlers() -> dict[str, dict[str, Any]]: ...
def load_blas() -> None: ...
