"""Functions of Python's C API."""

import ctypes


def function(name, result, *arguments):
    """One of its own, with the types of ctypes: those of ctypes.pythonapi.NAME are everybody's."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))
