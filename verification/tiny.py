"""A hundred million matrices of order 2 to 8, made, decomposed and checked on the GPU by PyTorch.

    python -m verification tiny MATRICES --device cuda

A block of a hundred thousand matrices of one shape and type is one call of `svd` and one of
`svdvals`. Its random seed and its index determine it, so that it can be repeated: add `--index
INDEX`. Values are compared with those of divide and conquer, after a reduction by reflectors; where
the two are far apart, those in extended precision decide. The rest is checked in float64, whose own
rounding errors add to those of matrices in float64.
"""

from dataclasses import dataclass

import numpy as np

from testing.measures import BOUNDS, dense_value_bound
from testing.reference import dense_singular_values
from tsvd import linalg
from verification import attack
from verification.small_dense import DTYPES, Block, order_on_device

COUNT = 100_000  # matrices of a block
KINDS = ("gaussian", "few", "graded", "low_rank", "close", "sparse", "equal", "constant")
WORKERS = 4  # processes that share the GPU


def block(seed, index):
    rng = np.random.default_rng([seed, index])
    dtype = DTYPES[index % len(DTYPES)]
    most = order_on_device(dtype)
    n = int(rng.integers(2, most + 1))
    m = n if rng.random() < 0.7 else int(rng.integers(1, most + 1))
    return Block(seed, index, m, n, dtype, bool(rng.random() < 0.5), COUNT)


def matrices(made):
    """A tensor (count, m, n) on the device; matrices beside each other are of different kinds."""
    import torch

    generator = torch.Generator("cuda").manual_seed(made.seed * 1_000_003 + made.index)
    on = {"generator": generator, "device": "cuda", "dtype": torch.float64}
    is_complex = made.dtype.startswith("complex")
    shape, one = (made.count, made.m, made.n), (made.count, 1, 1)
    kind = torch.randint(len(KINDS), one, generator=generator, device="cuda")

    def normal(*size):
        x = torch.randn(size, **on)
        return torch.complex(x, torch.randn(size, **on)) if is_complex else x

    def uniform(*size):
        return torch.rand(size, **on)

    x = normal(*shape)
    nearly = 1 + 10 ** (-17 * uniform(*one)) * x
    span = 30 * uniform(*one)
    rows = 10 ** (span * (2 * uniform(made.count, made.m, 1) - 1) * (uniform(*one) < 0.7))
    graded = x * rows * 10 ** (span * (2 * uniform(made.count, 1, made.n) - 1))
    rank = normal(made.count, made.m, 1) @ normal(made.count, 1, made.n)
    square = torch.linalg.qr(normal(min(made.count, 2000), *(2 * [max(made.m, made.n)])))[0]
    square = square[torch.arange(made.count, device="cuda") % len(square), : made.m, : made.n]
    spike = torch.where(uniform(*shape) < 0.05, 1e6 * uniform(*one), 1.0)
    forms = (
        *(x, torch.sign(x.real).to(x.dtype) * (uniform(*shape) < 0.7), graded, rank, nearly),
        *(x * (uniform(*shape) < 0.4), square + 10 ** (-17 * uniform(*one)) * x),
        (spike * (0.1 + uniform(*one))).to(x.dtype),
    )
    A = sum(torch.where(kind == i, form, 0) for i, form in enumerate(forms))
    A = A * 10 ** (40 * uniform(*one) - 20)
    # no value of a matrix in single precision is infinite
    A = A * torch.clamp(1e33 / A.abs().amax((1, 2), keepdim=True), max=1)
    return A.to(getattr(torch, made.dtype))


def check(made, A):
    """The worst (value, limit, where) of each measure; (matrix, text) of each failure."""
    import torch

    found, wrong = {}, []

    def rule(text, bad):
        wrong.extend((int(i), text) for i in torch.nonzero(bad.reshape(len(A), -1).any(1))[:, 0])

    def bound(measure, errors, limit):
        errors = torch.nan_to_num(errors, nan=torch.inf)
        worst = int(torch.argmax(errors))
        found[measure] = float(errors[worst]), float(limit), {"matrix": worst}
        rule(f"{measure} is over {limit:.4g}", errors > limit)

    U, S, Vh = linalg.svd(A, made.full)
    alone = linalg.svdvals(A)
    k, longer = S.shape[1], max(made.m, made.n)
    eps, limit = torch.finfo(A.dtype).eps, dense_value_bound(made.m, made.n)
    rule("other values alone", S != alone)
    rule("not descending, or negative", (torch.diff(S, dim=1) > 0) | (S[:, 1:] < 0))
    wide = torch.complex128 if A.is_complex() else torch.float64
    size = A.abs().amax((1, 2), keepdim=True).double()
    size = torch.exp2(torch.floor(torch.log2(torch.where(size > 0, size, 1.0))))
    B, s, u, v = A.to(wide) / size, S.double() / size[:, 0], U.to(wide), Vh.to(wide)
    for name, gram in (("U", u.mH @ u), ("V", v @ v.mH)):
        off = (gram - torch.eye(gram.shape[-1], device="cuda")).abs().amax((1, 2))
        bound(f"orthogonality of {name}", off / ((longer + 8) * eps), 3)
    # results below the smallest normal number are rounded to fewer digits
    least = (torch.finfo(A.dtype).tiny / size[:, 0, 0]).clamp(min=1e-300)
    norm = torch.maximum(torch.linalg.matrix_norm(B), least)
    off = torch.linalg.matrix_norm(B - (u[..., :k] * s[:, None]) @ v[:, :k])
    bound("residual", off / ((longer + 8) * eps * norm), BOUNDS["residual"](longer))
    sizes, parts = u[..., :k].abs(), torch.view_as_real(u[..., :k].to(torch.complex128))
    near = sizes >= sizes.amax(1, keepdim=True) * (1 - 4 * eps)
    right = (near & (parts[..., 0] > 0) & (parts[..., 1] == 0)).any(1)
    rule("not positive where a column of U is largest", ~right)
    reference = linalg.svdvals(A, method="dc").double() / size[:, 0]
    unit = eps * torch.maximum(reference[:, 0], least)
    errors = (s - reference).abs().amax(1) / unit
    for i in torch.nonzero(errors > limit / 2)[:, 0].tolist():
        exact = dense_singular_values(B[i].cpu().numpy())
        errors[i] = float(np.max(abs(s[i].cpu().numpy() - exact))) / float(unit[i])
    bound("values", errors, limit)
    return found, wrong


@dataclass
class Tiny:
    """The attack by matrices on the device."""

    seed: int
    device: str

    def describe(self, index):
        return vars(block(self.seed, index))

    def __call__(self, index):
        made = block(self.seed, index)
        A = matrices(made)
        found, wrong = check(made, A)
        texts = [f"matrix {i}: {text}" for i, text in wrong]
        for k, (i, _) in enumerate(wrong[:3]):
            texts[k] += f"\nA = {A[i].tolist()!r}\nin its block: --seed {self.seed} --index {index}"
        return vars(made), found, texts


def again(seed, index, device):
    """Prints a block and its measures. The exit status is 1 if something is wrong."""
    return attack.show(Tiny(seed, device)(index))


def run(path, workers, device, asked, seed, seconds):
    """Writes `path`. The exit status is 0 if nothing is wrong with any matrix."""
    how = {"attack": "tiny", "device": device, "method": "auto", "seed": seed}
    record = attack.Record(path, min(workers, WORKERS), **how)
    number = -(-asked // COUNT)
    return attack.run(record, Tiny(seed, device), seed, range(number), number * COUNT, seconds)
