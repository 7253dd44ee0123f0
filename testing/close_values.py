"""A matrix with two close singular values, and a loss whose gradient grows like 1 / gap."""

import mpmath
import numpy as np

WEIGHTS = 1.0, -2.0, 0.5  # of the columns of U


def matrix(gap):
    """3 x 3, with the values 1 + gap, 1 and 1/4; and the symmetric matrix of the loss."""
    random = np.random.default_rng(0)
    Q, P, W = random.standard_normal((3, 3, 3))
    Q, P = np.linalg.qr(Q)[0], np.linalg.qr(P)[0]
    return (Q * [1 + gap, 1.0, 0.25]) @ P, W + W.T


def loss(U, W):
    """The sum over k of WEIGHTS[k] U[:, k]^T W U[:, k]: signs do not matter."""
    return sum(weight * (U[:, k] @ (W @ U[:, k])) for k, weight in enumerate(WEIGHTS))


def gradient(A, W):
    """That of the loss of the left vectors of A, by differences in 60 digits."""
    with mpmath.workdps(60):
        M, G, step = mpmath.matrix(A.tolist()), mpmath.matrix(W.tolist()), mpmath.mpf(10) ** -30

        def exact(M):
            U = mpmath.svd_r(M)[0]
            return sum(w * (U[:, k].T * G * U[:, k])[0] for k, w in enumerate(WEIGHTS))

        right = np.zeros(A.shape)
        for i, j in np.ndindex(A.shape):
            up, down = M.copy(), M.copy()
            up[i, j] += step
            down[i, j] -= step
            right[i, j] = float((exact(up) - exact(down)) / (2 * step))
    return right
