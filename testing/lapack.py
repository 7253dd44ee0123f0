"""LAPACK's bidiagonal SVDs, which SciPy exports to Cython but not to Python.

Each function goes from ``d, e`` to results in new arrays, as tsvd does. d and e are float64 (for
bdsdc also float32) of shapes (n,) and (n-1,), n >= 1. Vectors are in Fortran order, as LAPACK
writes them.
"""

import ctypes
import re

import numpy as np
from scipy.linalg import cython_lapack

from testing import capi

_capsule_name = capi.function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
_capsule_pointer = capi.function(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
)

_INTEGERS = {"int": np.intc, "long": np.int_, "int64_t": np.int64, "npy_int64": np.int64}


def _load(name):
    """The routine as a ctypes function, and the integer type of this SciPy's LAPACK."""
    capsule = cython_lapack.__pyx_capi__[name]
    signature = _capsule_name(capsule)
    types = re.findall(r"(\w[\w ]*?) \*", signature.decode())
    integers = {_INTEGERS[t] for t in types if t in _INTEGERS}
    if len(integers) != 1:
        raise ImportError(f"cannot tell the integer type of LAPACK's {name}: {signature.decode()}")
    address = _capsule_pointer(capsule, signature)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(types))(address)
    return function, integers.pop()


_dbdsqr, _int = _load("dbdsqr")
_dbdsdc, _ = _load("dbdsdc")
_sbdsdc, _ = _load("sbdsdc")
_dlasdq, _ = _load("dlasdq")


def _info(function, *arguments):
    """Calls a LAPACK routine, all arguments by reference; returns info, its last argument."""
    held = [_as_array(argument) for argument in arguments]
    info = np.zeros((), _int)
    function(*[array.ctypes.data for array in held], info.ctypes.data)
    return int(info)


def _call(function, *arguments):
    info = _info(function, *arguments)
    if info != 0:
        raise np.linalg.LinAlgError(f"LAPACK did not converge (info = {info})")


def _as_array(argument):
    if isinstance(argument, bytes):
        return np.frombuffer(argument, np.uint8)
    return np.array(argument, _int) if isinstance(argument, int) else argument


def dbdsqr(d, e):
    """U, s, VT by implicit QR, from U = VT = I."""
    n = len(d)
    s, e = d.copy(), e.copy()
    u, vt, c = np.eye(n, order="F"), np.eye(n, order="F"), np.empty(1)
    _call(_dbdsqr, b"U", n, n, n, 0, s, e, vt, n, u, n, c, 1, np.empty(4 * n))
    return u, s, vt


def dbdsqr_values(d, e):
    """s by dqds, which dbdsqr runs if no vectors are wanted."""
    n = len(d)
    s, e, none = d.copy(), e.copy(), np.empty(1)
    _call(_dbdsqr, b"U", n, 0, 0, 0, s, e, none, 1, none, 1, none, 1, np.empty(4 * n))
    return s


def dbdsdc(d, e, room=None):
    """U, s, VT by divide and conquer. room: dbdsdc_room(n), used in place of new arrays."""
    n = len(d)
    s, e = d.copy(), e.copy()
    u, vt, work, iwork = room or _dbdsdc_room(n, np.empty)
    unused = np.empty(1)
    _call(_dbdsdc, b"U", b"I", n, s, e, u, n, vt, n, unused, unused, work, iwork)
    return u, s, vt


def dbdsdc_room(n):
    """Results and workspace of dbdsdc, written to so that their pages exist."""
    return _dbdsdc_room(n, np.ones)


def _dbdsdc_room(n, make):
    u, vt = make((n, n), order="F"), make((n, n), order="F")
    return u, vt, make(3 * n * n + 4 * n), make(8 * n, _int)


def dlasdq(d, e):
    """U (n, n), s, VT (n+1, n+1) of an n x (n+1) matrix, e (n,), by implicit QR."""
    n = len(d)
    s, e = d.copy(), e.copy()
    u, vt = np.eye(n, order="F"), np.eye(n + 1, order="F")
    arguments = (b"U", 1, n, n + 1, n, 0, s, e, vt, n + 1, u, n, np.empty(1), 1, np.empty(4 * n))
    _call(_dlasdq, *arguments)
    order = np.argsort(-s)
    vt[:n] = vt[order]
    return u[:, order], s[order], vt


def bdsdc(d, e):
    """info, U, s, VT by divide and conquer, in the type of d and e. info > 0: no convergence."""
    n, dtype = len(d), d.dtype
    s, e = d.copy(), e.copy()
    u, vt = np.zeros((n, n), dtype, "F"), np.zeros((n, n), dtype, "F")
    work, iwork = np.empty(3 * n * n + 4 * n, dtype), np.empty(8 * n, _int)
    unused, function = np.empty(1, dtype), _dbdsdc if dtype == np.float64 else _sbdsdc
    info = _info(function, b"U", b"I", n, s, e, u, n, vt, n, unused, unused, work, iwork)
    return info, u, s, vt
