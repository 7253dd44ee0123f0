"""Random draws over all families, sizes, types, methods and options, each checked in every measure.

A draw is determined by its device, its random seed and its index, and by the method if one is asked
for, so that it can be repeated:

    python -m verification draws --device DEVICE --seed S --index I [--method METHOD]

This holds as long as no family is added, and the constants below stay as they are. The record of a
failure has everything that is needed to make the matrix again even then.
"""

from dataclasses import dataclass

import numpy as np

import tsvd
from testing import families, measures
from testing.measures import BOUNDS
from verification import attack, extended

# Orders around those of leaves and of blocks of threads, and around their multiples.
SPECIAL = (
    *(24, 25, 48, 49, *range(31, 35), *range(63, 67)),
    *(*range(127, 131), *range(255, 259), *range(511, 515)),
)
SPECIAL_SHARE = 0.4
LARGEST = 700
LARGE, LARGE_SHARE = {"cpu": (800, 1200), "cuda": (1000, 2600)}, 0.015
BATCH_SHARE, LARGEST_BATCH, LARGEST_IN_BATCH = 0.15, 40, 140
PART_SHARE = 0.2  # share of the draws that select values by index or by interval
VALUES_SHARE = 0.15  # share of the draws without vectors
EXACT_ORDER = 17  # from this order on exact counts confirm the values, as those of an interval
EXTRA_SHARE = 0.1  # share of the draws whose matrices have a column more than rows
EDGE_SHARE = 0.1  # share of the draws whose largest entry is next to the largest number
# Shares of "any". On CUDA "qr" is drawn by --method.
METHODS = {
    "cpu": {"dc": 0.3, "twisted": 0.2, "auto": 0.2, "qr": 0.2, "givens": 0.1},
    "cuda": {"dc": 0.3, "twisted": 0.4, "auto": 0.25, "givens": 0.05},
}
WHOLE = ("qr", "givens")  # methods that compute the vectors of all values only
DEVICE_ULPS = 4  # bound on the difference between the values of two devices
SWEEPS = 20_000  # "givens" with eps may need more; the draw then counts as harmless


@dataclass
class Draw:
    """All that determines a matrix, or a batch, and its options.

    others: how many more matrices of the same order make it a batch; matrix_seed determines their
    families and seeds. None: there is no batch, d and e are vectors. part: the first and the last
    index of the values to compute; None: all. by_interval: the part is given by the values at its
    ends.
    """

    method: str
    vectors: bool
    family: str
    n: int
    dtype: str
    matrix_seed: int
    lower: bool
    exponent: int  # the matrix is multiplied by 2^exponent
    eps: float | None
    max_sweeps: int | None
    threads: int
    others: int | None
    part: tuple[int, int] | None
    by_interval: bool
    fallback: bool  # False: "twisted" may refuse the matrix, and leaves it to no other method
    extra: bool  # a column more than rows, or of lower matrices a row more than columns


def draw(seed, index, device, method, extra=EXTRA_SHARE):
    """The draw and its matrix or matrices, d and e. extra: the share with a column more."""
    rng = np.random.default_rng([seed, index])
    made = _whole(rng, device, method)
    n = made.n
    d, e = families.make(made.family, n, np.dtype(made.dtype), made.matrix_seed)
    largest = _largest(d, e)
    if largest and rng.random() < 0.5:
        made.exponent = _exponent(largest, np.finfo(d.dtype), rng)
        d, e = np.ldexp(d, made.exponent), np.ldexp(e, made.exponent)
    if rng.random() < 0.2:
        made.eps = float(_largest(d, e) * 10.0 ** rng.uniform(-14, -1))
    if made.method == "givens" and made.eps is not None:
        made.max_sweeps = SWEEPS
    elif rng.random() < 0.1:
        made.max_sweeps = 100 * (n + 10)
    if rng.random() < PART_SHARE and not (made.vectors and made.method in WHOLE):
        low, high = sorted(int(i) for i in rng.integers(0, n, 2))
        made.part = low, min(high, low + int(rng.choice([0, 3, n])))
        made.by_interval = bool(made.eps is None and n >= EXACT_ORDER and rng.random() < 0.3)
    if rng.random() < BATCH_SHARE and n <= LARGEST_IN_BATCH and not made.by_interval:
        made.others = int(np.exp(rng.uniform(0, np.log(LARGEST_BATCH))))
        d, e = families.stack([(d, e), *_others(made)])
    made.fallback = made.method != "twisted" or bool(rng.random() < 0.5)
    made.extra = bool(rng.random() < extra)
    if made.extra:
        e = np.concatenate([e, rng.permuted(d, axis=-1)[..., :1]], -1)
    return made, d, e


