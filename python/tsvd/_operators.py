"""What a Krylov method needs of a matrix: its products, whatever it is made of.

Each class here has `shape`, `dtype`, `reads`, `times(X)`, `adjoint_times(X)` and `step(v, gamma)`,
and counts how often A is read. X is a vector or a block of columns.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError

from . import _space

# A dense matrix of more bytes than a cache has is read in slabs of rows, which stay in the cache
# for both products of a step: 160 MB took 0.8 times as long. Smaller ones are there anyway.
_CACHE, _SLAB = 1 << 26, 1 << 21

# Sums that a BLAS makes side by side; and entries from which on a sparse row or column goes to it.
_LANES, _LONG = 64, 4096

# Of objects, whose sums are not known, errors are taken to be four times those of random ones.
_UNKNOWN = 16

# An operator without a dtype is asked for a product, and one that is far from 1 is scaled: its
# first product is tried with these powers of two, until it is neither zero nor infinite.
_TRIED = {_space.EPS["float32"]: (0, 60, -60), _space.EPS["float64"]: (0, 500, -500)}


class Products:
    """The products with a matrix of the shape (m, n), and how often it was read for them.

    entries: about how many numbers a product reads. summed: how many numbers it adds, one after
    the other, for one of its own: their rounding errors grow by the root of that.
    rounding: products err by eps times this, where it is more than the norm of the matrix. biased:
    residuals in eps that sums of equal numbers may have, whose rounding errors are of one sign.
    """

    rounding = 0.0
    biased = 0.0

    def __init__(self, shape, dtype, entries, summed):
        self.shape, self.dtype, self.reads = shape, np.dtype(dtype), 0
        self.entries, self.summed = entries, summed
        self._u = None

    def step(self, v, gamma):
        """u = A v - gamma u, with u of the last step; the square of its norm, and A^H u."""
        u = self.times(v)
        if gamma:
            u = u - gamma * self._u
        self._u = u
        return np.vdot(u, u).real, self.adjoint_times(u)


class Dense(Products):
    """A NumPy array."""

    def __init__(self, A):
        super().__init__(A.shape, A.dtype, A.size, max(A.shape) // _LANES)
        self.A = A
        rows = len(A) if A.nbytes <= _CACHE else max(_SLAB // (A.shape[1] * A.itemsize), 1)
        self._slabs = [slice(i, i + rows) for i in range(0, len(A), rows)] if A.size else []

    def times(self, X):
        self.reads += 1
        return self.A @ X

    def adjoint_times(self, X):
        self.reads += 1
        return _adjoint_product(self.A, X)

    def step(self, v, gamma):
        if len(self._slabs) <= 1:
            return super().step(v, gamma)
        self.reads += 1
        u = np.zeros(len(self.A), self.dtype) if self._u is None else self._u
        y = np.zeros(self.shape[1], self.dtype)
        u *= -gamma
        for rows in self._slabs:
            u[rows] += self.A[rows] @ v
            y += _adjoint_product(self.A[rows], u[rows])
        self._u = u
        return np.vdot(u, u).real, y


class Sparse(Products):
    """A sparse matrix of SciPy in compressed rows, or the transpose of one.

    SciPy adds numbers one after the other. So long rows, of the matrix or of its transpose, as of
    the hubs of a graph, are taken out, and the BLAS multiplies them: it adds many side by side.
    """

    def __init__(self, A):
        super().__init__(A.shape, A.dtype, 2 * A.nnz, _LONG // 4)  # entries have indices
        self._A, self._rows = _without_long_rows(A)
        self._transposed, self._columns = _without_long_rows(A.T)
        self.biased = max(map(_longest, (self._A, self._transposed))) / 4

    def times(self, X):
        self.reads += 1
        return _with_rows(self._A @ X, X, self._rows)

    def adjoint_times(self, X):
        self.reads += 1
        X = X.conj()
        return _with_rows(self._transposed @ X, X, self._columns).conj()


def _longest(A):
    """The most entries of a row."""
    return np.diff(A.tocsr().indptr).max(initial=0)


def _without_long_rows(A):
    """A without its long rows, and the number, the indices and the entries of each."""
    coordinates = A.tocoo(copy=False)
    rows, columns, entries = coordinates.row, coordinates.col, coordinates.data
    numbers = np.flatnonzero(np.bincount(rows, minlength=1) > _LONG)
    if len(numbers) == 0:
        return A, []
    found, rest = [], np.ones(len(entries), bool)
    for number in numbers:
        here = np.flatnonzero(rows == number)
        found.append((number, columns[here], entries[here]))
        rest[here] = False
    return type(A)((entries[rest], (rows[rest], columns[rest])), shape=A.shape), found


def _with_rows(Y, X, rows):
    for number, indices, entries in rows:
        Y[number] = entries @ X[indices]
    return Y


def _adjoint_product(A, X):
    """A^H X without a conjugate copy of A."""
    return (A.T @ X.conj()).conj()


class Given(Products):
    """An object of the caller's, by its own products."""

    def __init__(self, A, shape, dtype):
        super().__init__(shape, dtype, 16 * sum(shape), _UNKNOWN * max(shape))
        self.A = A

    def times(self, X):
        return self._product(X, "matvec", "matmat", self.shape)

    def adjoint_times(self, X):
        return self._product(X, "rmatvec", "rmatmat", self.shape[::-1])

    def _product(self, X, of_vector, of_block, shape):
        self.reads += 1
        if X.ndim == 2 and hasattr(self.A, of_block):
            return self._checked(getattr(self.A, of_block)(X), (shape[0], X.shape[1]), of_block)
        if X.ndim == 2:
            self.reads += X.shape[1] - 1
            one = getattr(self.A, of_vector)
            columns = [self._checked(one(x), shape[:1], of_vector) for x in X.T]
            return np.stack(columns, axis=1)
        if not hasattr(self.A, of_vector):
            product = getattr(self.A, of_block)(X[:, None])
            return self._checked(product, (shape[0], 1), of_block)[:, 0]
        return self._checked(getattr(self.A, of_vector)(X), shape[:1], of_vector)

    def _checked(self, product, shape, name):
        """A copy, as the object may use its array again."""
        product = np.asarray(product)
        if product.shape == (*shape, 1):  # SciPy allows columns
            product = product[..., 0]
        if product.shape != shape:
            raise ValueError(f"{name} of A returned shape {product.shape}, not {shape}")
        if product.dtype.kind == "c" and self.dtype.kind != "c":
            raise TypeError(f"{name} of A returned complex numbers, and its dtype is {self.dtype}")
        return np.array(product, self.dtype)


