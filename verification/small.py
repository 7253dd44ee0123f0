"""Millions of small matrices, each checked in every measure in extended precision.

    python -m verification small MATRICES

A block of some thousand matrices is one call; its random seed and its index determine it, so that
it can be repeated: add `--index INDEX`. See small_blocks for the matrices.
"""

from dataclasses import dataclass

import numpy as np

import tsvd
from testing.measures import BOUNDS
from testing.reference import LONG
from verification import attack, extended, small_blocks
from verification.reproduce import reproduced

SHOWN = 5  # failing matrices of a block that are written in full


def check(made, d, e, device):
    """The worst (value, limit, where) of each measure; (matrix, text, options) of each failure."""
    if made.intervals:
        return _check_intervals(made, d, e, device)
    options = {"lower": made.lower, "method": made.method, "eps": made.eps}
    options |= {"compute_uv": made.vectors, "max_sweeps": made.max_sweeps}
    if made.part is not None:
        options |= {"select": "i", "select_range": made.part}
    given = small_blocks.laid_out(made, d, e)
    result = tsvd.svd(*given, device=device, threads=made.threads, **options)
    result = tuple(result) if made.vectors else (result,)
    first, last = made.part or (0, made.n - 1)
    n, k = made.n, last - first + 1
    batch = np.broadcast_shapes(given[0].shape[:-1], given[1].shape[:-1])
    right = [(*batch, n, k), (*batch, k), (*batch, k, n)] if made.vectors else [(*batch, k)]
    if [x.shape for x in result] != right or any(x.dtype != d.dtype for x in result):
        return {}, [(0, f"shapes {[x.shape for x in result]} of {result[0].dtype}", options)]
    if k == 0:
        return {}, []
    result = [x.reshape(len(d), *x.shape[len(batch) :]) for x in result]
    found, wrong = errors(made, d, e, first, result, device)
    return found, [(i, text, options) for i, text in wrong]


def errors(made, d, e, first, result, device="cpu"):
    """The worst (value, limit, where) of each measure, and (matrix, text) of each failure.

    result: (L, s, R), or (s,); its values are of the ranks from `first` on.
    """
    checks = Checks(d, e)
    s = result[1] if made.vectors else result[0]
    if np.isnan(s).any() or not all(np.isfinite(x).all() for x in result if x is not s):
        bad = [~np.isfinite(x).reshape(len(d), -1).all(axis=1) for x in result if x is not s]
        checks.rule("NaN or infinity", np.isnan(s).any(axis=1) | np.any(bad, axis=0))
        return checks.found, checks.wrong
    checks.rule("not descending, or a negative value", extended.wrong_order(s))
    b2 = extended.squares(d, e)
    if made.eps is None:
        changed, measure = 0, "values"
        limit = BOUNDS["values bisect" if made.method == "bisect" else "values auto"](made.n)
        tolerance = extended.tolerances(s, limit)
    else:
        changed = tolerance = extended.limit_with_eps(d, e, made.eps)[:, None]
        measure, limit = "values, eps", 1.0
    shares = extended.value_shares(b2, first, s, tolerance)
    checks.bound(measure, np.max(shares, axis=1) * limit, limit)
    slack = extended.slack(made.n, device, s.dtype)
    ends = extended.wrong_at_the_ends(b2, first, s, changed, slack)
    checks.rule("a value breaks a rule for the ends of the range", ends.any(axis=1))
    if made.vectors:
        _check_vectors(checks, made, d, e, *result)
    return checks.found, checks.wrong


def _check_vectors(checks, made, d, e, L, s, R):
    checks.rule("not positive where a column of L is largest", extended.wrong_signs(L))
    limit = BOUNDS["orthogonality"](made.n)
    checks.bound("orthogonality", extended.orthogonalities(L, R), limit)
    if made.eps is None:
        residuals = extended.residuals(d, e, L, s, R, made.lower)
        checks.bound("residual", residuals, BOUNDS["residual"](made.n))
    elif s.shape[1] == made.n:
        finite = np.isfinite(s).all(axis=1)
        error = extended.max_abs_errors(d, e, L, np.where(finite[:, None], s, 0), R, made.lower)
        share = error / extended.limit_with_eps(d, e, made.eps)
        checks.bound("max error, eps", np.where(finite, share, 0), 1.0)


class Checks:
    """Collects the worst of each measure, and the matrices that fail."""

    def __init__(self, d, e):
        self.d, self.e = d, e
        self.found, self.wrong = {}, []

    def rule(self, text, wrong):
        self.wrong += [(int(i), text) for i in np.flatnonzero(wrong)]

    def bound(self, measure, errors, limit):
        worst = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
        where = {"matrix": worst} | in_hex(self.d[worst], self.e[worst])
        self.found[measure] = float(errors[worst]), float(limit), where
        for i in np.flatnonzero(~(errors <= limit)):
            text = f"{measure} is {float(errors[i]):.4g}, over {float(limit):.4g}"
            self.wrong.append((int(i), text))


