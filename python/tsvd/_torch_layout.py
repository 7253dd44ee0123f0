"""Results of a singular value decomposition in the memory layout of torch.linalg.svd.

Compiled programs rely on it: PyTorch promises the strides of a result before it is computed.
"""

from __future__ import annotations


def laid_out(svd, a):
    """(U, S, Vh) of the matrices a, by svd(x), whose U and Vh are row-major.

    U is column-major. Vh is column-major on the host and row-major on a CUDA device, where
    PyTorch's own kernels have it so. The rows of the SVD of the transpose, A^T = conj(V) S U^T, are
    the columns of that of A, so that nothing is copied on the host. On a CUDA device one of U and
    Vh is, the smaller one.
    """
    if a.is_cuda and a.shape[-2] < a.shape[-1]:
        U, S, Vh = svd(a)
        return U.mT.contiguous().mT, S, Vh
    V_conj, S, Uh_conj = svd(a.mT)
    Vh = V_conj.mT
    return Uh_conj.mT, S, Vh.contiguous() if a.is_cuda else Vh
