"""One bidiagonal matrix over the processes of MPI, each of which has a slab of its vectors.

    mpiexec -n 4 python -m mpi4py examples/mpi_slabs.py          # of order 2,000
    mpiexec -n 4 python -m mpi4py examples/mpi_slabs.py B.npz    # with the arrays d and e

With `-m mpi4py` all processes end where one fails.

Each process keeps its columns of L and rows of R: of order 100,000 these are 80 GB a side over the
number of processes. It takes the GPU of its number on its computer, if there are any. Process 0
gets all values.

All processes must take the same method, or the vectors of close values in two slabs would not be
orthogonal. That is "twisted" where it takes the values of every slab, and else "dc".
"""

import os
import sys

import numpy as np
from mpi4py import MPI

import tsvd

PROBES = 8


def place(comm):
    """The device and the threads of this process: those of a computer are shared out."""
    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    gpus = [found.device for found in tsvd.devices() if found.device != "cpu"]
    return {
        "device": gpus[here.rank % len(gpus)] if gpus else "cpu",
        "threads": max(os.cpu_count() // here.size, 1),
    }


def slab(comm, d, e, **options):
    """L, s and R of the values of this process, and the method of all."""
    first, end = (len(d) * i // comm.size for i in (comm.rank, comm.rank + 1))
    options |= {"select": "i", "select_range": (first, end - 1)}
    try:
        found = tsvd.svd(d, e, method="twisted", tuning={"fallback": 0}, **options)
    except np.linalg.LinAlgError:  # the values are too close for it
        found = None
    if comm.allreduce(found is not None, MPI.LAND):
        return found, "twisted"
    return tsvd.svd(d, e, method="dc", **options), "dc"


def errors(comm, d, e, L, s, R):
    """How far L s R is from B, and L L^T and R^T R from I, by products with random vectors."""
    X = np.random.default_rng(0).standard_normal((len(d), PROBES))
    sums = np.stack([L @ (s[:, None] * (R @ X)), L @ (L.T @ X), R.T @ (R @ X)])
    comm.Allreduce(MPI.IN_PLACE, sums)
    BX = d[:, None] * X
    BX[:-1] += e[:, None] * X[1:]
    scale = comm.allreduce(s.max(), MPI.MAX)
    size = np.linalg.norm(X)
    return [
        np.linalg.norm(found - right) / (size * unit)
        for found, right, unit in zip(sums, (BX, X, X), (scale, 1, 1), strict=True)
    ]


def main():
    comm = MPI.COMM_WORLD
    if len(sys.argv) > 1:
        d, e = (np.load(sys.argv[1])[name] for name in "de")
    else:
        d, e = np.ones(2000), np.ones(1999)
    n = len(d)
    if n < comm.size:
        sys.exit("the matrix has fewer values than there are processes")

    where = place(comm)
    (L, s, R), method = slab(comm, d, e, **where)
    values = comm.gather(s)
    devices = comm.gather(where["device"])
    found = errors(comm, d, e, L, s, R)
    if comm.rank == 0:
        s = np.concatenate(values)
        print(f"{n} values from {s[0]:.6g} to {s[-1]:.6g}, by {method!r} on {', '.join(devices)}")
        print("residual, loss of orthogonality of L and of R, in n eps:", end=" ")
        print(*(f"{error / (n * np.finfo(float).eps):.2g}" for error in found))
        assert len(s) == n and (np.diff(s) <= 0).all()
    return bool(max(found) > 4 * n * np.finfo(float).eps)


if __name__ == "__main__":
    sys.exit(main())
