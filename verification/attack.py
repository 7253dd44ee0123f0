"""What draws and searches share: their processes, the count of what was found, the result file.

An attack is a class whose objects can be pickled. Each piece of its work has an index:

    attack.device             where it computes
    attack.describe(index)    what determines the piece, as a dict for a JSON file
    attack(index)             (description, found, wrong): found has for each measure the worst
                              (value, limit, where), wrong is a list of texts, one for each failure

The keys method, dtype and count of a description say what is counted, and how often; "ran" is the
method that computed the result where the one that was asked for may leave it to another.
"""

import contextlib
import multiprocessing
import time
from multiprocessing.connection import wait

import numpy as np

import tsvd
from testing import results

# Seconds after which a piece counts as hanging. To measure 4000 x 4000 complex vectors takes 12 s.
HANG = 180.0
RECORDED = 100  # failures that are written in full


class Record:
    """The result file of an attack: who, where, with which seed, for how long, and what."""

    def __init__(self, path, workers, **how):
        self.path, self.workers, self.how = path, workers, how
        self.start, self.load = time.monotonic(), results.load()
        named = ", ".join(f"{name} {value}" for name, value in how.items())
        print(f"{named}, {workers} processes", flush=True)

    @property
    def seconds(self):
        return time.monotonic() - self.start

    def write(self, **found):
        how = self.how | {"seconds": self.seconds}
        results.write(self.path, self.workers, self.load, **how, **found)


class Tally:
    """Counts the pieces, and keeps the failures and the worst of each measure."""

    def __init__(self, seed):
        self.seed, self.done, self.failed = seed, 0, 0
        self.counts, self.worst, self.failures, self.newest = {}, {}, [], ""

    def add(self, index, made, found, wrong):
        count = made.get("count", 1)
        self.done += count
        method, ran = made.get("method"), made.get("ran")
        by = f" by {ran}" if ran and ran != method else ""
        kind = f"{method}{by}, {made.get('dtype')}"
        self.counts[kind] = self.counts.get(kind, 0) + count
        place = {"seed": self.seed, "index": index} | made
        for measure, (value, limit, where) in found.items():
            share = value / limit if value == value else np.inf
            if share > self.worst.get(measure, {"share": -1})["share"]:
                entry = {"value": value, "limit": limit, "share": share}
                self.worst[measure] = entry | place | where
        self.newest = ""
        if wrong:
            self.failed += len(wrong)
            self.newest = f"FAILED, index {index}: {made}\n" + "\n".join(wrong)
            if len(self.failures) < RECORDED:
                self.failures.append(place | {"wrong": wrong})

    def show(self):
        for measure, worst in sorted(self.worst.items()):
            where = ", ".join(str(worst[key]) for key in ("method", "dtype", "n") if key in worst)
            print(
                f"{measure:<18}{worst['value']:>12.4g}, at most {worst['limit']:.4g}"
                f"   (index {worst['index']}: {where})"
            )

    def content(self):
        """For the result file."""
        names = ("failed", "counts", "failures", "worst")
        return {name: getattr(self, name) for name in names}


def run(record, attack, seed, indices, asked, seconds):
    """Makes and checks the pieces, and writes the result file. 0 if nothing is wrong.

    asked: the count of all pieces. seconds: no piece begins later; the result file has the count of
    those that were made.
    """
    tally, shown = Tally(seed), 0.0
    for index, outcome in Pool(record.workers, attack).results(indices, record.start + seconds):
        tally.add(index, *outcome)
        if tally.newest:
            print(tally.newest, flush=True)
        if record.seconds > shown + 10:
            shown = record.seconds
            print(f"{tally.done:,} of {asked:,}, {shown:.0f} s", flush=True)
    print(f"\n{tally.done:,} of {asked:,} in {record.seconds:.0f} s, {tally.failed} failed")
    tally.show()
    record.write(asked=asked, draws=tally.done, **tally.content())
    return 1 if tally.failed or not tally.done else 0


def show(outcome):
    """Prints one piece. The exit status is 1 if something is wrong."""
    made, found, wrong = outcome
    print(made)
    for measure, (value, limit, where) in found.items():
        print(f"{measure:<18}{value:>12.4g}, at most {limit:.4g}", where or "")
    print("\n".join(wrong) or "nothing is wrong")
    return 1 if wrong else 0


class Pool:
    """Processes that make and check pieces. One that hangs or dies is replaced."""

    def __init__(self, workers, attack):
        self._context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        self._attack, self._workers = attack, workers

    def results(self, indices, until):
        """Yields index, (description, found, wrong); begins no piece after `until`."""
        waiting = iter(indices)
        busy = [self._start() for _ in range(min(self._workers, len(indices)))]
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
                        worker.begin(None if time.monotonic() > until else next(waiting, None))
                for worker in [worker for worker in busy if worker.idle]:
                    busy.remove(worker)
                    worker.end()
        finally:
            for worker in busy:
                worker.end()

    def _start(self):
        return Worker(self._context, self._attack)


class Worker:
    """A process and the index of its piece; None while it starts."""

    def __init__(self, context, attack):
        self.link, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, attack), daemon=True)
        self.process.start()
        other.close()
        self.attack = attack
        self.index, self.dead, self.idle = None, False, False
        self.since = time.monotonic()

    def begin(self, index):
        """Makes the process begin a piece. None: no piece is left."""
        self.since = time.monotonic()
        self.index, self.idle = index, index is None
        if not self.idle:
            with contextlib.suppress(BrokenPipeError):  # outcome() finds the reason
                self.link.send(index)

    def outcome(self):
        """What the process answered; () if it is ready; None: nothing yet."""
        try:
            if self.link.poll():
                outcome = self.link.recv()
                if outcome and self.attack.device != "cpu":
                    _, found, wrong = outcome
                    # After a CUDA error all later calls of the process may fail.
                    self.dead = bool(wrong) and not found
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
        return self.attack.describe(self.index), {}, [why]

    def end(self):
        self.process.kill()
        self.process.join()
        self.link.close()


def _work(link, attack):
    tsvd.svd([1.0, 2.0], [1.0], device=attack.device)  # loads the kernels
    link.send(())
    while True:
        index = link.recv()
        try:
            outcome = attack(index)
        except Exception as error:  # any exception is a failure of the piece
            outcome = attack.describe(index), {}, [f"{type(error).__name__}: {error}"]
        link.send(outcome)
