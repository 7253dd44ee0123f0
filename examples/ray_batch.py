"""A batch of dense matrices over the tasks of Ray, and a check of the results.

    python examples/ray_batch.py 4                        # with four processors of this machine
    RAY_ADDRESS=HOST:6379 python examples/ray_batch.py    # with those of a cluster

A task decomposes a part of the batch, on a GPU of its own if the cluster has any. Ray begins it
anew where a worker is lost. Parts come back in any order, and are put in their places.
"""

import itertools
import sys

import numpy as np
import ray

from tsvd import linalg

COUNT, ROWS, COLUMNS = 2000, 60, 40
PARTS = 8  # some for each worker: fast ones take more of them


@ray.remote(num_cpus=1)
def decompose(A):
    """U, S and Vh of the matrices of a part, and the device that computed them."""
    device = "cuda" if ray.get_gpu_ids() else "cpu"  # Ray hides the GPUs of other tasks
    return *linalg.svd(A, full_matrices=False, device=device, threads=1), device


def main():
    ray.init(num_cpus=int(sys.argv[1]) if len(sys.argv) > 1 else None)
    on_gpus = ray.cluster_resources().get("GPU", 0) >= 1
    task = decompose.options(num_gpus=1) if on_gpus else decompose

    A = np.random.default_rng(0).standard_normal((COUNT, ROWS, COLUMNS))
    U, S, Vh = np.empty_like(A), np.empty((COUNT, COLUMNS)), np.empty((COUNT, COLUMNS, COLUMNS))
    ends = [COUNT * i // PARTS for i in range(PARTS + 1)]
    places = {task.remote(A[i:j]): slice(i, j) for i, j in itertools.pairwise(ends)}
    while places:
        (done,), _ = ray.wait(list(places))
        place = places.pop(done)
        U[place], S[place], Vh[place], device = ray.get(done)
        print(f"matrices {place.start} to {place.stop - 1}, on {device}", flush=True)

    unit = max(ROWS, COLUMNS) * np.finfo(A.dtype).eps
    largest = S[:, 0]
    residual = np.linalg.norm(A - U * S[:, None] @ Vh, axis=(1, 2)) / largest / unit
    loss = np.linalg.norm(U.swapaxes(1, 2) @ U - np.eye(COLUMNS), axis=(1, 2)) / unit
    print(f"residual and loss of orthogonality, in n eps: {residual.max():.2g} {loss.max():.2g}")
    return bool(max(residual.max(), loss.max()) > 4)


if __name__ == "__main__":
    sys.exit(main())
