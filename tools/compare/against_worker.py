"""One side of `python -m tools.compare against`: times calls of the tsvd that this process imports.

Requests come as lines of JSON on stdin, and each is answered by one line on stdout:

    {"name": ...}                    prepare this line; answers the seconds of a call
    {"calls": ..., "repeats": ...}   time it; answers the seconds of a call, of each repeat
"""

import gc
import json
import os
import sys
import time

import numpy as np

import tsvd
from testing import results
from tools.compare.against_lines import lines
from tools.compare.checksums import surroundings

BRIEF = 0.2  # a longer call is not made twice before it is timed


def main(device):
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what else is printed does not disturb
    tsvd.svd([1.0, 2.0], [1.0], device=device)  # loads the kernels
    known = {line.name: line for line in lines(device)}
    side = Side(device)
    _reply(
        replies,
        {
            "file": tsvd.__file__,
            "versions": results.versions(),
            "surroundings": surroundings(),
        },
    )
    for request in map(json.loads, sys.stdin):
        try:
            if "name" in request:
                answer = side.prepare(known[request["name"]])
            else:
                answer = side.time(**request)
        except Exception as error:  # the other side may do without
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        _reply(replies, answer)


def _reply(replies, answer):
    replies.write(json.dumps(answer) + "\n")
    replies.flush()


class Side:
    """The line under work: its matrices, options, and arrays for the results."""

    def __init__(self, device):
        self.device = device

    def prepare(self, line):
        self.d = self.e = self.options = None  # the memory of the last line
        self.d, self.e = line.make()
        self.options = line.options | {"device": self.device}
        if line.options.get("compute_uv", True):
            self.options["out"] = self._out(line)
        if self.device != "cpu":
            self.options["full_output"] = True
        first = self.time(1, 1)  # loads libraries and touches memory
        brief = first["end_to_end"][0] < BRIEF and not line.once
        return self.time(1, 1) if brief else first

    def _out(self, line):
        """L, s, R whose pages exist."""
        batch, n, dtype = self.d.shape[:-1], self.d.shape[-1], self.d.dtype
        first, last = line.options.get("select_range", (0, n - 1))
        k = last - first + 1
        return tuple(np.ones((*batch, *shape), dtype) for shape in ((n, k), (k,), (k, n)))

    def time(self, calls, repeats):
        """Clock -> seconds of a call, of each repeat.

        end_to_end; on the CPU processor, summed over the threads, which other work disturbs less;
        on a CUDA device from d and e there to the results there.
        """
        found = {"end_to_end": [], "processor" if self.device == "cpu" else "device": []}
        gc.disable()
        for _ in range(repeats):
            on_device = 0.0
            start, used = time.perf_counter(), time.process_time()
            for _ in range(calls):
                result = tsvd.svd(self.d, self.e, **self.options)
                if self.device != "cpu":
                    on_device += result[1].seconds["device"]
            found["end_to_end"].append((time.perf_counter() - start) / calls)
            if self.device == "cpu":
                found["processor"].append((time.process_time() - used) / calls)
            else:
                found["device"].append(on_device / calls)
        gc.enable()
        return found


if __name__ == "__main__":
    main(sys.argv[1])
