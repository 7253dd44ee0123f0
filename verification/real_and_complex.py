"""Which numbers the matrices of draws and climbs have, and the families of these.

Of "any" numbers the draws of even indices are real, those of odd ones complex. Each is the draw
that has this index with "real" or "complex" alone.
"""

import numpy as np

from testing import complex_families, dense_families

NUMBERS = ("any", "real", "complex")
MODULES = {"real": dense_families, "complex": complex_families}


def of_index(numbers, index):
    """Those of one draw: "real" or "complex"."""
    return NUMBERS[1 + index % 2] if numbers == "any" else numbers


def of_type(dtype):
    """Those of a type: "real" or "complex"."""
    return "complex" if np.dtype(dtype).kind == "c" else "real"


def with_parts(part, numbers):
    """The name of the type of "real" or "complex" numbers that has parts of the type `part`."""
    part = np.dtype(part)
    return (np.result_type(part, np.complex64) if numbers == "complex" else part).name


def family_names(numbers):
    """The names of the families of "real" or "complex" matrices, in order."""
    return sorted(MODULES[numbers].FAMILIES)


def make(family, m, n, dtype, seed):
    """The m x n matrix of a family, in the type `dtype`."""
    return MODULES[of_type(dtype)].make(family, m, n, np.dtype(dtype), seed)
