"""Errors of a decomposition in the measures of testing/measures.py, computed on a device."""

from testing import measures


def errors(device, d, e, L, s, R):
    """max_error (max |B - L S R|), residual and orthogonality, for float64."""
    if device == "cpu":
        return {
            "max_error": measures.max_abs_error(d, e, L, s, R),
            "residual": measures.residual(d, e, L, s, R),
            "orthogonality": measures.orthogonality(L, R),
        }
    from benchmarks import cuda

    return cuda.errors(d, e, L, s, R)
