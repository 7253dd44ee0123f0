"""Times every case, and measures the errors of the results."""

from statistics import median

from benchmarks.cases import cases
from benchmarks.timing import interleaved
from testing import measures, reference, results

# Reference values take O(n^2) steps in NumPy's long double, over a minute above this order.
LARGEST_REFERENCE = 1000
FEWER = 2000  # from this order on vectors are timed three times

ERRORS = ("residual", "orthogonality", "values")  # in units of eps, see testing/measures.py


def run(path, threads, repeats, group, large):
    records, load = [], results.load()
    print(
        f"{'case':<30}{'contender':<20}{'median, ms':>11}{'spread':>8}{'ratio':>8}{'target':>7}"
        f"{'residual':>11}{'orthog.':>11}{'values':>11}"
    )
    for case in cases(large):
        if group in (None, case.group):
            records.append(_record(case, repeats))
            _show(records[-1])
    results.write(path, threads, load, repeats=repeats, cases=records)


def _record(case, repeats):
    fewer = case.group == "vectors" and case.n >= FEWER
    seconds = interleaved(case.contenders, min(repeats, 3) if fewer else repeats)
    medians = {name: median(times) for name, times in seconds.items()}
    against = dict.fromkeys(seconds, next(iter(seconds))) | case.against
    measured = _measures(case)
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


def _measures(case):
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


def _show(record):
    size = f"{record['batch']} of {record['n']}" if record["batch"] > 1 else record["n"]
    case = f"{record['group']}, {record['family']}, {size}"
    for contender in record["contenders"]:
        times = contender["seconds"]
        spread = (max(times) - min(times)) / contender["median"]
        asked = "" if contender["least_ratio"] is None else f"{contender['least_ratio']:g}"
        errors = (contender.get(key) for key in ERRORS)
        print(
            f"{case:<30}{contender['name']:<20}{contender['median'] * 1e3:>11.3f}{spread:>8.0%}"
            f"{contender['ratio']:>8.2f}{asked:>7}"
            + "".join(f"{'' if x is None else f'{x:.3g}':>11}" for x in errors)
        )
        case = ""
