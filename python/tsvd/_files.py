"""Arrays in files, for the command line: what it reads, and what it writes."""

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

STANDARD = "-"  # standard input or output

_READ = ".npy, .npz, .mtx, .csv and .txt"
_WRITTEN = (".npz", ".npy", ".csv", ".txt")
_TEXT = (".csv", ".txt")


class Failure(Exception):
    """Ends the program with one line on stderr."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


# ---- reading ----


def read(name, dtype=None, wanted=None, vectors=False):
    """The array of a file, or arrays by their names if `wanted` names some that it may hold.

    name: a path, "FILE.npz:ARRAY" or "-". wanted: such as ("d", "e"), for files with several.
    vectors: one row or one column of text is a vector.
    """
    path, member = _split(name)
    if path == STANDARD:
        source = io.BytesIO(_standard_input())
        kind = _kind_of(source.getvalue())
    else:
        source, kind = path, Path(path).suffix.lower()
        if kind not in _READERS:
            raise Failure(f"{path}: unknown ending; tsvd reads {_READ}", 2)
    try:
        found = _READERS[kind](source)
    except Failure as failure:
        raise Failure(f"{path}: {failure}", failure.code) from failure
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}", 2) from error
    except MemoryError as error:
        raise Failure(f"{path}: {error}", 1) from error
    except Exception as error:  # a damaged file may raise anything
        raise Failure(f"{path}: not a {kind} file of numbers ({error})", 2) from error
    if isinstance(found, dict):
        found = _member(path, found, member, wanted)
    elif member is not None:
        raise Failure(f"{name}: only .npz files have arrays with names", 2)
    elif vectors and kind in _TEXT and 1 in found.shape:
        found = found.ravel()
    if isinstance(found, dict):
        return {key: _converted(path, array, dtype) for key, array in found.items()}
    return _converted(path, found, dtype)


def _split(name):
    """A path, and the name of an array in it or None."""
    path, colon, member = str(name).rpartition(":")
    if colon and path.lower().endswith(".npz") and not os.path.exists(name):
        return path, member
    return str(name), None


def _standard_input():
    data = sys.stdin.buffer.read()
    if not data:
        raise Failure("standard input: empty", 2)
    return data


def _kind_of(data):
    for start, kind in ((b"\x93NUMPY", ".npy"), (b"PK", ".npz"), (b"%%MatrixMarket", ".mtx")):
        if data.startswith(start):
            return kind
    return ".csv" if b"," in data[:4096] else ".txt"


def _read_numpy(source):
    import numpy as np

    with contextlib.ExitStack() as opened:
        # not by its name: NumPy leaves a damaged archive open
        file = (
            source if isinstance(source, io.BytesIO) else opened.enter_context(open(source, "rb"))
        )
        loaded = np.load(file)  # refuses pickles
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return {key: loaded[key] for key in loaded.files}


def _member(path, arrays, member, wanted):
    names = ", ".join(arrays) or "none"
    if member is not None:
        if member not in arrays:
            raise Failure(f"{path}: has no array {member!r}; its arrays: {names}", 2)
        return arrays[member]
    if wanted is not None and set(wanted) <= set(arrays):
        return {key: arrays[key] for key in wanted}
    if len(arrays) != 1:
        raise Failure(f"{path}: has {len(arrays)} arrays, {names}; name one: {path}:NAME", 2)
    return next(iter(arrays.values()))


def _read_market(source):
    from scipy import io as scipy_io

    matrix = scipy_io.mmread(source)
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def _read_text(delimiter):
    def read_text(source):
        import numpy as np

        if isinstance(source, io.BytesIO):
            source = io.StringIO(source.getvalue().decode())
        elif os.path.getsize(source) == 0:
            raise Failure("empty", 2)
        try:
            return np.loadtxt(source, delimiter=delimiter, ndmin=2)
        except ValueError as error:  # which says the row and the column
            if isinstance(source, io.StringIO):
                source.seek(0)
            with contextlib.suppress(ValueError):  # "(1+2j)", as numpy.savetxt writes it
                return np.loadtxt(source, complex, delimiter=delimiter, ndmin=2)
            raise Failure(str(error).replace("\n", " "), 2) from error

    return read_text


_READERS = {
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".mtx": _read_market,
    ".csv": _read_text(","),
    ".txt": _read_text(None),
}


def _converted(path, array, dtype):
    if dtype is None:
        return array
    if array.dtype.kind not in "fiub":
        raise Failure(f"{path}: cannot convert {array.dtype} to {dtype}", 2)
    return array.astype(dtype)


def diagonals(name, matrix):
    """d, e and whether e is below the diagonal, of a bidiagonal matrix.

    It is square, or has a column more than rows or a row more than columns, and then e is as long
    as d.
    """
    import numpy as np

    wider = matrix.shape[1] - matrix.shape[0] if matrix.ndim == 2 else 2
    if abs(wider) > 1:
        raise Failure(
            f"{name}: has the shape {matrix.shape}; give D and E, or one bidiagonal matrix", 2
        )
    d = np.diagonal(matrix)
    for offset in (wider,) if wider else (1, -1):
        e = np.diagonal(matrix, offset)
        if np.count_nonzero(matrix) == np.count_nonzero(d) + np.count_nonzero(e):
            return d, e, offset < 0
    raise Failure(f"{name}: is not bidiagonal; tsvd linalg decomposes dense matrices", 2)


# ---- writing ----


def check_output(name, inputs, count, force):
    """Refuses an output before any work. Links are followed.

    count: how many arrays are to be written. Returns the path, or "-".
    """
    if name == STANDARD:
        if sys.stdout.isatty():
            raise Failure("-o - writes binary data, and standard output is a terminal", 2)
        return STANDARD
    path = Path(name)
    try:
        path = path.resolve()
        if path.exists():
            if not path.is_file():
                raise Failure(f"{path}: exists and is not a file", 2)
            sources = [Path(_split(other)[0]) for other in inputs]
            if any(other.exists() and path.samefile(other) for other in sources):
                raise Failure(f"{path}: is an input file; give another name with -o", 2)
            if not force:
                raise Failure(f"{path}: exists already; --force replaces it", 2)
        if not path.parent.is_dir():
            raise Failure(f"{path}: the folder does not exist", 2)
        if not os.access(path.parent, os.W_OK):
            raise Failure(f"{path}: no permission to write into the folder", 2)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise Failure(f"{path}: {getattr(error, 'strerror', None) or error}", 2) from error
    if path.suffix.lower() not in _WRITTEN:
        raise Failure(f"{path}: unknown ending; tsvd writes {', '.join(_WRITTEN)}", 2)
    if count > 1 and path.suffix.lower() != ".npz":
        raise Failure(f"{path}: {count} arrays go into a .npz file; --values-only gives one", 2)
    return path


def write(path, arrays, force):
    """Writes the whole file or, on any error, nothing. arrays: by their names."""
    if path == STANDARD:
        data = io.BytesIO()
        _fill(data, ".npz" if len(arrays) > 1 else ".npy", arrays)
        sys.stdout.buffer.write(data.getbuffer())
        sys.stdout.buffer.flush()
        return
    try:
        # A new file of an unused name: what other programs keep in the folder stays as it is.
        descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=".tsvd.", suffix=".part")
        try:
            with open(descriptor, "wb") as file:
                _fill(file, path.suffix.lower(), arrays)
            os.chmod(partial, 0o666 & ~_umask())  # mkstemp() lets nobody else read it
            if force:
                os.replace(partial, path)
            else:
                _rename(partial, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)
    except FileExistsError as error:
        raise Failure(f"{path}: exists by now; --force replaces it", 1) from error
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}", 1) from error


def _fill(file, kind, arrays):
    import numpy as np

    if kind == ".npz":
        np.savez(file, **arrays)
        return
    (array,) = arrays.values()
    if kind == ".npy":
        np.save(file, array)
        return
    if array.ndim > 2:
        raise Failure(f"a {kind} file holds no array of {array.ndim} dimensions; use .npy", 2)
    digits = np.finfo(array.dtype).precision + 2  # that reads back the same number
    np.savetxt(file, array, fmt=f"%.{digits}g", delimiter="," if kind == ".csv" else " ")


def _rename(old, new):
    """Gives a file a name that no file has; the old name may stay."""
    try:
        os.link(old, new)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(new):
            raise FileExistsError(new) from None
        os.rename(old, new)


def _umask():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
