"""Values and vectors on the GPU by divide and conquer.

They are compared with peers, with the time that products and copies must take, and with targets.
Two times are measured. On the device: from the moment d and e are on the device until L, s and R
are, by events. End to end: from d and e on the host to arrays whose pages exist.
"""

import time
from statistics import median

import numpy as np

from benchmarks import bars, cuda
from benchmarks.cases import CLASSES
from benchmarks.errors import errors
from benchmarks.group import Group, Part
from benchmarks.timing import both_times, solve, touched
from testing import families, lapack
from testing.measures import BOUNDS

METHOD, DEVICE = "dc", "cuda"
SIZES = (1024, 2048, 4096, 8192, 10000, 16384, 32768)
LARGEST_CHECKED = 16384  # residual and orthogonality are measured up to this order
LARGEST_PEER = 16384

GEMM_ORDER = 8192  # order of the products whose rate gives the floor
LARGEST_COPY = 2**31  # bytes; the largest pinned copy that is timed

# Seconds. A call of a peer is left out if its time at a smaller order, growing with n^3, predicts
# more than LONGEST. A call shorter than BRIEF is made once more and then timed three times.
LONGEST = 15.0
BRIEF = 1.0
SHARE = 0.7  # share of the run's seconds that tsvd may use

# Peers in the order in which they are measured; peers in one tuple are measured together, size by
# size. The results of cuSOLVER stay on the device, so it is compared with our time on the device.
# LAPACK is compared with our time end to end.
PEERS = (("gesvdj",), ("dbdsdc", "gesvd"))
AGAINST = {"gesvdj": "device", "gesvd": "device", "dbdsdc": "end_to_end"}


def _sizes(run):
    """Orders over `largest` are left out, and their targets count as missed."""
    return [n for n in SIZES if n <= run.options.largest]


def _rates(run):
    """Flops per second of products and bytes per second of pinned copies, by order."""
    print(f"rate of the products and of the pinned copy ({cuda.library().name}) ...", flush=True)
    sizes = _sizes(run)
    rates = {"gemm_order": GEMM_ORDER, "gemm": cuda.gemm_rate(GEMM_ORDER, 5)}
    rates["gemm_at"] = {n: cuda.gemm_rate(n, _repeats(n)) for n in sizes}
    cuda.library().free()
    copies = {n: min(16 * n * n, LARGEST_COPY) for n in sizes}
    seconds = {size: cuda.pinned_seconds(size, 5) for size in sorted(set(copies.values()))}
    rates["pinned"] = {n: size / seconds[size] for n, size in copies.items()}
    cuda.library().free()
    copied = max(rates["pinned"].values()) / 1e9
    print(f"{rates['gemm'] / 1e12:.1f} TFLOP/s at n = {GEMM_ORDER}, {copied:.1f} GB/s")
    return rates


def _repeats(n):
    return 5 if n < 16384 else 3 if n < 32768 else 2


# ---- tsvd ----