class Stepped(Given):
    """An object that makes a step itself, and keeps u where its rows are."""

    def step(self, v, gamma):
        self.reads += 1
        square, y = self.A.step(v, gamma)
        return float(square), self._checked(y, self.shape[1:], "step")


class Changed(Products):
    """The products of another matrix, with something before and after them."""

    def __init__(self, of, shape=None):
        self._of = of
        super().__init__(shape or of.shape, of.dtype, of.entries, of.summed)

    @property
    def reads(self):
        return self._of.reads

    @reads.setter
    def reads(self, count):
        self._of.reads = count


class Transposed(Changed):
    """The transpose."""

    def __init__(self, of):
        super().__init__(of, of.shape[::-1])

    def times(self, X):
        return self._of.adjoint_times(X.conj()).conj()

    def adjoint_times(self, X):
        return self._of.times(X.conj()).conj()


class Scaled(Changed):
    """A times 2^power, for an A that is far from 1."""

    def __init__(self, of, power):
        super().__init__(of)
        self._halves = power // 2, power - power // 2

    def times(self, X):
        return self._scaled(self._of.times, X)

    def adjoint_times(self, X):
        return self._scaled(self._of.adjoint_times, X)

    def _scaled(self, product, X):
        """Half of the power on both sides of the product: it neither overflows nor underflows."""
        first, second = (self.dtype.type(2.0**half) for half in self._halves)
        return product(X * first) * second


