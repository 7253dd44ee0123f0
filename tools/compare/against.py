"""Times two installations of tsvd beside each other: an older one and that imported here.

Each has a process of its own, which lives through the run.  They are timed in turns, round by
round, and which begins changes every round, so that a slow second of the machine hits both.  A
side's time in a round is the least of a few repeats; a line's ratio is the median over its rounds
of the new side's time over the old side's.  Lines that seem slower are measured again at the end in
new processes, as where memory lies may favour a process for all its life; all rounds then judge.
"""

import contextlib
import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

from testing import results
from tools.compare.against_lines import lines

SIDES = ("old", "new")
MOST = 1.02  # a line with a larger ratio counts as slower

REPEAT = 0.005  # seconds that a repeat lasts at least
ROUND = 0.02  # seconds that the repeats of a side last in a round, at least
FEWEST_ROUNDS = 5
LINE = 2.0  # seconds of all rounds, unless the fewest take longer
SECONDS = {"cpu": 190, "cuda": 145}  # of a run, by default, without what is measured again
AGAIN = 1.2  # of these seconds the end of what is measured again

# Threads of OpenMP may spin after their work, and the other side begins when they have ceased to.
SPINNING = 0.05
# A virtual machine takes milliseconds to wake a processor that slept: the first of short repeats
# is dropped.
SHORT = 0.2


def run(path, threads, device, old, old_trees, rounds, wanted, seconds):
    """Writes `path`, in about `seconds`; the exit status is 0 if no line is slower or left out.

    old: an interpreter, or a folder that holds the package.  old_trees: the git trees of its
    sources, csrc and cuda, or None.  wanted: how the names of the lines begin, None: all.
    seconds: None for those of SECONDS.
    """
    start, load = time.monotonic(), results.load()
    seconds = seconds or SECONDS[device]
    measured = [Measurement(line) for line in lines(device, wanted)]
    with _sides(device, old) as sides:
        facts = {name: side.facts for name, side in sides.items()}
        _introduce(sides)
        print(f"\n{'line':<40}{'clock':<12}{'old, ms':>11}{'new, ms':>11}{'ratio':>8}   quartiles")
        for one in measured:
            if time.monotonic() < start + seconds:
                one.begin(sides, rounds)
            one.show()
    again = [one for one in measured if one.slower()]
    if again:
        print("\nwhat seems slower, measured again in new processes:")
        with _sides(device, old) as sides:
            for one in again:
                if time.monotonic() < start + AGAIN * seconds:
                    one.go_on(sides)
                one.show()
    slower = [clock for one in measured for clock in one.slower()]
    skipped = sum(one.skipped is not None for one in measured)
    print(f"\n{len(measured)} lines, {skipped} left out; slower by over {MOST - 1:.0%}:", end=" ")
    print(", ".join(f"{count} {clock}" for clock, count in Counter(slower).items()) or "none")
    results.write(
        path,
        threads,
        load,
        device=device,
        old_sources=old_trees and dict(zip(("csrc", "cuda"), old_trees, strict=True)),
        sides=facts,
        seconds=time.monotonic() - start,
        most=MOST,
        lines=[one.record() for one in measured],
    )
    return 1 if slower or skipped or not measured else 0


# ---- the two processes ----


