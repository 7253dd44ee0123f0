"""Random draws over all families, sizes, types and options, each checked in every measure.

A draw is determined by its random seed and its index, so that it can be repeated:

    python -m benchmarks stress --seed S --index I

This holds as long as no family is added. The record of a failure has everything that is needed to
make the matrix again even then.

Processes, one for each core, make and check the draws. If one hangs or crashes, this is recorded
and the run goes on.
"""

import contextlib
import multiprocessing
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import wait

import numpy as np

import tsvd
from benchmarks import results
from tests import families, measures
from tests.measures import BOUNDS

# Orders around those of leaves and of blocks of threads, and around their multiples.
SPECIAL = (
    *(24, 25, 48, 49, *range(31, 35), *range(63, 67)),
    *(*range(127, 131), *range(255, 259), *range(511, 515)),
)
SPECIAL_SHARE = 0.4
LARGEST = 700
LARGE, LARGE_SHARE = (1000, 2000), 0.01  # on CUDA
BATCH_SHARE, LARGEST_BATCH, LARGEST_IN_BATCH = 0.15, 40, 140
PART_SHARE = 0.2  # share of the draws that select values by index or by interval
EXACT_ORDER = 17  # from this order on exact counts confirm the values, as those of an interval
WHOLE = ("qr", "givens")  # methods that compute the vectors of all values only
DEVICE_ULPS = 4  # bound on the difference between the values of two devices

HANG = 60.0  # seconds after which a draw counts as hanging
RECORDED = 100  # failures that are written in full


@dataclass
class Draw:
    """All that determines a matrix, or a batch, and its options.

    others: how many more matrices of the same order make it a batch; matrix_seed determines their
    families and seeds. None: there is no batch, d and e are vectors. part: the first and the last
    index of the values to compute; None: all. by_interval: the part is given by the values at its
    ends.
    """

    family: str
    n: int
    dtype: str
    matrix_seed: int
    lower: bool
    exponent: int  # the matrix is multiplied by 2^exponent
    eps: float | None
    threads: int
    others: int | None
    part: tuple[int, int] | None
    by_interval: bool


def draw(seed, index, device):
    """The draw and its matrix or matrices, d and e."""
    rng = np.random.default_rng([seed, index])
    n = int(np.exp(rng.uniform(0, np.log(LARGEST + 1))))
    if rng.random() < SPECIAL_SHARE:
        n = int(rng.choice(SPECIAL))
    if rng.random() < LARGE_SHARE and device == "cuda":
        n = int(rng.integers(*LARGE))
    made = Draw(
        family=str(rng.choice(sorted(families.FAMILIES))),
        n=n,
        dtype=str(rng.choice(["float64", "float32"])),
        matrix_seed=int(rng.integers(2**32)),
        lower=bool(rng.random() < 0.25),
        exponent=0,
        eps=None,
        threads=int(rng.choice([1, 1, 2, 4])),
        others=None,
        part=None,
        by_interval=False,
    )
    d, e = families.make(made.family, n, np.dtype(made.dtype), made.matrix_seed)
    largest = _largest(d, e)
    if largest and rng.random() < 0.5:
        made.exponent = _exponent(largest, np.finfo(d.dtype), rng)
        d, e = np.ldexp(d, made.exponent), np.ldexp(e, made.exponent)
    if rng.random() < 0.2:
        made.eps = float(_largest(d, e) * 10.0 ** rng.uniform(-14, -1))
    if rng.random() < PART_SHARE:
        low, high = sorted(int(i) for i in rng.integers(0, n, 2))
        made.part = low, min(high, low + int(rng.choice([0, 3, n])))
        made.by_interval = bool(made.eps is None and n >= EXACT_ORDER and rng.random() < 0.3)
    if rng.random() < BATCH_SHARE and n <= LARGEST_IN_BATCH and not made.by_interval:
        made.others = int(np.exp(rng.uniform(0, np.log(LARGEST_BATCH))))
        d, e = families.stack([(d, e), *_others(made)])
    return made, d, e


def _others(made):
    rng = np.random.default_rng(made.matrix_seed)
    for family in rng.choice(sorted(families.FAMILIES), made.others):
        seed = int(rng.integers(2**32))
        yield families.make(str(family), made.n, np.dtype(made.dtype), seed)


def _largest(d, e):
    return float(max(np.max(abs(d)), np.max(abs(e), initial=0)))


def _exponent(largest, info, rng):
    """A random k for which 2^k largest is from the denormals to 1/4 of the largest number."""
    now = int(np.frexp(largest)[1])
    low, high = info.minexp - info.nmant + 3 - now, info.maxexp - 2 - now
    if rng.random() < 0.5:
        return int(np.clip(rng.integers(-40, 41), low, high))
    return int(rng.integers(low, high + 1))