def _whole(rng, device, method):
    """A draw of one matrix, all of whose values are computed at full accuracy."""
    n = int(np.exp(rng.uniform(0, np.log(LARGEST + 1))))
    if rng.random() < SPECIAL_SHARE:
        n = int(rng.choice(SPECIAL))
    if rng.random() < LARGE_SHARE:
        n = int(rng.integers(*LARGE[device]))
    if method == "any":
        shares = METHODS[device]
        method = str(rng.choice([*shares], p=[*shares.values()]))
    vectors = bool(rng.random() >= VALUES_SHARE)
    if not vectors and method == "dc":  # it has no way of its own to values alone
        method = "bisect"
    return Draw(
        method=method,
        vectors=vectors and method != "bisect",
        family=str(rng.choice(sorted(families.FAMILIES))),
        n=n,
        dtype=str(rng.choice(["float64", "float32"])),
        matrix_seed=int(rng.integers(2**32)),
        lower=bool(rng.random() < 0.25),
        exponent=0,
        eps=None,
        max_sweeps=None,
        threads=int(rng.choice([1, 1, 2, 4])),
        others=None,
        part=None,
        by_interval=False,
        fallback=True,
        extra=False,
    )


def _others(made):
    rng = np.random.default_rng(made.matrix_seed)
    for family in rng.choice(sorted(families.FAMILIES), made.others):
        seed = int(rng.integers(2**32))
        yield families.make(str(family), made.n, np.dtype(made.dtype), seed)


def _largest(d, e):
    return float(max(np.max(abs(d)), np.max(abs(e), initial=0)))


def _exponent(largest, info, rng):
    """A random k for which 2^k largest is from the denormals to 1/4 of the largest number, or next
    to it: then some values are infinite.
    """
    now = int(np.frexp(largest)[1])
    if rng.random() < EDGE_SHARE:
        return info.maxexp - now
    low, high = info.minexp - info.nmant + 3 - now, info.maxexp - 2 - now
    if rng.random() < 0.5:
        return int(np.clip(rng.integers(-40, 41), low, high))
    return int(rng.integers(low, high + 1))


def check(made, d, e, device):
    """The method that ran, measure -> (value, limit) of the worst matrix of a call, and a list of
    other failures.
    """
    n, dtype = made.n, np.dtype(made.dtype)
    count = d.size // n
    d_all, e_all = d.reshape(count, n), e.reshape(count, e.shape[-1])
    options, low, high = _options(made, d_all, e_all)
    try:
        result, info = _svd(made, d, e, device, options)
    except np.linalg.LinAlgError:
        if made.method == "givens" and made.eps is not None:
            return "none", {}, []
        raise
    k, batch = high - low + 1, d.shape[:-1]
    result = result if made.vectors else (result,)
    right = [(*batch, k)]
    if made.vectors:
        rows, columns = n + (made.extra and made.lower), n + (made.extra and not made.lower)
        right = [(*batch, rows, k), *right, (*batch, k, columns)]
    shapes = [x.shape for x in result]
    if shapes != right:
        return info.method, {}, [f"shapes {shapes} for {k} values"]
    if not all(x.dtype == dtype for x in result):
        return info.method, {}, ["another dtype"]
    result = [x.reshape(len(d_all), *x.shape[len(batch) :]) for x in result]
    s = result[1] if made.vectors else result[0]
    found, wrong = _check_values(made, d_all, e_all, s, low, device)
    if device != "cpu" and made.eps is None:
        options["tuning"]["fallback"] = 1  # one device may refuse what the other takes
        there = tsvd.svd(d, e, device="cpu", **options)
        there = (there.s if made.vectors else there).reshape(s.shape)
        same = np.isinf(s) & np.isinf(there)
        change = measures.value_error(np.where(same, 0, s), np.where(same, 0, there))
        found["values, devices"] = change, DEVICE_ULPS
    for i in range(len(d_all) if made.vectors else 0):
        own, said = _check_vectors(made, d_all[i], e_all[i], *(x[i] for x in result))
        for measure, (value, limit) in own.items():
            if measure not in found or not value / limit <= found[measure][0] / found[measure][1]:
                found[measure] = value, limit
        wrong += [f"matrix {i}: {what}" for what in said] if batch else said
    for measure, (value, limit) in found.items():
        if not value <= limit:
            wrong.append(f"{measure} is {value:.4g}, over {limit:.4g}")
    return info.method, found, wrong