class Side:
    """A process of against_worker.py; folder: where it looks for tsvd first."""

    def __init__(self, device, interpreter, folder):
        environment = dict(os.environ)
        ours = environment.pop("PYTHONPATH", None)  # is nothing to another interpreter
        paths = [str(folder.resolve())] if folder else []
        if ours and interpreter == sys.executable:
            paths.append(ours)
        if paths:
            environment["PYTHONPATH"] = os.pathsep.join(paths)
        self._process = subprocess.Popen(
            [interpreter, "-m", "tools.compare.against_worker", device],
            cwd=results.ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.facts = self._answer()
        self.place = Path(self.facts.pop("file")).resolve().parent
        if folder and folder.resolve() != self.place.parent:
            self.end()
            raise FileNotFoundError(f"{folder} holds no tsvd: that of {self.place} was imported")

    def ask(self, **request):
        """The answer; RuntimeError where the call failed."""
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def _answer(self):
        text = self._process.stdout.readline()
        if not text:
            raise ChildProcessError(f"the process ended (exit code {self._process.wait()})")
        return json.loads(text)

    def end(self):
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def _sides(device, old):
    """name -> Side; they end with the block."""
    with contextlib.ExitStack() as ends:
        place = (sys.executable, old) if old.is_dir() else (str(old), None)
        sides = {"old": Side(device, *place)}
        ends.callback(sides["old"].end)
        sides["new"] = Side(device, sys.executable, None)
        ends.callback(sides["new"].end)
        yield sides


def _introduce(sides):
    builds = {name: side.facts["surroundings"]["build"] for name, side in sides.items()}
    for name, side in sides.items():
        print(f"{name}: {side.place}, build {builds[name]}")
    if builds["old"] == builds["new"]:
        print("both are of the same build: what differs is noise")
    before, after = (sides[name].facts["versions"] for name in ("old", "new"))
    for key in before:
        if key != "tsvd_config" and before[key] != after[key]:
            print(f"warning: {key} is {before[key]} for old and {after[key]} for new")


# ---- one line ----


class Measurement:
    """What was measured of a line.

    rounds: of each round side -> clock -> the seconds of its repeats; the clocks are those of
    against_worker.py.  skipped: why it is left out, or None.
    """

    def __init__(self, line):
        self.line, self.rounds = line, []
        self.skipped = "the time is up"

    def begin(self, sides, rounds):
        """At most so many rounds."""
        self.skipped = None
        once = self._prepare(sides)
        if once is not None:
            self.calls = max(1, math.ceil(REPEAT / once))
            self.repeats = max(1, math.ceil(ROUND / (self.calls * once)))
            self.dropped = int(once < SHORT)
            takes = 2 * ((self.repeats + self.dropped) * self.calls * once + _pause())
            self.count = min(rounds, max(FEWEST_ROUNDS, int(LINE / takes)))
            self._measure(sides)

    def go_on(self, sides):
        """As many rounds again."""
        if self._prepare(sides) is not None:
            self._measure(sides)

    def _prepare(self, sides):
        """Seconds of the slower side's call; None where there is no more to measure."""
        try:
            first = {name: side.ask(name=self.line.name) for name, side in sides.items()}
        except RuntimeError as error:
            self.skipped = str(error)
            return None
        if self.line.once:
            self.rounds.append(first)
            return None
        return max(one["end_to_end"][0] for one in first.values())

    def _measure(self, sides):
        repeats = self.repeats + self.dropped
        for _ in range(self.count):
            found = {}
            for name in list(sides)[:: 1 if len(self.rounds) % 2 == 0 else -1]:
                time.sleep(_pause())
                times = sides[name].ask(calls=self.calls, repeats=repeats)
                found[name] = {clock: own[self.dropped :] for clock, own in times.items()}
            self.rounds.append(found)

    def results(self):
        """clock -> least and median of each side, the ratio, its quartiles over the rounds."""
        if self.skipped is not None:
            return {}
        clocks = self.rounds[0]["new"]
        # a batch of values has no device seconds
        return {clock: self._result(clock) for clock in clocks if min(clocks[clock]) > 0}

    def _result(self, clock):
        ratios = [min(one["new"][clock]) / min(one["old"][clock]) for one in self.rounds]
        result = {"ratio": median(ratios), "ratios": ratios}
        result["quartiles"] = quantiles(ratios, n=4)[::2] if len(ratios) > 1 else ratios * 2
        for name in SIDES:
            repeats = [seconds for one in self.rounds for seconds in one[name][clock]]
            result[name] = {
                "least": min(repeats),
                "median": median(repeats),
                "rounds": [min(one[name][clock]) for one in self.rounds],
            }
        return result

    def slower(self):
        """The clocks that say so."""
        return [clock for clock, result in self.results().items() if result["ratio"] > MOST]

    def show(self):
        """SLOWER: the lower quartile says so, too."""
        name = self.line.name
        if self.skipped is not None:
            print(f"{name:<40}left out: {self.skipped}", flush=True)
        for clock, result in self.results().items():
            low, high = result["quartiles"]
            says = ""
            if result["ratio"] > MOST:
                says = "   SLOWER" if low > 1 else "   slower?"
            print(
                f"{name:<40}{clock.replace('_', ' '):<12}{result['old']['median'] * 1e3:>11.4f}"
                f"{result['new']['median'] * 1e3:>11.4f}{result['ratio']:>8.3f}"
                f"{low:>8.3f} to {high:.3f}{says}",
                flush=True,
            )
            name = ""

    def record(self):
        record = {"name": self.line.name}
        if self.skipped is not None:
            return record | {"skipped": self.skipped}
        return record | {"slower": self.slower()} | self.results()


def _pause():
    """Seconds between two sides."""
    return 0.002 if os.environ.get("OMP_WAIT_POLICY") == "passive" else SPINNING
