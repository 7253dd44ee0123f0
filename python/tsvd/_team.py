"""The threads of a call that several devices share."""

from __future__ import annotations

import re
import threading
import time

import numpy as np

# Seconds between two looks at the other threads.
_LOOK = 0.05


class _Stopped(Exception):
    """Another thread of the call has failed."""


class Team:
    """A thread for each share of a call; the first is the caller's.

    size: the number of shares. progress: the caller's, or None. begins: the number of the first
    matrix of each share in the batch; None: the shares are parts of one matrix.
    seconds: what each share took.
    """

    def __init__(self, size, progress, begins):
        self._progress, self._begins = progress, begins
        self._done = [0.0] * size
        self._failures = [None] * size
        self._outcomes = [None] * size
        self._last = size - 1  # shares after this one stop
        self._given = [None] * size  # the numbers that are to be added up
        self._all_here = threading.Barrier(size)
        self._lock = threading.Lock()
        self.seconds = [0.0] * size

    def run(self, work):
        """[work(i) for each share i]; the error of the first share that has one."""
        threads = [
            threading.Thread(target=self._run, args=(i, work), daemon=True)
            for i in range(1, len(self._done))
        ]
        try:
            for thread in threads:
                thread.start()
            self._run(0, work)
        except BaseException as error:
            self._fail(0, error)
        for thread in threads:
            while thread.is_alive():
                try:
                    thread.join(_LOOK)
                    self._tell()
                except BaseException as error:  # Ctrl-C, or progress raised
                    self._fail(0, error)
        for i, failure in enumerate(self._failures):
            if failure is not None:
                raise self._named(i, failure)
        return self._outcomes

    def watch(self, i):
        """The progress of share i, by which it is stopped too."""

        def report(done):
            if i > self._last:
                raise _Stopped
            self._done[i] = done
            if i == 0:
                self._tell()

        return report

    def sum(self, i):
        """What adds the numbers of share i and of all others up, in the order of the shares.

        Each share adds up its part of the numbers, in the first one's memory.
        """

        def add(view):
            own = self._given[i] = np.frombuffer(view)
            self._all_here.wait()
            total, *others = self._given
            size = len(self._given)
            part = slice(own.size * i // size, own.size * (i + 1) // size)
            for other in others:
                total[part] += other[part]
            self._all_here.wait()
            if i > 0:
                own[:] = total
            self._all_here.wait()  # the first one's memory is read until here

        return add

    def _run(self, i, work):
        begin = time.monotonic()
        try:
            self._outcomes[i] = work(i)
        except BaseException as error:
            self._fail(i, error)
        self.seconds[i] = time.monotonic() - begin

    def _fail(self, i, error):
        if isinstance(error, (_Stopped, threading.BrokenBarrierError)):
            return
        # a matrix before this one may be wrong too, and is the one to be named
        waits = self._begins is not None and isinstance(error, ValueError)
        with self._lock:
            self._failures[i] = self._failures[i] or error
            self._last = min(self._last, i if waits else -1)
        self._all_here.abort()

    def _tell(self):
        if self._progress is not None and self._last >= 0:
            self._progress(sum(self._done) / len(self._done))

    def _named(self, i, error):
        """The error with the number of the matrix in the whole batch."""
        begin = self._begins[i] if self._begins is not None else 0
        if begin and error.args and isinstance(error.args[0], str):
            text = re.sub(
                r"^matrix (\d+) of the batch",
                lambda found: f"matrix {int(found[1]) + begin} of the batch",
                error.args[0],
            )
            error.args = (text, *error.args[1:])
        return error
