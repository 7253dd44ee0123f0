"""What is asked of the measurements of a run, and whether it holds."""

import numpy as np

from benchmarks import results


def at_most(what, asked, measured, unit="s"):
    """asked, measured: None where it could not be measured, which counts as missed."""
    ok = None not in (asked, measured) and measured <= asked
    return _bar(what, "≤", asked, measured, unit, ok)


def at_least(what, asked, measured, unit="×"):
    ok = None not in (asked, measured) and measured >= asked
    return _bar(what, "≥", asked, measured, unit, ok)


def worst(measured):
    """The largest; NaN if there is one among them, None if there is nothing."""
    measured = list(measured)
    return float(np.max(measured)) if measured else None


def _bar(what, relation, asked, measured, unit, ok):
    return {
        "what": what,
        "relation": relation,
        "asked": asked,
        "measured": measured,
        "unit": unit,
        "ok": ok,
    }


def conclude(path, threads, load, bars, **contents):
    """Ends a run: prints all, writes them with its contents, and returns the exit status."""
    status = _show(bars)
    results.write(path, threads, load, **contents, bars=bars)
    return status


def _show(bars):
    """The exit status is 0 if every one holds."""
    print(f"\n{'asked of it':<62}{'asked':>13}{'measured':>13}")
    for bar in bars:
        asked = f"{bar['relation']} {text(bar['asked'], bar['unit'])}"
        print(
            f"{bar['what']:<62}{asked:>13}{text(bar['measured'], bar['unit']):>13}"
            f"{'   ok' if bar['ok'] else '   MISSED'}"
        )
    missed = sum(not bar["ok"] for bar in bars)
    print(f"{len(bars)} asked, {missed} missed", flush=True)
    return 1 if missed else 0


def text(value, unit):
    if value is None:
        return "not measured"
    if unit == "s" and value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g}{'×' if unit == '×' else f' {unit}' if unit else ''}"
