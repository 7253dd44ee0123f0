"""How tsvd was built, and the devices that it can use."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Literal, NamedTuple

import numpy as np

from . import _arrays, _core, _libraries


class Device(NamedTuple):
    """A device that tsvd can compute on.

    Attributes
    ----------
    device : str
        "cpu", "cuda:0", ...: a value for the argument ``device`` of `tsvd.svd`.
    name : str
        The model of a GPU, or the instruction set of the CPU kernels.
    memory_free : int or None
        Free memory in bytes. None if it is unknown, for a GPU as long as the
        process has not used it: the question would take some of it.
    memory_total : int or None
        Device memory in bytes; None for the CPU.
    compute_capability : tuple of int or None
        (major, minor) of a GPU; None for the CPU.
    multiprocessors : int or None
        Number of streaming multiprocessors of a GPU; None for the CPU.
    """

    device: str
    name: str
    memory_free: int | None
    memory_total: int | None = None
    compute_capability: tuple[int, int] | None = None
    multiprocessors: int | None = None


def devices() -> list[Device]:
    """The usable devices: the CPU, then every CUDA device for which this build has code.

    The question itself uses no device: it takes none of its memory.

    Returns
    -------
    list of Device
        Never empty. `show_config` says why a CUDA device is missing.

    Raises
    ------
    RuntimeError
        A CUDA device was found but does not answer.

    Examples
    --------
    >>> import tsvd
    >>> tsvd.devices()[0].device
    'cpu'
    """
    with contextlib.suppress(RuntimeError):  # show_config() says why
        _libraries.prepare_cuda()
    config = _core.config()
    count, _ = _core.cuda_device_count()
    cpu = Device("cpu", f"{config['cpu_kernels']} kernels", config["memory_free"] or None)
    usable = [i for i in range(count) if not _core.cuda_device_unusable(i)]
    return [cpu] + [_gpu(i) for i in usable]


def _gpu(index: int) -> Device:
    facts = _core.cuda_device(index)
    return Device(
        f"cuda:{index}",
        facts["name"],
        facts["memory_free"] or None,
        facts["memory_total"],
        facts["compute_capability"],
        facts["multiprocessors"],
    )


def trim() -> None:
    """Give back the memory that tsvd keeps for later calls.

    For each of at most four calls that were under way at once on a CUDA device
    these are up to an eighth of its memory, 64 MiB of pinned memory on the host
    and what cuBLAS works in. Calls that are under way keep theirs.

    Examples
    --------
    >>> import tsvd
    >>> tsvd.trim()
    """
    _arrays.settle()
    _core.trim()


def show_config(mode: Literal["stdout", "dicts"] = "stdout") -> dict[str, Any] | None:
    """Print the versions, the CPU kernels and BLAS, and the state of CUDA.

    Parameters
    ----------
    mode : {"stdout", "dicts"}
        "stdout" prints. "dicts" prints nothing and returns a dict of dicts.

    Returns
    -------
    dict or None
        None for "stdout".

    Raises
    ------
    ValueError
        The mode is unknown.

    Examples
    --------
    >>> import tsvd
    >>> sorted(tsvd.show_config(mode="dicts"))
    ['CPU', 'CUDA', 'Versions']
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f'mode must be "stdout" or "dicts", not {mode!r}')
    facts = _facts()
    if mode == "dicts":
        return facts
    for section, entries in facts.items():
        print(section)
        for key, value in entries.items():
            print(f"  {key}: {value}")
    return None


def _facts() -> dict[str, Any]:
    library = _device_library()  # the first: with it the core has CUDA
    config = _core.config()
    compiled = config["cuda_compiled"] and library is None
    cuda: dict[str, Any] = {"compiled in": "yes" if compiled else "no"}
    if not compiled:
        cuda["device library"] = library or "none"
    count, why = _core.cuda_device_count()
    if config["cuda_compiled"]:
        cuda["architectures"] = config["cuda_architectures"] or "unknown"
        cuda["runtime"] = _cuda_version(config["cuda_runtime"])
        cuda["driver"] = _cuda_version(config["cuda_driver"])
    reasons = [_core.cuda_device_unusable(i) for i in range(count)]
    if count > 0:
        cuda["cuBLAS"] = _cublas()
    cuda["devices"] = [
        _core.cuda_device(i)["name"] + (f", not usable: {reason}" if reason else "")
        for i, reason in enumerate(reasons)
    ] or f"none: {why}"
    return {
        "Versions": {
            "tsvd": _core.__version__,
            "NumPy": np.__version__,
            "Python": sys.version.split()[0],
        },
        "CPU": {
            "kernels": config["cpu_kernels"],
            "threads": config["threads"],
            "BLAS": _blas(),
        },
        "CUDA": cuda,
    }


def _blas() -> str:
    """The BLAS of SciPy, which large matrices and dense ones use."""
    try:
        import scipy

        blas = scipy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return f"{blas['name']} {blas['version']}, of SciPy {scipy.__version__}"
    except ImportError as error:
        return f"none: {error}"
    except (KeyError, TypeError):  # a SciPy that was built in another way
        return f"of SciPy {scipy.__version__}"


def _device_library() -> str | None:
    """Its file, or why it was not loaded; None: there is none."""
    try:
        return _libraries.prepare_cuda()
    except RuntimeError as error:
        return f"none: {error}"


def _cublas() -> str:
    try:
        return _core.cuda_blas(0)
    except RuntimeError as error:
        return f"none: {error}"


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}" if number else "none"