def check(made, d, e, device, method):
    """measure -> (value, limit) of the worst matrix of a call, and a list of other failures."""
    n, dtype = made.n, np.dtype(made.dtype)
    if method in WHOLE:
        made = replace(made, part=None, by_interval=False)
    count = 1 + (made.others or 0)
    d_all, e_all = d.reshape(count, n), e.reshape(count, n - 1)
    values = tsvd.svdvals(d_all, e_all, lower=made.lower, method="bisect", device="cpu")
    low, high = made.part or (0, n - 1)
    options = {"lower": made.lower, "eps": made.eps, "tuning": {"threads": made.threads}}
    options |= {"method": method}
    if made.by_interval:
        (values,) = values
        bounds = float(values[high + 1]) if high + 1 < n else -1.0, float(values[low])
        if not bounds[0] < bounds[1]:  # a zero matrix, or equal values
            bounds = -1.0, np.inf
        inside = np.flatnonzero((values > bounds[0]) & (values <= bounds[1]))
        low, high, values = inside[0], inside[-1], values[None]
        options |= {"select": "v", "select_range": bounds}
    elif made.part is not None:
        options |= {"select": "i", "select_range": made.part}
    result = tsvd.svd(d, e, device=device, **options)
    there = None
    if device != "cpu" and made.eps is None:
        there = tsvd.svd(d, e, device="cpu", **options).s.reshape(count, -1)

    k = high - low + 1
    shapes = [x.shape for x in result]
    batch = d.shape[:-1]
    if shapes != [(*batch, n, k), (*batch, k), (*batch, k, n)]:
        return {}, [f"shapes {shapes} for {k} values"]
    if not all(x.dtype == dtype for x in result):
        return {}, ["another dtype"]
    found, wrong = {}, []
    L, s, R = (x.reshape(count, *x.shape[len(batch) :]) for x in result)
    for i in range(count):
        own, said = _check_one(
            made, d_all[i], e_all[i], (L[i], s[i], R[i]), values[i, low : high + 1]
        )
        if there is not None and not said:
            own["values, devices"] = (measures.value_error(s[i], there[i]), DEVICE_ULPS)
        for measure, (value, limit) in own.items():
            if not value <= limit:
                said.append(f"{measure} is {value:.4g}, over {limit:.4g}")
            if measure not in found or not value / limit <= found[measure][0] / found[measure][1]:
                found[measure] = value, limit
        wrong += [f"matrix {i}: {what}" for what in said] if batch else said
    return found, wrong


def _check_one(made, d, e, result, values):
    """The same for one matrix. values: the right ones."""
    L, s, R = result
    n = made.n
    wrong = []
    if not all(np.isfinite(x).all() for x in (L, s, R)):
        return {}, ["not finite"]
    if not np.all(s[1:] <= s[:-1]):
        wrong.append("not descending")
    if np.signbit(s).any():
        wrong.append("a negative value")
    if not np.all(L[np.argmax(abs(L), axis=0), np.arange(s.size)] > 0):
        wrong.append("not positive where a column of L is largest")

    found = {"orthogonality": (measures.orthogonality(L, R), BOUNDS["orthogonality"](n))}
    if made.eps is None:
        residual = measures.residual(d, e, L, s, R, made.lower)
        found["residual"] = (residual, BOUNDS["residual"](n))
        found["values"] = (measures.value_error(s, values), BOUNDS["values auto"](n))
        return found, wrong
    limit = limit_with_eps(d, e, made.eps)
    if s.size == n:
        error = measures.max_abs_error(d, e, L, s, R, made.lower)
        found["max error, eps"] = (error / limit, 1.0)
    change = float(np.max(abs(s.astype(np.float64) - values)))
    found["values, eps"] = (change / limit, 1.0)
    return found, wrong


def limit_with_eps(d, e, eps):
    """The bound on max |B - L S R| where eps is given."""
    n, unit = d.size, float(np.finfo(d.dtype).eps)
    return 4 * eps + BOUNDS["residual"](n) * (n + 8) * unit * _norm(d, e)


def _norm(d, e):
    """||B||_F, at least the least normal number: no result is better than the spacing there."""
    least = float(np.finfo(d.dtype).tiny)
    largest = max(_largest(d, e), least)
    d, e = (x.astype(np.float64) / largest for x in (d, e))
    return largest * float(np.sqrt(max(d @ d + e @ e, 1.0)))


# ---- one draw again ----


def again(seed, index, device, method):
    """Prints a draw and its measures. The exit status is 1 if something is wrong."""
    made, d, e = draw(seed, index, device)
    print(made)
    found, wrong = check(made, d, e, device, method)
    for measure, (value, limit) in found.items():
        print(f"{measure:<18}{value:>12.4g}, at most {limit:.4g}")
    print("\n".join(wrong) or "nothing is wrong")
    return 1 if wrong else 0


# ---- many ----


