"""Bidiagonal matrices with a column more than rows, or a row more, against square ones.

Of matrices of one order in turns: on CUDA those of arrays that stay on the device, and of single
ones also on the host.
"""

from statistics import median

import numpy as np

import tsvd
from benchmarks import bars
from benchmarks.group import Group, Part
from benchmarks.timing import interleaved

# (matrices, n)
CASES = {
    "cuda": [(1, 200), (1, 1000), (1, 3000), (1, 10_000), (10_000, 32), (1000, 100)],
    "cpu": [(1, 30), (1, 100), (1, 300), (1, 1000), (1, 2000), (10_000, 8), (1000, 32)],
}
FORMS = ("square", "upper", "lower")
MOST = 1.03  # target: time over that of the square matrix


def _measure(run, case):
    where, matrices, n = case
    shape = (n,) if matrices == 1 else (matrices, n)
    d, e = np.random.default_rng(n).random((2, *shape))
    wait = _nothing
    if where == "device":
        import torch

        d, e = torch.from_numpy(d).cuda(), torch.from_numpy(e).cuda()
        wait = torch.cuda.synchronize
    square = e[..., :-1] if where == "device" else np.ascontiguousarray(e[..., :-1])
    options = {"device": "cuda" if where == "host" else None if where == "device" else "cpu"}
    off = {"square": square, "upper": e, "lower": e}

    def call(function, form):
        def timed():
            function(d, off[form], lower=form == "lower", **options)
            wait()

        return timed

    contenders = {form: call(tsvd.svd, form) for form in FORMS}
    contenders |= {f"values_{form}": call(tsvd.svdvals, form) for form in FORMS[:2]}
    seconds = interleaved(contenders, run.repeats)
    return {"where": where, "matrices": matrices, "n": n} | {
        name: median(times) for name, times in seconds.items()
    }


def _nothing():
    pass


def _cases(run):
    for matrices, n in CASES[run.device]:
        yield "cpu" if run.device == "cpu" else "device", matrices, n
        if run.device == "cuda" and matrices == 1:
            yield "host", matrices, n


def _bars(run):
    asked = []
    for case in run.records["cases"]:
        what = f"{case['where']}, {case['matrices']:,} of n = {case['n']:,}"
        for form, over in (("upper", "square"), ("lower", "square"), ("values_upper", None)):
            ratio = case[form] / case[over or "values_square"]
            asked.append(bars.at_most(f"{what}, {form.replace('_', ', ')}", MOST, ratio, "×"))
    return asked


GROUP = Group(
    files={"cpu": "extra_cpu", "cuda": "extra"},
    parts=[
        Part(
            "cases",
            _cases,
            _measure,
            "where:<8 matrices n square:s upper/square:.2f lower/square:.2f values_square:s "
            "values_upper/values_square:.2f",
            head="medians; times over those of square matrices",
        )
    ],
    bars=_bars,
)
