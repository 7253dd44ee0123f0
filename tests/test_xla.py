"""csrc/python/xla_ffi.h against XLA's own header, which comes with jaxlib."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from tsvd import _core

ROOT = Path(__file__).parents[1]

# Our structure, XLA's, and pairs of members. The sizes are the same but for those of GROWING.
STRUCTURES = {
    ("xla_extension", "XLA_FFI_Extension_Base"): "size struct_size, type type, next next",
    ("xla_version", "XLA_FFI_Api_Version"): (
        "size struct_size, extensions extension_start, major_version major_version, "
        "minor_version minor_version"
    ),
    ("xla_metadata", "XLA_FFI_Metadata"): ("size struct_size, version api_version, traits traits"),
    ("xla_metadata_extension", "XLA_FFI_Metadata_Extension"): (
        "base extension_base, metadata metadata"
    ),
    ("xla_buffer", "XLA_FFI_Buffer"): (
        "size struct_size, extensions extension_start, dtype dtype, data data, rank rank, dims dims"
    ),
    ("xla_string", "XLA_FFI_ByteSpan"): "text ptr, length len",
    ("xla_scalar", "XLA_FFI_Scalar"): "dtype dtype, value value",
    ("xla_arrays", "XLA_FFI_Args"): (
        "size struct_size, extensions extension_start, count size, kinds types, arrays args"
    ),
    ("xla_arrays", "XLA_FFI_Rets"): (
        "size struct_size, extensions extension_start, count size, kinds types, arrays rets"
    ),
    ("xla_attributes", "XLA_FFI_Attrs"): (
        "size struct_size, extensions extension_start, count size, kinds types, names names, "
        "values attrs"
    ),
    ("xla_frame", "XLA_FFI_CallFrame"): (
        "size struct_size, extensions extension_start, api api, context ctx, stage stage, "
        "arguments args, results rets, attributes attrs"
    ),
    ("xla_error_args", "XLA_FFI_Error_Create_Args"): (
        "size struct_size, extensions extension_start, text message, code errc"
    ),
    ("xla_stream_args", "XLA_FFI_Stream_Get_Args"): (
        "size struct_size, extensions extension_start, context ctx, stream stream"
    ),
    ("xla_api", "XLA_FFI_Api"): (
        "size struct_size, extensions extension_start, version api_version, "
        "internal internal_api, make_error XLA_FFI_Error_Create, get_stream XLA_FFI_Stream_Get"
    ),
}
# What the oldest versions lack.
NEWER = {
    ("xla_device_args", "XLA_FFI_DeviceOrdinal_Get_Args"): (
        "size struct_size, extensions extension_start, context ctx, device device_ordinal"
    ),
    ("xla_api", "XLA_FFI_Api"): "get_device XLA_FFI_DeviceOrdinal_Get",
}
GROWING = {"xla_metadata", "xla_frame", "xla_api"}
CONSTANTS = {
    "XLA_MAJOR": "XLA_FFI_API_MAJOR",
    "XLA_EXTENSION_METADATA": "XLA_FFI_Extension_Metadata",
    "XLA_INVALID_ARGUMENT": "XLA_FFI_Error_Code_INVALID_ARGUMENT",
    "XLA_RESOURCE_EXHAUSTED": "XLA_FFI_Error_Code_RESOURCE_EXHAUSTED",
    "XLA_FAILED_PRECONDITION": "XLA_FFI_Error_Code_FAILED_PRECONDITION",
    "XLA_UNIMPLEMENTED": "XLA_FFI_Error_Code_UNIMPLEMENTED",
    "XLA_INTERNAL": "XLA_FFI_Error_Code_INTERNAL",
    "XLA_S64": "XLA_FFI_DataType_S64",
    "XLA_F32": "XLA_FFI_DataType_F32",
    "XLA_F64": "XLA_FFI_DataType_F64",
    "XLA_C64": "XLA_FFI_DataType_C64",
    "XLA_C128": "XLA_FFI_DataType_C128",
    "XLA_BUFFER": "XLA_FFI_ArgType_BUFFER",
    "XLA_SCALAR": "XLA_FFI_AttrType_SCALAR",
    "XLA_EXECUTE": "XLA_FFI_ExecutionStage_EXECUTE",
}


@pytest.fixture(scope="module")
def header():
    """The folder of XLA's headers, without importing JAX."""
    spec = importlib.util.find_spec("jaxlib")
    if spec is None or shutil.which("gcc") is None:
        pytest.skip("needs jaxlib and gcc")
    return Path(spec.submodule_search_locations[0], "include")


def assertions(structures, constants):
    for (ours, theirs), members in structures.items():
        for pair in members.split(", "):
            a, b = pair.split(" ")
            yield f"offsetof(struct {ours}, {a}) == offsetof({theirs}, {b})"
            size = "sizeof((({} *)0)->{})"
            yield f"{size.format('struct ' + ours, a)} <= {size.format(theirs, b)}"
        yield f"sizeof(struct {ours}) {'<=' if ours in GROWING else '=='} sizeof({theirs})"
    for ours, theirs in constants.items():
        yield f"(int){ours} == (int){theirs}"


def compiles(folder, header, checks):
    lines = ['#include "python/xla_ffi.h"', "#include <xla/ffi/api/c_api.h>"]
    lines += [f'_Static_assert({check}, "{check}");' for check in checks]
    source = folder / "layout.c"
    source.write_text("\n".join(lines) + "\n")
    command = ["gcc", "-std=c11", "-fsyntax-only", f"-I{ROOT / 'csrc'}", f"-I{header}", source]
    return subprocess.run(command, capture_output=True, text=True)


def test_every_build_has_the_handlers():
    handlers = _core.xla_handlers()
    assert handlers.keys() == {"tsvd_svd", "tsvd_dense_svd", "tsvd_inverse"}
    assert all("cpu" in of_target for of_target in handlers.values())


def test_declarations_are_those_of_xla(tmp_path, header):
    structures = dict(STRUCTURES)
    text = (header / "xla/ffi/api/c_api.h").read_text()
    if "XLA_FFI_DeviceOrdinal_Get" in text:
        key = "xla_api", "XLA_FFI_Api"
        structures |= NEWER | {key: f"{STRUCTURES[key]}, {NEWER[key]}"}
    checks = list(assertions(structures, CONSTANTS))
    if "XLA_FFI_DeviceOrdinal_Get" not in text:
        checks.remove("sizeof(struct xla_api) <= sizeof(XLA_FFI_Api)")
    done = compiles(tmp_path, header, checks)
    assert done.returncode == 0, done.stderr


def test_a_wrong_declaration_is_found(tmp_path, header):
    """The checks are compiled, and can fail."""
    done = compiles(
        tmp_path, header, ["offsetof(struct xla_buffer, data) == offsetof(XLA_FFI_Buffer, rank)"]
    )
    assert done.returncode != 0 and "static assertion failed" in done.stderr
