"""What PyTorch measures on the GPU: errors of large results, and the rate of a pinned copy."""

import time
from statistics import median

import numpy as np
import torch


def errors(d, e, L, s, R):
    """max_abs_error and orthogonality of tests/measures.py, for float64."""
    d, e, L, s, R = (torch.from_numpy(x).to("cuda") for x in (d, e, L, s, R))
    n = len(d)
    difference = (L * s) @ R
    difference -= torch.diag(d) + torch.diag(e, 1)
    one = torch.eye(n, dtype=d.dtype, device=d.device)
    lost = max((gram - one).abs().max().item() for gram in (L.T @ L, R @ R.T))
    return difference.abs().max().item(), lost / ((n + 8) * np.finfo(np.float64).eps)


def pinned_seconds(size, repeats):
    """Median seconds of copying `size` bytes from the device to pinned memory."""
    source = torch.zeros(size, dtype=torch.uint8, device="cuda")
    target = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
    seconds = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        target.copy_(source)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return median(seconds)