def _measure(run, n):
    """One case for each class, timed in turns. The first call of each is checked, not timed."""
    cases = [{"family": family, "n": n, "peers": {}} for family in CLASSES]
    estimate, rates = _estimate_ours(n, run.records["cases"]), run.prepared
    if estimate > run.left(SHARE):
        return _skipped(cases, f"estimated {estimate:.0f} s")
    matrices = [families.make(family, n) for family in CLASSES]
    try:
        for case, (d, e) in zip(cases, matrices, strict=True):
            _solve(d, e)
            if n <= LARGEST_CHECKED:
                measured = errors(DEVICE, d, e, *touched(n))
                case |= {key: measured[key] for key in ("residual", "orthogonality")}
                cuda.library().free()
        runs = [[_solve(d, e) for d, e in matrices] for _ in range(_repeats(n))]
    except (MemoryError, RuntimeError, np.linalg.LinAlgError) as error:
        return _skipped(cases, f"{type(error).__name__}: {error}")
    for case, own in zip(cases, zip(*runs, strict=True), strict=True):
        middle = sorted(own, key=lambda one: one["end_to_end"])[len(own) // 2]
        case |= {key: middle[key] for key in ("phases", "deflated")}
        case |= both_times(own)
        case["floor"] = 8 / 3 * n**3 / rates["gemm"]
        case["floor_at_n"] = 8 / 3 * n**3 / rates["gemm_at"][n]
        case["copies"] = 16 * n * n / rates["pinned"][n]
    return cases


def _skipped(cases, why):
    return [case | {"skipped": why} for case in cases]


def _estimate_ours(n, before):
    """Estimates seconds of all calls at this order from the order before; 0 if there is none."""
    last = [case for case in before[-len(CLASSES) :] if "end_to_end" in case]
    return (1 + _repeats(n)) * sum(case["end_to_end"] * (n / case["n"]) ** 3 for case in last)


def _solve(d, e):
    return solve(d, e, method=METHOD, device=DEVICE, out=touched(len(d)))


def _shown(case):
    """Also the seconds of a whole call beside those on the device."""
    if "skipped" in case:
        return case
    return case | {"beside": case["end_to_end"] - case["device"]}


# ---- peers ----


def _peers(run):
    """Records and their peers."""
    for name in AGAINST:
        _call(name, *families.make("chi", 64))()  # loads the library
    for names in PEERS:
        for case in run.records["cases"]:
            if case["n"] <= LARGEST_PEER and "skipped" not in case:
                for name in names:
                    yield case, name


def _measure_peer(run, case):
    """Adds seconds and ratio to record["peers"], or a note why there are none."""
    record, name = case
    smaller = [c for c in run.records["cases"] if c["family"] == record["family"]]
    peer = _peer(name, record, _estimate(name, record["n"], smaller), run.left())
    ours = None
    if "seconds" in peer:
        ours = record[AGAINST[name]]
        peer |= {"against": AGAINST[name], "ratio": peer["seconds"] / ours}
    record["peers"][name] = peer
    return {"peer": name, "family": record["family"], "n": record["n"], "ours": ours} | peer


def _estimate(name, n, smaller):
    """Estimates seconds by n^3 from the largest smaller order; 0 if none was measured."""
    for case in reversed(smaller):
        peer = case["peers"].get(name, {})
        if case["n"] < n and "seconds" in peer:
            return peer["seconds"] * (n / case["n"]) ** 3
    return 0.0


def _peer(name, record, estimate, left):
    if left <= 0:
        return {"note": "skipped: the time is up"}
    if estimate > min(LONGEST, left):
        return {"note": f"skipped: estimated {estimate:.0f} s"}
    try:
        one = _call(name, *families.make(record["family"], record["n"]))
        first = one()
        runs = [one() for _ in range(3)] if first < BRIEF else [first]
    except (RuntimeError, MemoryError, np.linalg.LinAlgError) as error:
        return {"note": f"failed: {error}".splitlines()[0][:200]}
    return {"seconds": median(runs), "runs": runs}


def _call(name, d, e):
    """A function that calls the peer and returns the seconds of the call."""
    if name != "dbdsdc":
        gpu, B = cuda.library(), cuda.dense(d, e)
        return lambda: gpu.seconds(lambda: gpu.svd(B, name))
    room = lapack.dbdsdc_room(len(d))

    def call():
        start = time.perf_counter()
        lapack.dbdsdc(d, e, room)
        return time.perf_counter() - start

    return call


# ---- targets ----


def _bars(run):
    """The targets. If a case was skipped or left out, its targets count as missed."""
    cases = run.records["cases"]
    found = {(case["family"], case["n"]): case for case in cases}

    def get(family, n, key):
        return found.get((family, n), {}).get(key)

    def floors(n):
        device, floor = (get("toeplitz", n, key) for key in ("device", "floor"))
        return device and device / floor

    asked = [
        bars.at_most("toeplitz, n = 10000, device / floor", 2.0, floors(10000), "×"),
        bars.at_most("toeplitz, n = 32768, device / floor", 1.5, floors(32768), "×"),
        bars.at_most(
            "chi, n = 10000, device: no more than toeplitz",
            get("toeplitz", 10000, "device"),
            get("chi", 10000, "device"),
        ),
        bars.at_most("uniform, n = 10000, device", 25e-3, get("uniform_1", 10000, "device")),
    ]
    for n, most in ((1024, 6e-3), (4096, 20e-3)):
        for family in CLASSES:
            asked.append(bars.at_most(f"{family}, n = {n}, device", most, get(family, n, "device")))
    for family in CLASSES:
        device, copies = (get(family, 10000, key) for key in ("device", "copies"))
        what = f"{family}, n = 10000, end to end: device + 1.5 copies"
        most = device and device + 1.5 * copies
        asked.append(bars.at_most(what, most, get(family, 10000, "end_to_end")))
    for n in SIZES:
        for family in CLASSES if n <= LARGEST_PEER else ():
            peers = get(family, n, "peers") or {}
            least = min((peer["ratio"] for peer in peers.values() if "ratio" in peer), default=None)
            what = f"{family}, n = {n}, the fastest peer's time over ours"
            asked.append(bars.at_least(what, 10 if n >= 4096 else 1, least))
    for key in ("residual", "orthogonality"):
        asked.append(bars.largest(f"{key}, the largest", BOUNDS[key](0), cases, key))
    return asked


GROUP = Group(
    files={"cuda": "vectors"},
    parts=[
        Part(
            "cases",
            _sizes,
            _measure,
            "family:<12 n device:s device/floor:.2f end_to_end:s beside:s beside/copies:.2f "
            "residual:.2f orthogonality:.2f deflated",
            _shown,
            head=f'method="{METHOD}", medians; floor: 8/3 n^3 flops at that rate; copies: 16 n^2 '
            "bytes at the pinned rate",
        ),
        Part("", _peers, _measure_peer, "peer:<8 family:<12 n seconds:s ours:s ratio:.1f"),
    ],
    bars=_bars,
    contents=lambda run: {
        "seconds": run.elapsed,
        "library": cuda.library().name,
        "rates": run.prepared,
    },
    prepare=_rates,
    seconds=150,
)