def run(path, workers, device, method, draws, seed, seconds):
    """Writes `path`. The exit status is 0 if nothing is wrong with any draw.

    seconds: no draw begins later; the result file has the number of draws that were made.
    """
    start, load = time.monotonic(), results.load()
    tally = Tally(seed)
    pool = Pool(workers, (seed, device, method))
    shown = start
    print(f'method="{method}", device="{device}", seed {seed}, {workers} processes', flush=True)
    for index, outcome in pool.results(draws, start + seconds):
        tally.add(index, *outcome)
        if tally.newest:
            print(tally.newest, flush=True)
        if time.monotonic() > shown + 10:
            shown = time.monotonic()
            print(f"{tally.done:,} of {draws:,}, {shown - start:.0f} s", flush=True)
    took = time.monotonic() - start
    print(f"\n{tally.done:,} draws of {draws:,} in {took:.0f} s, {tally.failed} failed")
    for measure, worst in sorted(tally.worst.items()):
        print(
            f"{measure:<18}{worst['value']:>12.4g}, at most {worst['limit']:.4g}"
            f"   (index {worst['index']}: {worst['family']}, n = {worst['n']}, {worst['dtype']})"
        )
    results.write(
        path,
        workers,
        load,
        device=device,
        method=method,
        seed=seed,
        asked=draws,
        draws=tally.done,
        seconds=took,
        failed=tally.failed,
        failures=tally.failures,
        worst=tally.worst,
    )
    return 1 if tally.failed or not tally.done else 0


class Tally:
    """Counts the draws, and keeps the failures and the worst of each measure."""

    def __init__(self, seed):
        self.seed, self.done, self.failed = seed, 0, 0
        self.worst, self.failures, self.newest = {}, [], ""

    def add(self, index, made, found, wrong):
        self.done += 1
        where = {"seed": self.seed, "index": index} | made
        for measure, (value, limit) in found.items():
            share = value / limit if value == value else np.inf
            if share > self.worst.get(measure, {"share": -1})["share"]:
                entry = {"value": value, "limit": limit, "share": share}
                self.worst[measure] = entry | where
        self.newest = ""
        if wrong:
            self.failed += 1
            self.newest = f"FAILED, index {index}: {'; '.join(wrong)} ({made})"
            if len(self.failures) < RECORDED:
                self.failures.append(where | {"wrong": wrong})


class Pool:
    """Processes that make and check draws. One that hangs or dies is replaced."""

    def __init__(self, workers, arguments):
        self._context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        self._arguments = arguments
        self._workers = workers

    def results(self, draws, until):
        """Yields index, (draw, measures, failures); begins no draw after `until`."""
        indices = iter(range(draws))
        busy = [self._start() for _ in range(min(self._workers, draws))]
        try:
            while busy:
                wait([worker.link for worker in busy], timeout=1)
                for k, worker in enumerate(busy):
                    outcome = worker.outcome()
                    if outcome is None:
                        continue
                    if worker.index is not None:
                        yield worker.index, outcome
                    if worker.dead:
                        worker.end()
                        busy[k] = self._start()
                    else:
                        worker.begin(None if time.monotonic() > until else next(indices, None))
                for worker in [worker for worker in busy if worker.idle]:
                    busy.remove(worker)
                    worker.end()
        finally:
            for worker in busy:
                worker.end()

    def _start(self):
        return Worker(self._context, self._arguments)


class Worker:
    """A process and the index of its draw; None while it starts."""

    def __init__(self, context, arguments):
        self.link, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, *arguments), daemon=True)
        self.process.start()
        other.close()
        self.arguments = arguments
        self.index, self.dead, self.idle = None, False, False
        self.since = time.monotonic()

    def begin(self, index):
        """Makes the process begin a draw. None: no draw is left."""
        self.since = time.monotonic()
        self.index, self.idle = index, index is None
        if not self.idle:
            with contextlib.suppress(BrokenPipeError):  # outcome() finds the reason
                self.link.send(index)

    def outcome(self):
        """(draw, measures, failures) of a finished draw; () if it is ready; None: nothing yet."""
        try:
            if self.link.poll():
                outcome = self.link.recv()
                # After a CUDA error all later calls of the process may fail.
                self.dead = outcome != () and not outcome[1] and self.arguments[1] != "cpu"
                return outcome
        except (EOFError, ConnectionResetError):
            self.dead = True
            self.process.join(timeout=5)
            return self._lost(f"the process died (exit code {self.process.exitcode})")
        if time.monotonic() > self.since + HANG:
            self.dead = True
            return self._lost(f"no answer in {HANG:.0f} s")
        return None

    def _lost(self, why):
        if self.index is None:
            raise RuntimeError(f"a process could not start: {why}")
        seed, device, _ = self.arguments
        made, _, _ = draw(seed, self.index, device)
        return vars(made), {}, [why]

    def end(self):
        self.process.kill()
        self.process.join()
        self.link.close()


def _work(link, seed, device, method):
    tsvd.svd([1.0, 2.0], [1.0], device=device)  # loads the kernels
    link.send(())
    while True:
        index = link.recv()
        made, found = None, {}
        try:
            made, d, e = draw(seed, index, device)
            found, wrong = check(made, d, e, device, method)
        except Exception as error:  # any exception is a failure of the draw
            wrong = [f"{type(error).__name__}: {error}"]
        link.send((vars(made) if made else {}, found, wrong))