class Centred(Changed):
    """A - left right^T, by two products more: A without the means of its columns, or of its rows.

    left has m numbers and right n.
    """

    def __init__(self, of, left, right):
        super().__init__(of)
        self._left, self._right = left, right
        self.rounding = float(np.linalg.norm(left)) * float(np.linalg.norm(right))

    def times(self, X):
        return self._of.times(X) - np.multiply.outer(self._left, self._right @ X)

    def adjoint_times(self, X):
        part = np.multiply.outer(self._right.conj(), self._left.conj() @ X)
        return self._of.adjoint_times(X) - part


# ---- from what the caller gives ----


def is_sparse(A):
    """Whether A is a matrix or an array of scipy.sparse."""
    return type(A).__module__.startswith("scipy.sparse") and hasattr(A, "tocsr")


def is_operator(A):
    return hasattr(A, "shape") and any(hasattr(A, name) for name in ("matvec", "matmat", "step"))


def refuse_sparse_of_others(A):
    """Sparse arrays of PyTorch, CuPy and JAX, on a device or on the host."""
    module = type(A).__module__
    layout = str(getattr(A, "layout", "torch.strided"))
    if (
        layout != "torch.strided"
        or module.startswith(("cupyx.scipy.sparse", "jax.experimental.sparse"))
        or (module.partition(".")[0] == "sparse" and hasattr(A, "todense"))
    ):
        raise TypeError(
            f"A is a sparse array of {module.partition('.')[0]}: svds takes those of scipy.sparse "
            "on the host, and dense arrays where they lie"
        )


def _check_finite(x):
    if not np.isfinite(x).all():
        raise ValueError("A must not hold NaN or infinity")


def dense(A):
    """An array, scaled by 2^-k if it is far from 1, and k."""
    _check_finite(A)
    A, power = _space.scaled(np, A)
    return A, int(power)


def sparse(A):
    """The same of a sparse matrix, in compressed rows without duplicates."""
    A = A.tocsr()
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    data = _space.computed("A", A.data)
    _check_finite(data)
    scaled, power = _space.scaled(np, data[None])
    if data is not A.data or power:
        A = type(A)((scaled[0] if power else data, A.indices, A.indptr), shape=A.shape)
    return A, int(power)


def operator(A, rng):
    """The products of an object, and k: they are scaled by 2^-k."""
    shape = tuple(int(size) for size in A.shape)
    if len(shape) != 2:
        raise ValueError(f"A must have two dimensions, not the shape {shape}")
    for names in (("matvec", "matmat"), ("rmatvec", "rmatmat")):
        if not any(hasattr(A, name) for name in names):
            raise TypeError(f"A has neither {names[0]} nor {names[1]}")
    if getattr(A, "dtype", None) is None:
        zero = np.zeros((shape[1], 1))
        product = A.matvec(zero[:, 0]) if hasattr(A, "matvec") else A.matmat(zero)
        dtype = np.result_type(np.asarray(product).dtype, np.float64)
    else:
        dtype = np.dtype(A.dtype)
    dtype = _space.computed("A", np.empty(0, dtype)).dtype
    steps = hasattr(A, "step") and shape[0] >= shape[1]
    made = (Stepped if steps else Given)(A, shape, dtype)
    if 0 in shape:
        return made, 0
    power = _power_of(made, rng)
    made.reads = 0
    return (Scaled(made, -power) if power else made), power


def _power_of(made, rng):
    """0 if the entries of the product with a random vector are not far from 1."""
    x = random_vector(rng, made.shape[1], made.dtype)
    for tried in _TRIED[_space.eps_of(x)]:
        product = made.times(x * made.dtype.type(2.0**tried))
        largest = np.max(np.abs(product), initial=0)
        if np.isfinite(largest) and largest > 0:
            power = int(np.frexp(largest)[1]) - tried
            return power if _space.is_far(power, x) else 0
    if not np.isfinite(largest):
        raise LinAlgError("a product with A holds NaN or infinity")
    return 0


def random_vector(rng, n, dtype):
    """Uniform on the unit sphere."""
    x = rng.standard_normal(n)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(n)
    return (x / np.linalg.norm(x)).astype(dtype)
