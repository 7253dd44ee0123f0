"""Times every case, and measures the errors of the results."""

from statistics import median

from benchmarks.cases import cases
from benchmarks.group import Group, Part
from benchmarks.timing import interleaved
from testing import measures, reference

# Reference values take O(n^2) steps in NumPy's long double, over a minute above this order.
LARGEST_REFERENCE = 1000
FEWER = 2000  # from this order on vectors are timed three times


def _cases(run):
    group = run.options.group
    return (case for case in cases(run.options.large) if group in (None, case.group))


def _measure(run, case):
    fewer = case.group == "vectors" and case.n >= FEWER
    seconds = interleaved(case.contenders, min(run.repeats, 3) if fewer else run.repeats)
    medians = {name: median(times) for name, times in seconds.items()}
    against = dict.fromkeys(seconds, next(iter(seconds))) | case.against
    measured = _errors(case)
    return {
        "group": case.group,
        "family": case.family,
        "n": case.n,
        "batch": case.batch,
        "contenders": [
            {
                "name": name,
                "median": medians[name],
                "against": against[name],
                "ratio": medians[name] / medians[against[name]],
                "least_ratio": case.least.get(name),
                "seconds": times,
            }
            | measured[name]
            for name, times in seconds.items()
        ],
    }


def _errors(case):
    """Residual, orthogonality and error of s; for a batch those of its first matrix."""
    d, e = case.d.reshape(-1, case.n)[0], case.e.reshape(-1, case.n - 1)[0]
    s_ref = reference.singular_values(d, e) if case.n <= LARGEST_REFERENCE else None
    measured = {}
    for name, function in case.contenders.items():
        result = function()
        L, s, R = result if isinstance(result, tuple) else (None, result, None)
        s = s.reshape(-1, case.n)[0]
        found = measured[name] = {}
        if s_ref is not None:
            found["values"] = measures.value_error(s, s_ref)
        if L is not None:
            L, R = (x.reshape(-1, case.n, case.n)[0] for x in (L, R))
            found["residual"] = measures.residual(d, e, L, s, R)
            found["orthogonality"] = measures.orthogonality(L, R)
    return measured


def _shown(record):
    """A line for each contender, with the case in the first."""
    size = f"{record['batch']} of {record['n']}" if record["batch"] > 1 else record["n"]
    lines = []
    for contender in record["contenders"]:
        times = contender["seconds"]
        spread = (max(times) - min(times)) / contender["median"]
        case = "" if lines else f"{record['group']}, {record['family']}, {size}"
        lines.append(
            contender | {"case": case, "spread": spread, "target": contender["least_ratio"]}
        )
    return lines


GROUP = Group(
    files={"cpu": "cpu"},
    parts=[
        Part(
            "cases",
            _cases,
            _measure,
            "case:<30 name:<20 median:s spread:.0% ratio:.2f target:g residual:.3g "
            "orthogonality:.3g values:.3g",
            _shown,
            head="errors in the units of testing/measures.py",
        )
    ],
    contents=lambda run: {"repeats": run.repeats},
)