def in_hex(d, e):
    return {name: [float(x).hex() for x in row] for name, row in (("d", d), ("e", e))}


# ---- intervals ----


def _check_intervals(made, d, e, device):
    """select="v" with bounds that are entries, powers of two and the ends of the range."""
    rng, info = np.random.default_rng(made.start), np.finfo(d.dtype)
    checks, wrong = {}, []
    for i in range(made.count):
        entries = [*abs(d[i]).tolist(), *abs(e[i]).tolist(), 0, np.inf, -1]
        between = float(rng.random()) * float(np.max(abs(d[i])))
        entries += [float(info.max), float(info.tiny), between]
        low, high = sorted(float(x) for x in rng.choice(entries, 2))
        if not low < high:
            continue
        options = {"lower": made.lower, "method": made.method, "compute_uv": made.vectors}
        options |= {"select": "v", "select_range": (low, high)}
        result = tsvd.svd(d[i], e[i], device=device, **options)
        result = tuple(result) if made.vectors else (result,)
        s = result[1] if made.vectors else result[0]
        first, text = _ranks(d[i], e[i], s, low, high)
        if text:
            wrong.append((i, text, options))
        elif first is not None and s.size:
            result = [x[None] for x in result]
            found, said = errors(made, d[i : i + 1], e[i : i + 1], first, result, device)
            for measure, (value, limit, where) in found.items():
                if not value <= checks.get(measure, (-1.0,))[0]:
                    checks[measure] = value, limit, where | {"matrix": i}
            wrong += [(i, text, options) for _, text in said]
    return checks, wrong


def _ranks(d, e, s, low, high):
    """The rank of the largest value in (low, high], None if it is too near to tell; and what is
    wrong with the number of values.

    The bounds mean the values as they are given, which are rounded.
    """
    n, info = d.size, np.finfo(d.dtype)
    b2 = extended.squares(d[None], e[None])
    above = []
    for bound in (low, high):
        if np.isinf(bound) or bound < 0:
            above.append((0, 0) if bound > 0 else (n, n))
            continue
        margin = 4 * LONG(info.eps) * LONG(bound) + LONG(info.smallest_subnormal)
        ends = np.array([[LONG(bound) + margin], [LONG(bound) - margin]])
        less = extended.below_or_not(np.repeat(b2, 2, axis=0), 0, np.repeat(ends, n, axis=1))
        above.append(tuple(int(n - count) for count in np.sum(less, axis=1)))
    (low_least, low_most), (high_least, high_most) = above
    least, most = low_least - high_most, low_most - high_least
    if not max(least, 0) <= s.size <= most:
        return None, f"{s.size} values in ({low!r}, {high!r}], not {least} to {most}"
    return (high_least if high_least == high_most else None), ""


# ---- blocks ----


@dataclass
class Small:
    """The attack by small matrices."""

    seed: int
    device: str

    def describe(self, index):
        return vars(small_blocks.block(self.seed, index))

    def __call__(self, index):
        made = small_blocks.block(self.seed, index)
        d, e = small_blocks.matrices(made)
        found, wrong = check(made, d, e, self.device)
        return vars(made), found, self._texts(made, index, d, e, wrong)

    def _texts(self, made, index, d, e, wrong):
        """A text for each failure, the first with the matrix and the call."""
        again = f"python -m verification small --seed {self.seed} --index {index}"
        texts = [f"matrix {i}: {text}" for i, text, _ in wrong]
        for k, (i, _, options) in enumerate(wrong[:SHOWN]):
            texts[k] += f"\n{reproduced(d[i], e[i], options, self.device)}\nin its block: {again}"
        return texts


def blocks(seed, asked):
    """How many blocks have `asked` matrices, and how many these really have."""
    index = count = 0
    while count < asked:
        count += small_blocks.block(seed, index).count
        index += 1
    return index, count


def again(seed, index, device):
    """Prints a block and its measures. The exit status is 1 if something is wrong."""
    return attack.show(Small(seed, device)(index))


def run(path, workers, device, asked, seed, seconds):
    """Writes `path`. The exit status is 0 if nothing is wrong with any matrix."""
    record = attack.Record(path, workers, attack="small", device=device, method="any", seed=seed)
    number, count = blocks(seed, asked)
    return attack.run(record, Small(seed, device), seed, range(number), count, seconds)
