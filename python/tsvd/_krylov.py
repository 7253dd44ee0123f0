"""Leading singular triplets by Golub-Kahan-Lanczos, and the check that none was missed.

    A V = U B,   A^H U = V B^T + beta x e^T

V (n x l) has orthonormal columns, and x is the next one. B is upper bidiagonal and real, e the last
column of the unit matrix. V is kept and orthogonalised anew; U is not, and of it only the last
column is needed (Simon and Zha 2000). So a step reads A once: u = A x - gamma u and A^H u come from
one pass over the rows.

A restart keeps Ritz vectors, V Q, and B = [diag(s) rho; 0 ...] (Wu and Simon 2000; Baglama and
Reichel 2005). The u that follows is A x - U rho with U = A V diag(1 / s), so it is A times
x - V diag(1 / s) rho: U is not needed here either.

The check starts from a random vector orthogonal to what was found. A Ritz value above the smallest
value found shows that one was missed (Kuczynski and Wozniakowski 1992 say how surely). One start
after the other finds the copies of a value: a block of starts took longer on a CPU.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.linalg import LinAlgError

from . import _space
from ._api import svd as bidiagonal_svd
from ._dense import svd as dense_svd
from ._operators import random_vector

# In units of eps s1: predicted residuals where a run stops, what counts as zero, computed residuals
# from which on vectors are corrected, and the largest that are returned. Of long sums the last two
# are more: their rounding errors would be taken for a residual.
_STOP, _ZERO, _GOOD, _MOST = 8, 4, 24, 50

# A second orthogonalisation is due where the first takes more than half of the square of a vector.
_FELL = 0.71

# A Ritz vector is not kept over a restart if its part of rho is above this many times its value:
# its u would be lost in rounding errors.
_STEEP = 100

CHECK_STEPS = 32
CHECK_FAILURE = 1e-3
# Steps after which the check looks at its Ritz values. It goes on after CHECK_STEPS only while the
# largest one is within its residual of what was found: of a close cluster some may be missed.
_LOOKS = (8, 16, *range(CHECK_STEPS, 9 * CHECK_STEPS, 8))

_FAR_APART = 0.9  # least pivot of a Cholesky decomposition that gives orthonormal vectors

# Ritz vectors are left out of the check if their residual is less than this part of the distance of
# their value to the smallest one found; at most so many.
_NEAR, _MOST_OTHERS, _HIDDEN = 1e-3, 100, 1e-4

_CORRECTIONS = 4  # products with A and its adjoint, to correct vectors
_RUNS = 3  # first runs, each to smaller residuals

# The relative gap that a Cholesky decomposition is to certify, if its rounding errors, in units of
# n eps s1^2, allow it.
_ETA, _ROUNDING = 1e-6, 8


def check_gap(order):
    """No value above (1 + gap) s_k is missed, but with probability CHECK_FAILURE.

    Theorem 4.2 of Kuczynski and Wozniakowski: after q steps the largest eigenvalue of A^H A of this
    order is found to the part epsilon, but with probability 1.648 sqrt(order)
    exp(-sqrt(epsilon) (2 q - 1)). Up to a hundred other vectors, each orthogonal to a missed one
    but for the part _NEAR, hide no more than _HIDDEN of it.
    """
    if order <= CHECK_STEPS:
        return _HIDDEN
    root = math.log(1.648 * math.sqrt(order) / CHECK_FAILURE) / (2 * CHECK_STEPS - 1)
    return 1 / math.sqrt(1 - root**2) - 1 + _HIDDEN


class Process:
    """The relations above, from a start, orthogonal to known vectors.

    known (n x j) has orthonormal columns. largest: an estimate of s1, which may grow.
    """

    def __init__(self, matrix, known, start, rng, largest=0.0):
        self.matrix, self.rng, self.largest = matrix, rng, largest
        self.eps = _space.EPS[matrix.dtype.name]
        self.known, self.size, self.steps = known.shape[1], 0, 0
        n = matrix.shape[1]
        self._V = np.empty((n, min(n, self.known + 64)), matrix.dtype, order="F")
        self._V[:, : self.known] = known
        x, norm = _orthogonalised(start, known)
        x = x / norm if norm > math.sqrt(self.eps) else self._fresh(known)
        self._V[:, self.known] = x
        self._begin(np.zeros(0), np.zeros(0))

    def _begin(self, values, rho):
        self._kept = values, rho
        self._d, self._e = [], []

    @property
    def _end(self):
        return self.known + self.size

    @property
    def is_complete(self):
        """V has all vectors that are orthogonal to the known ones."""
        return self._end == self._V.shape[0]

    @property
    def _tiny(self):
        return _ZERO * self.eps * self.largest

    def expand(self, size):
        """Steps until V has `size` columns, or is complete."""
        while self.size < size and not self.is_complete:
            self._step()

    def _step(self):
        x = self._V[:, self._end]
        alpha, y = self._left(x)
        self.size += 1
        self.steps += 1
        beta = 0.0
        self._d.append(alpha)
        if not self.is_complete:
            self._reserve()
            V = self._V[:, : self._end]
            following = None
            if alpha:
                y, beta = _orthogonalised(y - alpha * x, V)
                _check_finite(beta)
                self.largest = max(self.largest, beta)
                following = y / beta if beta > self._tiny else None
            if following is None:
                beta, following = 0.0, self._fresh(V)
            self._V[:, self._end] = following
        self._e.append(beta)

    def _left(self, x):
        """alpha = |u| of u = A x - gamma u, and A^H u / alpha. The matrix keeps u."""
        gamma = 0.0
        if self._d:
            gamma = self._e[-1] / self._d[-1] if self._d[-1] else 0.0
        elif len(self._kept[0]):
            values, rho = self._kept
            weights = rho / np.where(values > self._tiny, values, np.inf)
            x = x - self._V[:, self.known : self._end] @ weights.astype(x.dtype)
        square, y = self.matrix.step(x, gamma)
        _check_finite(square)
        alpha = math.sqrt(max(square, 0.0))
        self.largest = max(self.largest, alpha)
        if alpha <= self._tiny:
            return 0.0, None
        # x^H A^H u is |u|^2, as u is orthogonal to the one before.
        if not abs(np.vdot(x, y) - square) <= math.sqrt(self.eps) * self.largest**2:
            _check_finite(y)
            raise LinAlgError(
                "the products of A do not belong together: rmatvec is not that of the adjoint "
                "matrix, or A changes between calls"
            )
        return alpha, y / alpha

    def _fresh(self, V):
        """A random vector orthogonal to V, of length 1."""
        x = random_vector(self.rng, V.shape[0], V.dtype)
        for _ in range(3):  # little may be left of it where V has nearly all vectors
            x = x - V @ _product(V, x)
            x /= np.linalg.norm(x)
        return x

    def _reserve(self):
        """Makes room for the next column."""
        n, width = self._V.shape
        if self._end == width:
            V = np.empty((n, min(n, width * 3 // 2 + 1)), self._V.dtype, order="F")
            V[:, :width] = self._V
            self._V = V

    # ---- the projected problem ----

    def ritz(self, count):
        """The largest Ritz values s, predicted residuals with their signs, and Q.

        B = P diag(s) Q, and A^H U P has the residuals beta P_last. At least `count` are computed,
        if B has as many.
        """
        if len(self._kept[0]) == 0:
            part = {"select": "i", "select_range": (0, min(count, self.size) - 1)}
            P, s, Q = bidiagonal_svd(self._d, self._e[:-1], device="cpu", **part)
        else:
            # Its rounding errors add up over restarts, and "jacobi" has the least.
            P, s, Q = dense_svd(self._projected(), method="jacobi", device="cpu")
        self.largest = max(self.largest, float(s[0]))
        return s, self._e[-1] * P[-1], Q

    def _projected(self):
        values, rho = self._kept
        kept = len(values)
        B = np.diag(np.concatenate([values, self._d]))
        B[:kept, kept] = rho
        tail = np.arange(kept, self.size - 1)
        B[tail, tail + 1] = self._e[:-1]
        return B

    def vectors(self, Q):
        """The Ritz vectors of these rows of Q."""
        return self._V[:, self.known : self._end] @ Q.T.astype(self._V.dtype)

    def restart(self, s, tails, Q):
        """Goes on from these Ritz vectors."""
        x = self._V[:, self._end].copy()
        V = self.vectors(Q)
        self.size = len(s)
        self._V[:, self.known : self._end] = V
        self._V[:, self._end] = x
        self._begin(s, tails)


def _product(V, X):
    """V^H X without a conjugate copy of V."""
    return (X.conj().T @ V).conj().T


def _orthogonalised(y, V):
    """What y has outside of V, and its norm; 0: nothing but rounding errors."""
    before = np.linalg.norm(y)
    for _ in range(3):
        y = y - V @ _product(V, y)
        norm = np.linalg.norm(y)
        if not norm <= _FELL * before:
            return y, float(norm)
        before = norm
    return y, 0.0


def _check_finite(x):
    if not np.isfinite(x).all():
        raise LinAlgError("a product with A holds NaN or infinity")


class Budget:
    """The steps that all processes of a call may take."""

    def __init__(self, most):
        self.most, self.steps, self.restarts = most, 0, 0

    def spend(self, process, size):
        """Expands the basis, by no more steps than are left."""
        before, left = process.steps, self.most - self.steps
        process.expand(min(size, process.size + left))
        self.steps += process.steps - before
        if process.size < size and not process.is_complete:
            raise LinAlgError(f"no convergence within {self.most} steps; maxiter allows more")


def run(process, wanted, looked, first, most, target, budget):
    """Steps and restarts until the residuals of the largest Ritz values are predicted to be small.

    wanted: how many are to converge; `looked` are computed. first: columns before the first look.
    most: columns of V before a restart. target: of residuals, over s1. Returns the Ritz values, the
    predicted residuals and Q, of the wanted ones at least.
    """
    size, seen = first, None
    while True:
        size = min(size, most)
        budget.spend(process, size)
        full = process.size >= most
        s, tails, Q = process.ritz(max(looked, most // 2) if full else looked)
        residuals = abs(tails)
        worst = float(residuals[:wanted].max())
        if worst <= target * process.largest or process.is_complete:
            return s, residuals, Q
        if full:
            zero = residuals <= _ZERO * process.eps * process.largest
            steep = np.flatnonzero((residuals > _STEEP * s) & ~zero)
            keep = min(len(s), wanted + (most - wanted) // 3, *steep[:1])
            if keep < wanted:  # these would be lost by a restart now
                most = most * 3 // 2
                continue
            process.restart(s[:keep], np.where(zero, 0, tails)[:keep], Q[:keep])
            budget.restarts += 1
            size, seen = most, None
        else:
            size, seen = _next_size(process.size, worst / process.largest, target, seen)


def _next_size(size, worst, target, seen):
    """Where to look next: by the slope of the logarithm of the residual, once there is one."""
    here = size, math.log10(max(worst, 1e-300))
    step = max(8, size // 8)
    if seen is not None and here[1] < seen[1] - 0.3:
        slope = (seen[1] - here[1]) / (here[0] - seen[0])
        step = int(max(4, min(0.9 * (here[1] - math.log10(target)) / slope, size // 5)))
    return size + step, here


# ---- triplets ----


def triplets(matrix, V, good, largest):
    """U, s, V and the computed residuals of the subspace of V, by products with A.

    Rayleigh-Ritz: A V = U diag(s) Q. Where A^H U is not V diag(s) yet, it is a better V: it is
    V after a step of subspace iteration.
    """
    for attempt in range(_CORRECTIONS):
        W = matrix.times(V)
        _check_finite(W)
        Q, R = _qr(W)
        P, s, Qh = dense_svd(R, device="cpu")
        U, V, W = Q @ P, V @ Qh.conj().T, W @ Qh.conj().T
        Z = matrix.adjoint_times(U)
        _check_finite(Z)
        sides = [np.linalg.norm(x, axis=0) for x in (W - U * s, Z - V * s)]
        residuals = np.maximum(*sides)
        if attempt == _CORRECTIONS - 1 or residuals.max() <= good * max(float(s[0]), largest):
            break
        V = _qr(Z)[0]
    return U, s, V, residuals


def _qr(X):
    """QR by the Cholesky decomposition of the Gram matrix, where the columns of X are nearly
    orthogonal, as converged vectors are: its errors grow with the square of their condition
    (Yamamoto et al. 2015). Of 63,681 x 50 it took a third of the time of reflectors.
    """
    lengths = np.linalg.norm(X, axis=0)
    if X.shape[1] and lengths.min() > 0:
        found = _by_cholesky(X / lengths)
        if found is not None:
            return found[0], found[1] * lengths
    Q, R = np.linalg.qr(X)
    found = _by_cholesky(Q)  # reflectors of columns that depend on each other leave 40 eps
    return (Q, R) if found is None else (found[0], found[1] @ R)


def _by_cholesky(X):
    """QR of columns of length 1; None: they are too close to each other."""
    try:
        R = np.linalg.cholesky(_product(X, X)).conj().T
    except LinAlgError:
        return None
    if np.diagonal(R).real.min(initial=1) <= _FAR_APART:
        return None
    Q = X @ np.linalg.inv(R)
    lengths = _lengths(Q)
    return Q / lengths, R * lengths[:, None]


def _lengths(X):
    """The norms of columns, summed in pairs: of equal entries all rounding errors of the sums that
    make a Gram matrix may have one sign.
    """
    X = np.ascontiguousarray(X.T)
    return np.sqrt(np.sum(X.real**2 + X.imag**2 if np.iscomplexobj(X) else X * X, axis=1))


def _outside(X, V):
    """Those columns of X that have their greater part outside of V, orthonormal to it."""
    if V.shape[1] == 0:
        return X
    X = X - V @ _product(V, X)
    Q, R = np.linalg.qr(X[:, np.linalg.norm(X, axis=0) > 0.5])
    X = Q[:, abs(np.diagonal(R)) > 0.5]
    return _qr(X - V @ _product(V, X))[0]


class Found:
    """The k largest triplets found so far, and what else is known of the right vectors."""

    def __init__(self, matrix, k, target):
        self.matrix, self.k, self.target = matrix, k, target
        self.eps = _space.EPS[matrix.dtype.name]
        n = matrix.shape[1]
        self.V = self.others = np.empty((n, 0), matrix.dtype)
        self.U = np.empty((matrix.shape[0], 0), matrix.dtype)
        self.s = self.residuals = np.zeros(0, matrix.dtype.type(0).real.dtype)

    @property
    def scale(self):
        """What errors of the values are relative to."""
        return max(float(self.s[0]), self.matrix.rounding)

    def threshold(self, more):
        """A value above it is one that was missed, and no rounding error.

        more: values that are not taken in yet.
        """
        noise = max(2 * self.target, 32 * self.eps) * self.scale
        return float(np.sort(np.concatenate([self.s, more]))[-self.k]) + noise

    def merge(self, V):
        """Takes right vectors in, and keeps the triplets of the k largest values."""
        V = _qr(np.hstack([self.V, V]))[0]
        good = max(self._in_eps(_GOOD), self.target)
        U, s, V, residuals = triplets(self.matrix, V, good, self.matrix.rounding)
        k = self.k
        self.U, self.s, self.V, self.residuals = U[:, :k], s[:k], V[:, :k], residuals[:k]
        self.others = V[:, k:]

    def is_good(self):
        most = max(self._in_eps(_MOST), self.matrix.biased * self.eps, self.target)
        return bool((self.residuals <= most * self.scale).all())

    def _in_eps(self, residual):
        return max(residual, math.sqrt(self.matrix.summed)) * self.eps


def leading(matrix, k, target, rng, start, budget, check):
    """The k largest triplets, as `Found`; and how many of them the check found."""
    found = Found(matrix, k, target)
    _first_run(found, rng, start, budget)
    return found, _repaired(found, rng, budget) if check == "probabilistic" else 0


def _repaired(found, rng, budget):
    """Takes in what was missed, until a check finds nothing; how much that was."""
    missed = _missed(found, rng, budget)
    if missed.shape[1]:
        found.merge(missed)
        _require_good(found)
    return missed.shape[1]


def certified(A, found, rng, budget):
    """Takes in what was missed, until a Cholesky decomposition shows that nothing else is; returns
    eta, and how much that was.
    """
    complete, eta = _is_certified(A, found)
    if complete:
        return eta, 0
    repaired = _repaired(found, rng, budget)
    complete, eta = _is_certified(A, found)
    if not complete:
        raise LinAlgError(
            f"a Cholesky decomposition does not confirm that no value above s_k (1 + {eta:.0e}) "
            'was missed, but none is found: check="probabilistic" may do'
        )
    return eta, repaired


def _is_certified(A, found):
    """Whether s_k^2 (1 + eta)^2 - (A^H A - V S^2 V^H) is positive definite, and eta.

    eta is above the rounding errors of that matrix, and what the residuals of the triplets add.
    """
    A, V, s = (_space.wide(x) for x in (A, found.V, found.s))
    if s[-1] == 0:
        return False, math.inf
    errors = _ROUNDING * A.shape[1] * _space.eps_of(A) + 4 * found.residuals.max() / s[0]
    eta = float(max(_ETA, errors * (s[0] / s[-1]) ** 2))
    if eta >= 1:
        return False, eta
    gram = (V * s**2) @ V.conj().T - _product(A, A)
    gram[np.diag_indices_from(gram)] += (s[-1] * (1 + eta)) ** 2
    try:
        np.linalg.cholesky(gram)
    except LinAlgError:
        return False, eta
    return True, eta


def _require_good(found):
    if not found.is_good():
        worst = float((found.residuals / found.scale).max())
        raise LinAlgError(
            f"computed residuals are {worst:.1e} times the largest value: the products of A are "
            "not exact enough, not those of one matrix, or A changes between calls"
        )


def _capacity(matrix, k):
    """Columns of V before a restart: more where products cost more than orthogonalisation."""
    n = matrix.shape[1]
    return min(n, max(4 * k + 32, 2 * matrix.entries // n))


def _first_run(found, rng, start, budget):
    matrix, k = found.matrix, found.k
    process = Process(matrix, found.V, start, rng, matrix.rounding)
    target, most = max(found.target / 2, _STOP * found.eps), _capacity(matrix, k)
    first = k + k // 2 + 16
    for _ in range(_RUNS):
        s, residuals, Q = run(process, k, k + k // 4 + 8, first, most, target, budget)
        found.V = found.V[:, :0]
        found.merge(process.vectors(Q[:k]))
        if found.is_good() or process.is_complete:
            break
        target, first = target / 8, process.size + 8
    _require_good(found)
    # Ritz vectors that are known well enough widen the gap below what the check looks for.
    distance = np.maximum(_NEAR * (float(found.s[-1]) - s), target * found.scale)
    unknown = np.flatnonzero(residuals[k:] > distance[k:])
    count = min(k // 4 + 8, _MOST_OTHERS, len(s) - k, *unknown[:1])
    found.others = process.vectors(Q[k : k + count])


def _comes_above(process, least, budget):
    """Whether a Ritz value comes out above `least`."""
    for size in _LOOKS:
        budget.spend(process, size)
        s, tails, _ = process.ritz(1)
        if s[0] > least:
            return True
        if size >= CHECK_STEPS and s[0] + abs(tails[0]) <= least:
            break
    return False


def _missed(found, rng, budget):
    """Right vectors of all values that the check finds above the smallest one found."""
    matrix, values = found.matrix, []
    n = matrix.shape[1]
    target, most = max(found.target / 2, _STOP * found.eps), _capacity(matrix, found.k)
    missed = np.empty((n, 0), matrix.dtype)
    while found.k + missed.shape[1] < n:
        known = np.hstack([found.V, missed])
        others = _outside(found.others, missed)[:, : n - known.shape[1] - 1]
        start = random_vector(rng, n, matrix.dtype)
        process = Process(matrix, np.hstack([known, others]), start, rng, found.scale)
        least = found.threshold(values)
        if not _comes_above(process, least, budget):
            break
        # The others are not vectors of A to the last digit: it converges without them.
        start = process.vectors(process.ritz(1)[2])[:, 0]
        process = Process(matrix, known, start, rng, found.scale)
        s, residuals, Q = run(process, 1, 8, 16, most, target, budget)
        enough = (s > least) & (residuals <= target * process.largest)
        count = max(int(np.argmin([*enough, False])), 1)
        values += list(s[:count])
        missed = np.hstack([missed, process.vectors(Q[:count])])
    return missed
