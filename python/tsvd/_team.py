"""The threads of a call that several devices share."""

from __future__ import annotations

import os
import re
import threading
import time

import numpy as np

from ._core import Stopped  # another thread of the call has failed

# Seconds between two looks at the other threads.
_LOOK = 0.05


class Team:
    """A thread for each share of a call; the first is the caller's.

    size: the number of shares. progress: the caller's, or None. begins: the number of the first
    matrix of each share in the batch; None: the shares are parts of one matrix.
    seconds: what each share took.
    """

    def __init__(self, size, progress, begins):
        self._progress, self._begins = progress, begins
        self._process = os.getpid()
        self._done = [0.0] * size
        self._failures = [None] * size
        self._outcomes = [None] * size
        self._ended = [threading.Event() for _ in range(size)]
        self._last = size - 1  # shares after this one stop
        self._given = [None] * size  # the numbers that are to be added up
        self._change = threading.Condition()  # of what follows
        self._arrived = self._meetings = 0
        self._stopped = False  # a share has ended since another one has failed
        self._over = False  # a share has ended: the others cannot meet it any more
        self.seconds = [0.0] * size

    def run(self, work):
        """[work(i) for each share i]; the error of the first share that has one."""
        threads = [
            threading.Thread(target=self._run, args=(i, work), daemon=True)
            for i in range(1, len(self._done))
        ]
        started = 0
        try:
            for thread in threads:
                thread.start()
                started += 1
            self._run(0, work)
        except BaseException as error:
            self._fail(0, error)
        # the thread of an interrupted join() may count as ended while it runs
        for ended in self._ended[1 : started + 1]:
            self._wait(ended)
        failures, self._failures = self._failures, []
        for i, failure in enumerate(failures):
            if failure is not None:
                raise self._named(i, failure)
        if self._stopped:
            raise RuntimeError("a part of a call has stopped, and no other has failed")
        return self._outcomes

    def watch(self, i):
        """The progress of share i, by which it is stopped too."""

        def report(done):
            if i > self._last:
                raise Stopped
            self._done[i] = done
            if i == 0:
                self._tell()

        return report

    def sum(self, i):
        """What adds the numbers of share i and of all others up, in the order of the shares.

        Each share adds up its part of the numbers, in a copy of those of the first.
        """

        def add(view):
            own = np.frombuffer(view)
            self._given[i] = own.copy()
            self._meet()
            total, *others = self._given
            if any(other.size != own.size for other in self._given):
                raise RuntimeError("the parts of a call do not go together")
            size = len(self._given)
            part = slice(own.size * i // size, own.size * (i + 1) // size)
            for other in others:
                total[part] += other[part]
            self._meet()
            own[:] = total

        return add

    def _meet(self):
        """Waits for all shares."""
        with self._change:
            meeting = self._meetings
            self._arrived += 1
            if self._arrived == len(self._done):
                self._arrived = 0
                self._meetings += 1
                self._change.notify_all()
            while self._meetings == meeting and not self._over:
                self._change.wait()
            if self._meetings > meeting:
                return
        if any(self._failures) or self._stopped:  # the share that failed may be on its way here
            raise Stopped
        raise RuntimeError("a part of a call has ended while others waited for it")

    def _run(self, i, work):
        begin = time.monotonic()
        try:
            self._outcomes[i] = work(i)
        except BaseException as error:
            self._fail(i, error)
        finally:
            self.seconds[i] = time.monotonic() - begin
            self._end()
            self._ended[i].set()

    def _end(self):
        with self._change:
            self._over = True
            self._change.notify_all()

    def _wait(self, ended):
        """Waits until a share has ended, also after Ctrl-C, and tells how far all are."""
        while not ended.is_set():
            try:
                ended.wait(_LOOK)
                self._tell()
            except BaseException as error:  # Ctrl-C, or progress raised
                self._fail(0, error)
            if os.getpid() != self._process:
                raise RuntimeError(
                    "progress has forked the process: the child cannot finish the call, only "
                    "start another"
                )

    def _fail(self, i, error):
        if isinstance(error, Stopped):
            self._stopped = True
        else:
            # a matrix before this one may be wrong too, and is the one to be named
            waits = self._begins is not None and isinstance(error, ValueError)
            self._failures[i] = self._failures[i] or error
            self._last = min(self._last, i if waits else -1)
        self._end()

    def _tell(self):
        if self._progress is None or self._last < 0:
            return
        try:
            self._progress(sum(self._done) / len(self._done))
        except BaseException:
            self._last = -1
            raise

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