def _svd(made, d, e, device, options):
    """The result and its SVDInfo. What "twisted" refuses goes to the method that it names then."""
    call = {"device": device, "full_output": True} | options
    try:
        return tsvd.svd(d, e, **call)
    except np.linalg.LinAlgError as error:
        if made.fallback or "twisted refused" not in str(error):
            raise
    result, info = tsvd.svd(d, e, **call | {"tuning": options["tuning"] | {"fallback": 1}})
    if not info.refused:
        raise AssertionError("refused by one call, and not by the next")
    return result, info


def _options(made, d, e):
    """The arguments of the call, and the first and the last index of the values."""
    options = {"lower": made.lower, "eps": made.eps, "threads": made.threads}
    options["tuning"] = {"fallback": int(made.fallback)}
    options |= {"method": made.method, "max_sweeps": made.max_sweeps, "compute_uv": made.vectors}
    low, high = made.part or (0, made.n - 1)
    if not made.by_interval:
        if made.part is not None:
            options |= {"select": "i", "select_range": made.part}
        return options, low, high
    values = tsvd.svdvals(d[0], e[0], lower=made.lower, method="bisect", device="cpu")
    bounds = float(values[high + 1]) if high + 1 < made.n else -1.0, float(values[low])
    if not bounds[0] < bounds[1]:  # a zero matrix, or equal values
        bounds = -1.0, np.inf
    inside = np.flatnonzero((values > bounds[0]) & (values <= bounds[1]))
    return options | {"select": "v", "select_range": bounds}, int(inside[0]), int(inside[-1])


def _check_values(made, d, e, s, first, device):
    """The same for the values of a batch, against counts in extended precision."""
    n, wrong = made.n, []
    if np.isnan(s).any():
        return {}, ["a value is NaN"]
    if extended.wrong_order(s).any():
        wrong.append("not descending, or a negative value")
    b2 = extended.squares(d, e)
    if made.eps is None:
        measure, changed = "values", 0
        by = "extra" if made.extra else "bisect" if made.method == "bisect" else "auto"
        limit = BOUNDS[f"values {by}"](n)
        tolerance = extended.tolerances(s, limit)
        if made.extra:  # the rotations that make a matrix square change it
            changed = limit * np.finfo(s.dtype).eps * extended.norms(d, e)[:, None]
    else:
        measure, limit = "values, eps", 1.0
        tolerance = changed = extended.limit_with_eps(d, e, made.eps)[:, None]
    share = float(np.max(extended.value_shares(b2, first, s, tolerance)))
    slack = extended.slack(n, device, s.dtype)
    ends = extended.wrong_at_the_ends(b2, first, s, changed, slack)
    for i, k in np.argwhere(ends)[:3]:
        wrong.append(f"matrix {i}: value {k}, {s[i, k]}, breaks a rule for the ends of the range")
    return {measure: (share * limit, limit)}, wrong


def _check_vectors(made, d, e, L, s, R):
    """The same for the vectors of one matrix."""
    n, wrong = made.n, []
    if not (np.isfinite(L).all() and np.isfinite(R).all()):
        return {}, ["vectors are not finite"]
    if extended.wrong_signs(L[None]).any():
        wrong.append("not positive where a column of L is largest")
    found = {"orthogonality": (measures.orthogonality(L, R), BOUNDS["orthogonality"](n))}
    finite = np.isfinite(s)
    if made.eps is None:
        L, s, R = L[:, finite], s[finite], R[finite]
        residual = measures.residual(d, e, L, s, R, made.lower)
        found["residual"] = (residual, BOUNDS["residual"](n))
    elif s.size == n and finite.all():
        error = measures.max_abs_error(d, e, L, s, R, made.lower)
        limit = float(extended.limit_with_eps(d, e, made.eps))
        found["max error, eps"] = (error / limit, 1.0)
    return found, wrong


@dataclass
class Draws:
    """The attack by random draws."""

    seed: int
    device: str
    method: str
    extra: float = EXTRA_SHARE

    def describe(self, index):
        made, _, _ = draw(self.seed, index, self.device, self.method, self.extra)
        return vars(made)

    def __call__(self, index):
        made, d, e = draw(self.seed, index, self.device, self.method, self.extra)
        ran, found, wrong = check(made, d, e, self.device)
        found = {measure: (*both, {}) for measure, both in found.items()}
        return vars(made) | {"ran": ran}, found, ["; ".join(wrong)] if wrong else []


def again(drawn, index):
    """Prints a draw and its measures. The exit status is 1 if something is wrong."""
    return attack.show(drawn(index))


def run(path, workers, drawn, draws, seconds):
    """Writes `path`. The exit status is 0 if nothing is wrong with any draw."""
    record = attack.Record(path, workers, attack="draws", **vars(drawn))
    return attack.run(record, drawn, drawn.seed, range(draws), draws, seconds)
