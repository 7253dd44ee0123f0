"""Leading singular triplets by Golub-Kahan-Lanczos, and the check that none was missed.

    A V = U B,   A^H U = V B^H + X S E^H

V (n x l) has orthonormal columns, and so has X, the next block of w columns. B is upper triangular
with two block diagonals, E has the last w columns of the unit matrix. V is kept and orthogonalised
anew; U is not, and of it only the last block is needed (Simon and Zha 2000). So a step with w = 1
reads A once: u = A v - gamma u and A^H u come from one pass over the rows.

A restart keeps Ritz vectors, V Q, and B = [diag(s) rho; 0 ...] (Wu and Simon 2000; Baglama and
Reichel 2005). The u that follows is A x - U rho with U = A V diag(1 / s), so it is A times
x - V diag(1 / s) rho: U is not needed here either.

The check starts from a random vector orthogonal to what was found. A Ritz value above the smallest
value found shows that one was missed (Kuczynski and Wozniakowski 1992 say how surely).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.linalg import LinAlgError

from . import _space
from ._api import svd as bidiagonal_svd
from ._dense import svd as dense_svd
from ._operators import random_block

# In units of eps s1: predicted residuals where a run stops, what counts as zero, and computed
# residuals from which on vectors are corrected. `limit` has the largest that is returned.
_STOP, _ZERO, _GOOD = 8, 4, 24

# A second orthogonalisation is due where the first takes more than half of the square of a vector.
_FELL = 0.71

# A Ritz vector is not kept over a restart if its row of rho is above this many times its value:
# its u would be lost in rounding errors.
_STEEP = 100

CHECK_STEPS = 32
CHECK_FAILURE = 1e-3
_WIDEST = 16  # the block that looks for many copies at once
_CORRECTIONS = 4

# The relative gap that a Cholesky decomposition is to certify, if its rounding errors, in units of
# n eps s1^2, allow it.
_ETA, _ROUNDING = 1e-6, 8
_RUNS = 3


def limit(shape):
    """The largest computed residual, in units of eps s1.

    A sum of very many numbers has errors of its own.
    """
    return max(50, math.sqrt(max(shape)) / 2)


def check_gap(order):
    """No value above (1 + gap) s_k is missed, but with probability CHECK_FAILURE.

    Theorem 4.2 of Kuczynski and Wozniakowski: after q steps the largest eigenvalue of A^H A of this
    order is found to the part epsilon, but with probability 1.648 sqrt(order)
    exp(-sqrt(epsilon) (2 q - 1)).
    """
    root = math.log(1.648 * math.sqrt(max(order, 1)) / CHECK_FAILURE) / (2 * CHECK_STEPS - 1)
    if order <= CHECK_STEPS:
        return 0.0
    return 1 / math.sqrt(1 - root**2) - 1 if root < 1 else math.inf


class Process:
    """The relations above, from a block of starts, orthogonal to known vectors.

    known (n x j) has orthonormal columns. largest: an estimate of s1, which may grow.
    """

    def __init__(self, matrix, known, starts, rng, largest=0.0):
        self.matrix, self.rng, self.largest = matrix, rng, largest
        self.eps = _space.EPS[matrix.dtype.name]
        self.known, self.size, self.steps, self.restarts = known.shape[1], 0, 0, 0
        n = matrix.shape[1]
        self.width = min(starts.shape[1], n - self.known)
        self._V = np.empty((n, min(n, self.known + 64)), matrix.dtype, order="F")
        self._reserve(self.known + self.width)
        self._V[:, : self.known] = known
        X, _ = self._next_block(starts, math.sqrt(self.eps), self.known)
        self._V[:, self.known : self.known + self.width] = X
        self._kept = np.zeros(0), np.zeros((0, self.width), matrix.dtype)
        self._blocks = []  # pairs R, S
        self._gamma = self._U = None

    @property
    def basis(self):
        return self._V[:, self.known : self.known + self.size]

    @property
    def room(self):
        """How many vectors there are outside of known, V and X."""
        return self._V.shape[0] - self.known - self.size - self.width

    @property
    def is_complete(self):
        """V has all vectors that are orthogonal to the known ones."""
        return self.width == 0

    def expand(self, size):
        """Steps until V has `size` columns, or is complete."""
        while self.size < size and not self.is_complete:
            self._step()

    def _step(self):
        end = self.known + self.size + self.width
        X = self._V[:, end - self.width : end]
        R, Y = self._left(X)
        self.steps += 1
        self.size += self.width
        Y = Y - X @ R.conj().T
        width, self.width = self.width, 0  # X is a part of V now
        room, self.width = self.room, min(width, self.room)
        self._reserve(end + self.width)
        if room == 0:
            S = np.zeros((0, width), self._V.dtype)
        else:
            following, S = self._next_block(Y, self._tiny, end)
            self._V[:, end : end + self.width] = following
        self._blocks.append((R, S))
        self._gamma = S.conj().T

    @property
    def _tiny(self):
        return _ZERO * self.eps * self.largest

    # ---- the left half of a step ----

    def _left(self, X):
        """R and A^H U of the new block U: A X = U_before gamma + U R."""
        values, rho = self._kept
        after_restart = not self._blocks
        if after_restart and len(values):
            divisor = np.where(values > self._tiny, values, np.inf)
            X = X - self.basis @ (rho / divisor[:, None]).astype(X.dtype)
        if X.shape[1] == 1:
            return self._left_of_one(X[:, 0], after_restart)
        U = self.matrix.times(X)
        if not after_restart:
            U = U - self._U @ self._gamma
        _check_finite(U)
        Q, R = np.linalg.qr(U)
        self.largest = max(self.largest, np.linalg.norm(R, axis=0).max())
        zero = np.linalg.norm(R, axis=1) <= self._tiny
        R[zero], Q[:, zero] = 0, 0
        self._U = Q
        Y = self.matrix.adjoint_times(Q)
        _check_finite(Y)
        return R, Y

    def _left_of_one(self, x, after_restart):
        """The matrix keeps u as it is, not normalised."""
        gamma = 0.0
        if not after_restart:
            before = self._blocks[-1][0][0, 0].real
            gamma = float(self._gamma[0, 0].real / before) if before else 0.0
        square, y = self.matrix.step(x, gamma)
        _check_finite(square)
        alpha = math.sqrt(max(square, 0.0))
        self.largest = max(self.largest, alpha)
        if alpha <= self._tiny:
            return np.zeros((1, 1), x.dtype), np.zeros((len(x), 1), x.dtype)
        _check_finite(y)
        self._check_adjoint(x, square, y)
        return np.full((1, 1), alpha, x.dtype), (y / alpha)[:, None]

    def _check_adjoint(self, x, square, y):
        """x^H A^H u is |u|^2, as u is orthogonal to the one before."""
        if not abs(np.vdot(x, y) - square) <= math.sqrt(self.eps) * self.largest**2:
            raise LinAlgError(
                "the products of A do not belong together: rmatvec is not that of the adjoint "
                "matrix, or A changes between calls"
            )

    # ---- the right half ----

    def _next_block(self, Y, tiny, end):
        """Orthonormal columns X and S with Y = X S + V (...), as many as `width` says.

        V: the first columns, up to `end`. Where Y has nothing outside of them, X is random there
        and S is zero.
        """
        V = self._V[:, :end]
        if Y.shape[1] == 1:
            y, norm = _orthogonalised(Y[:, 0], V)
            if norm > tiny:
                return (y / norm)[:, None], np.full((1, 1), norm, Y.dtype)
            return self._fresh(V, 1), np.zeros((1, 1), Y.dtype)
        Y = Y - V @ _product(V, Y)
        Y = Y - V @ _product(V, Y)
        Q, R = np.linalg.qr(Y)
        P, s, Qh = np.linalg.svd(R)
        X, S = (Q @ P)[:, : self.width], (s[:, None] * Qh)[: self.width].astype(Y.dtype)
        good = s[: self.width] > tiny
        if not good.all():
            X, S = X[:, good], S * good[:, None]
            missing = self._fresh(np.hstack([V, X]), self.width - X.shape[1])
            X = np.hstack([X, missing])
        X = X - V @ _product(V, X)  # small columns had lost it
        Q, R = np.linalg.qr(X)
        return Q * np.where(np.diagonal(R).real < 0, -1, 1), S

    def _fresh(self, V, count):
        """Random columns, orthonormal to each other and to V."""
        X = random_block(self.rng, V.shape[0], count, V.dtype)
        for _ in range(3):  # little may be left of them where V has nearly all vectors
            X = np.linalg.qr(X - V @ _product(V, X))[0]
        return X

    def _reserve(self, columns):
        if columns > self._V.shape[1]:
            wider = min(self._V.shape[0], max(columns, self._V.shape[1] * 3 // 2))
            V = np.empty((self._V.shape[0], wider), self._V.dtype, order="F")
            end = self.known + self.size + self.width
            V[:, : min(end, self._V.shape[1])] = self._V[:, :end]
            self._V = V

    # ---- the projected problem ----

    def ritz(self, count):
        """The largest Ritz values, S P_last, whose columns have the norms of residuals, and Q.

        B = P diag(s) Q. At least `count` are computed, if B has as many.
        """
        count = min(count, self.size)
        if len(self._kept[0]) == 0 and self._blocks[0][0].shape == (1, 1):
            d = np.array([R[0, 0].real for R, _ in self._blocks], float)
            e = np.array([abs(S[0, 0]) for _, S in self._blocks[:-1]], float)
            part = {"select": "i", "select_range": (0, count - 1)}
            P, s, Q = bidiagonal_svd(d, e, device="cpu", **part)
        else:
            P, s, Q = dense_svd(self._projected(), device="cpu")
        S = self._blocks[-1][1]
        self.largest = max(self.largest, float(s[0]))
        return s, S @ P[self.size - S.shape[1] :], Q

    def _projected(self):
        values, rho = self._kept
        B = np.zeros((self.size, self.size), np.result_type(self._V.dtype, np.float64))
        first = len(values)
        B[range(first), range(first)] = values
        above, coupling = slice(0, first), rho
        for R, S in self._blocks:
            here = slice(first, first + R.shape[1])
            B[above, here] = coupling
            B[here, here] = R
            above, coupling, first = here, S.conj().T, here.stop
        return B

    def vectors(self, Q):
        """The Ritz vectors of these rows of Q."""
        return self.basis @ Q.conj().T.astype(self._V.dtype)

    def restart(self, s, tails, Q):
        """Goes on from these Ritz vectors."""
        count, width = len(s), self.width
        end = self.known + self.size
        X = self._V[:, end : end + width].copy()
        self._V[:, self.known : self.known + count] = self.vectors(Q)
        self._V[:, self.known + count : self.known + count + width] = X
        self._kept = s, tails.conj().T
        self._blocks, self._gamma, self._U = [], None, None
        self.size = count
        self.restarts += 1


def _product(V, X):
    """V^H X without a conjugate copy of V."""
    return (X.conj().T @ V).conj().T


def _orthogonalised(y, V):
    """What y has outside of V, and its norm; 0: nothing but rounding errors."""
    before = np.linalg.norm(y)
    for _ in range(3):
        y = y - V @ _product(V, y)
        norm = np.linalg.norm(y)
        if norm > _FELL * before:
            return y, float(norm)
        before = norm
    return y, 0.0


def _check_finite(x):
    if not np.isfinite(x).all():
        raise LinAlgError("a product with A holds NaN or infinity")


class Budget:
    """The steps that all processes of a call may take."""

    def __init__(self, most):
        self.left = self.most = most
        self.steps = self.restarts = 0

    def spend(self, process, size):
        """Expands the basis, by no more steps than are left."""
        before = process.steps
        most = process.size + self.left * max(process.width, 1)
        process.expand(min(size, most))
        self.steps += process.steps - before
        self.left -= process.steps - before
        if self.left <= 0 and process.size < size and not process.is_complete:
            raise LinAlgError(f"no convergence within {self.most} steps; maxiter allows more")


def run(process, wanted, looked, first, most, target, budget):
    """Steps and restarts until the residuals of the largest Ritz values are predicted to be small.

    wanted(s): how many of the Ritz values s are to converge, of which `looked` are computed. first:
    columns before the first look. most: columns of V before a restart. target: of residuals, over
    s1. Returns the Ritz values, the predicted residuals and Q, of the wanted ones at least.
    """
    size, seen = first, None
    while True:
        size = min(size, most)
        budget.spend(process, size)
        full = process.size >= most
        s, tails, Q = process.ritz(max(looked, most // 2) if full else looked)
        residuals = np.linalg.norm(tails, axis=0)
        count = wanted(s)
        worst = float(residuals[:count].max()) / max(process.largest, 1e-300)
        if worst <= target or process.is_complete:
            return s, residuals, Q
        if full:
            keep = min(len(s), count + (most - count) // 3, most - 3 * process.width)
            steep = np.flatnonzero(residuals > _STEEP * np.maximum(s, 1e-300))
            steep = steep[residuals[steep] > _STOP * process.eps * process.largest]
            keep = min(keep, int(steep[0])) if len(steep) else keep
            if keep < count:  # the wanted ones are lost by a restart now
                most = most * 3 // 2
                continue
            settled = residuals <= _ZERO * process.eps * process.largest
            process.restart(s[:keep], np.where(settled, 0, tails)[:, :keep], Q[:keep])
            budget.restarts += 1
            size, seen = most, None
            continue
        size, seen = _next_size(process.size, worst, target, seen)


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
        Q, R = np.linalg.qr(W)
        P, s, Qh = dense_svd(R, device="cpu")
        U, V, W = Q @ P, V @ Qh.conj().T, W @ Qh.conj().T
        Z = matrix.adjoint_times(U)
        _check_finite(Z)
        sides = [np.linalg.norm(x, axis=0) for x in (W - U * s, Z - V * s)]
        residuals = np.maximum(*sides)
        if attempt == _CORRECTIONS - 1 or residuals.max() <= good * max(float(s[0]), largest):
            break
        V = np.linalg.qr(Z)[0]
    return U, s, V, residuals


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

    @property
    def threshold(self):
        """A value above it is one that was missed, and no rounding error."""
        noise = max(2 * self.target, 32 * self.eps) * self.scale
        return float(self.s[-1]) + noise

    def merge(self, V):
        """Takes right vectors in, and keeps the triplets of the k largest values."""
        V = np.linalg.qr(np.hstack([self.V, V]))[0]
        good = max(_GOOD * self.eps, self.target)
        U, s, V, residuals = triplets(self.matrix, V, good, self.matrix.rounding)
        k = self.k
        self.U, self.s, self.V, self.residuals = U[:, :k], s[:k], V[:, :k], residuals[:k]
        self._set_others(np.hstack([V[:, k:], self.others]))

    def _set_others(self, X):
        """Only what is orthogonal to V is of use."""
        room = self.V.shape[0] - self.V.shape[1]
        X = X - self.V @ _product(self.V, X)
        X = X[:, np.linalg.norm(X, axis=0) > 0.5]
        Q, R = np.linalg.qr(X)
        X = Q[:, abs(np.diagonal(R)) > 0.5][:, :room]
        self.others = X - self.V @ _product(self.V, X)

    def is_good(self):
        limit_here = max(limit(self.matrix.shape) * self.eps, self.target)
        return bool((self.residuals <= limit_here * self.scale).all())


def leading(matrix, k, target, rng, start, budget, check):
    """The k largest triplets, as `Found`; and how many of them the check found."""
    found = Found(matrix, k, target)
    _first_run(found, rng, start, budget)
    if check != "probabilistic":
        return found, 0
    return found, _repaired(found, rng, budget, lambda: True)


def _repaired(found, rng, budget, go_on):
    """Takes in what was missed while go_on(), until nothing is found; how much that was."""
    width, repaired = 1, 0
    for _ in range(found.k + 10):
        if not go_on():
            return repaired
        more = missed(found, rng, width, budget)
        if more is None:
            return repaired
        found.merge(more)
        _require_good(found)
        repaired += more.shape[1]
        width = min(2 * width, _WIDEST)
    raise LinAlgError("the check finds values that were missed again and again")


def certified(A, found, rng, budget):
    """Takes in what was missed, until a Cholesky decomposition shows that nothing else is; returns
    eta, and how much that was.
    """
    repaired = _repaired(found, rng, budget, lambda: not _is_certified(A, found)[0])
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


def capacity(matrix, k, width=1):
    """Columns of V before a restart: more where products cost more than orthogonalisation."""
    n = matrix.shape[1]
    return min(n, max(3 * k + 32, 2 * matrix.entries // max(n, 1), 6 * width))


def _first_run(found, rng, start, budget):
    matrix, k = found.matrix, found.k
    nothing = np.empty((matrix.shape[1], 0), matrix.dtype)
    process = Process(matrix, nothing, start, rng)
    target = max(found.target / 2, _STOP * found.eps)
    most = capacity(matrix, k)
    first = min(k + k // 2 + 16, most)
    for _ in range(_RUNS):
        s, residuals, Q = run(process, lambda s: k, k + k // 4 + 8, first, most, target, budget)
        found.V = found.V[:, :0]
        found.merge(process.vectors(Q[:k]))
        if found.is_good() or process.is_complete:
            break
        target, first = target / 8, process.size + 8
    _require_good(found)
    # Ritz vectors that are known well enough widen the gap below what the check looks for.
    distance = np.maximum(0.01 * (float(found.s[-1]) - s), target * found.scale)
    unknown = np.flatnonzero(residuals[k:] > distance[k:])
    count = min(int(unknown[0]) if len(unknown) else len(s) - k, k // 4 + 8)
    if count > 0:
        found._set_others(process.vectors(Q[k : k + count]))


def missed(found, rng, width, budget):
    """Right vectors of values above the smallest one found; None: the check finds none.

    width: of the block that converges what was found. It finds so many copies of a value.
    """
    matrix = found.matrix
    n = matrix.shape[1]
    known = np.hstack([found.V, found.others])
    if known.shape[1] == n:
        known = found.V
    if known.shape[1] == n:
        return None
    process = Process(
        matrix, known, random_block(rng, n, 1, matrix.dtype), rng, found.scale
    )
    for size in (8, 16, CHECK_STEPS):
        budget.spend(process, size)
        s, _, Q = process.ritz(width + 4)
        if s[0] > found.threshold:
            break
    else:
        return None
    count = int((s > found.threshold).sum())
    starts = process.vectors(Q[:count])
    width = max(width, count)
    starts = np.hstack([starts, random_block(rng, n, width - count, matrix.dtype)])
    process = Process(matrix, found.V, starts, rng, found.scale)
    target = max(found.target / 2, _STOP * found.eps)
    most = capacity(matrix, 2 * width, width)
    s, _, Q = run(
        process,
        lambda s: max(int((s > found.threshold).sum()), 1),
        *(2 * width + 8, min(4 * width, most), most, target, budget),
    )
    count = max(int((s[:most] > found.threshold).sum()), 1)
    return process.vectors(Q[:count])
