"""The ends of the range of numbers: values next to the largest number, which are not infinite, and
values below the smallest normal number, which are rounded to the nearest."""

import numpy as np
import pytest

import tsvd
from testing.cases import DTYPES, Findings
from testing.families import make
from testing.measures import BOUNDS, orthogonality, value_error
from testing.reference import LONG, singular_values

METHODS = ("auto", "dc", "qr", "givens", "bisect")
SIZES = (1, 2, 3, 5, 20, 33, 70)


def values_of(d, e, method, device, eps=None):
    """The values without vectors, and those with vectors where the method has any."""
    found = {"values": tsvd.svdvals(d, e, method=method, device=device, eps=eps)}
    if method != "bisect":
        result = tsvd.svd(d, e, method=method, device=device, eps=eps)
        assert np.isfinite(result.L).all() and np.isfinite(result.R).all()
        assert orthogonality(result.L, result.R) <= BOUNDS["orthogonality"](d.shape[-1])
        found["with vectors"] = result.s
    return found


# ---- the largest number ----


def largest_entries(n, dtype):
    """Matrices with entries of the largest number, by name."""
    top = np.finfo(dtype).max
    d, e = np.full(n, top), np.zeros(n - 1, dtype)
    yield "diagonal", d, e
    yield "beside zeros", np.where(np.arange(n) == n // 2, top, 0).astype(dtype), e
    yield "beside ones", d, np.ones(n - 1, dtype)
    yield "beside the smallest", d, np.full(n - 1, np.finfo(dtype).smallest_subnormal)
    yield "above it", d, np.full(n - 1, top)
    yield "below it", np.full(n, top / 2), np.full(n - 1, top / 2)
    yield "on both sides", d * dtype(0.75), np.full(n - 1, top / 4)
    yield "graded", *make("graded_down", n, dtype, 1)
    d, e = d.copy(), np.full(n - 1, np.finfo(dtype).tiny)
    d[1:] = 3 * np.finfo(dtype).smallest_subnormal
    yield "of every size", d, e


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("eps", [None, 1.0])
def test_what_a_number_can_hold_is_not_infinity(method, dtype, eps, device):
    top = LONG(np.finfo(dtype).max)
    held = top * (1 + LONG(2) ** -60)  # the reference is not exact
    beyond = LONG(2) ** np.finfo(dtype).maxexp * (1 + LONG(2) ** -55)
    with Findings() as findings:
        for n in SIZES:
            for name, d, e in largest_entries(n, dtype):
                s_ref = singular_values(d, e)
                for which, s in values_of(d, e, method, device, eps).items():
                    where = f"{name} n={n} {which}"
                    sure = (s_ref <= held) | (s_ref >= beyond)
                    right = np.isinf(s) == (s_ref > held)
                    findings.holds(where, f"infinite where it must be: {s[:3]}", right[sure].all())
                    finite = np.isfinite(s)
                    error = abs(s[finite] - s_ref[finite]).max(initial=0)
                    error /= np.finfo(dtype).eps * top
                    findings.bound(where, "error of the values", error, 8 + n / 8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_number_alone(dtype, device):
    top = np.finfo(dtype).max
    for sign in (1, -1):
        assert tsvd.svdvals([dtype(sign * top)], [], device=device) == top
    batch = tsvd.svdvals(np.full((3, 2), top), np.zeros((3, 1), dtype), device=device)
    assert (batch <= top).all() and (batch >= top * (1 - 4 * np.finfo(dtype).eps)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_selection_at_the_largest_number(dtype, device):
    """What is given as the largest number is not above it; infinity is."""
    top = float(np.finfo(dtype).max)
    d, e = np.array([top, top, 1], dtype), np.array([top, 0], dtype)

    def between(low, high):
        return tsvd.svdvals(d, e, select="v", select_range=(low, high), device=device)

    s = tsvd.svdvals(d, e, device=device)
    assert np.isinf(s[0]) and np.isfinite(s[1:]).all()
    assert between(top, np.inf).tolist() == [s[0]]
    assert between(0, top).tolist() == s[1:].tolist()
    d, e = d[1:], e[1:]
    assert between(top, np.inf).size == 0 and between(1, top).tolist() == [top]


# ---- below the smallest normal number ----


def small_matrices(n, dtype):
    """Matrices with values below the smallest normal number, by name."""
    unit = np.finfo(dtype).smallest_subnormal
    rng = np.random.default_rng(n)
    ones = np.ones(2 * n - 1)
    digits = np.finfo(dtype).nmant
    whole = {
        "one unit": ones,
        "units": rng.integers(0, 3, 2 * n - 1),
        "some units": rng.integers(-50, 50, 2 * n - 1),
        "half the digits": rng.integers(0, 2 ** (digits // 2), 2 * n - 1),
        "many units": rng.integers(0, 2 ** (digits - 3), 2 * n - 1),
        "about the smallest normal": rng.integers(2 ** (digits - 1), 2 ** (digits + 1), 2 * n - 1),
    }
    for name, b in whole.items():
        b = (b * LONG(unit)).astype(dtype)
        yield name, b[::2], b[1::2]
    b = (rng.integers(1, 9, 2 * n - 1) * LONG(unit)).astype(dtype)
    b[: 2 * n - 1 : 4] = 1
    yield "beside one", b[::2], b[1::2]
    b[0] = np.finfo(dtype).max / 4
    yield "beside a large one", b[::2], b[1::2]


def nearest(s_ref, dtype):
    """The nearest number; and whether the reference is precise enough to tell."""
    unit = LONG(np.finfo(dtype).smallest_subnormal)
    steps = s_ref / unit
    sure = abs(steps - np.floor(steps) - 0.5) > steps * LONG(2) ** -59
    return (np.rint(steps) * unit).astype(dtype), sure


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_small_values_are_rounded_to_the_nearest(method, dtype, device):
    tiny = np.finfo(dtype).tiny
    with Findings() as findings:
        for n in SIZES:
            for name, d, e in small_matrices(n, dtype):
                s_ref = singular_values(d, e)
                expected, sure = nearest(s_ref, dtype)
                checked = sure & (expected < tiny)
                for which, s in values_of(d, e, method, device).items():
                    wrong = np.flatnonzero(checked & (s != expected))
                    where = f"{name} n={n} {which}"
                    findings.holds(where, f"nearest: values {wrong[:3]}", wrong.size == 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_of_small_values(dtype, device):
    unit = np.finfo(dtype).smallest_subnormal
    for n in (3, 20, 33):
        d, e = np.full((40, n), unit), np.full((40, n - 1), unit)
        expected, sure = nearest(singular_values(d[0], e[0]), dtype)
        assert sure.all() and np.array_equal(expected[:1], [2 * unit])
        assert (tsvd.svdvals(d, e, device=device) == expected).all()
        assert (tsvd.svd(d, e, device=device).s == expected).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_selection_of_small_values(dtype, device):
    """The bounds of an interval mean the values that are given."""
    unit = float(np.finfo(dtype).smallest_subnormal)
    d, e = np.full(3, unit, dtype), np.full(2, unit, dtype)
    assert tsvd.svdvals(d, e, device=device).tolist() == [2 * unit, unit, 0]
    for low, high, expected in (
        (-1, 0, [0]),
        (0, unit, [unit]),
        (unit, 2 * unit, [2 * unit]),
        (2 * unit, 1, []),
    ):
        s = tsvd.svdvals(d, e, select="v", select_range=(low, high), device=device)
        assert s.tolist() == expected


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("eps", [None, 2.0**-440])
def test_values_around_the_least_shift_of_plain_counts(n, eps, device):
    """On CUDA other counts find those below 2^-430 of the largest entry."""
    d, e = np.ones(n + 1), np.zeros(n)
    small_d, small_e = make("uniform_1", n)
    d[1:], e[1:] = small_d * 2.0**-430, small_e * 2.0**-430
    s_ref = np.concatenate([[1], singular_values(small_d, small_e) * LONG(2) ** -430])
    below = s_ref < LONG(2) ** -430
    assert n / 2 < below.sum() < n
    for count in (1, 3):  # alone, and as a batch
        s = tsvd.svdvals(np.tile(d, (count, 1)), np.tile(e, (count, 1)), eps=eps, device=device)
        assert (s == s[0]).all()
        if eps is None:
            assert value_error(s[0], s_ref) <= BOUNDS["values bisect"](n + 1)
        else:
            assert (abs(s[0] - s_ref) <= eps + 40 * np.finfo(float).eps * s_ref).all()


# ---- errors of squares ----


@pytest.mark.parametrize("method", ["bisect", "auto", "qr"])
def test_squares_that_are_rounded_opposite_ways(method, device):
    """All squares of d are rounded one way, all of e the other: their errors add up in the smallest
    value, which is much smaller than the largest."""
    for n in (3, 4, 6, 8, 12, 16):
        d = np.full(n, float.fromhex("0x1.0077c1b165fd1p-2"))
        e = np.full(n - 1, float.fromhex("0x1.007d00e2d25d4p+0"))
        s_ref = singular_values(d, e)
        for batch in ((), (40,)):
            s = tsvd.svdvals(
                np.broadcast_to(d, (*batch, n)),
                np.broadcast_to(e, (*batch, n - 1)),
                method=method,
                device=device,
            )
            worst = max(value_error(x, s_ref) for x in s.reshape(-1, n))
            assert worst <= BOUNDS[f"values {method}"](n), (n, batch)
