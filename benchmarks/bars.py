"""The targets of a run: bounds on what it measures, and whether they are met."""

import numpy as np


def at_most(what, asked, measured, unit="s"):
    """A target that could not be measured (None) counts as missed."""
    ok = None not in (asked, measured) and measured <= asked
    return _bar(what, "≤", asked, measured, unit, ok)


def at_least(what, asked, measured, unit="×"):
    ok = None not in (asked, measured) and measured >= asked
    return _bar(what, "≥", asked, measured, unit, ok)


def largest(what, asked, records, key):
    """A bound on the largest of what the records have under a key."""
    return at_most(what, asked, worst(record[key] for record in records if key in record), "")


def worst(measured):
    """The largest; NaN if any is NaN, None if there are none."""
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


def show(bars):
    """Prints the targets. Returns how many are missed."""
    print(f"\n{'':<62}{'target':>13}{'measured':>13}")
    for bar in bars:
        asked = f"{bar['relation']} {text(bar['asked'], bar['unit'])}"
        print(
            f"{bar['what']:<62}{asked:>13}{text(bar['measured'], bar['unit']):>13}"
            f"{'   ok' if bar['ok'] else '   MISSED'}"
        )
    missed = sum(not bar["ok"] for bar in bars)
    print(f"{len(bars)} targets, {missed} missed", flush=True)
    return missed


def text(value, unit):
    if value is None:
        return "not measured"
    if unit == "s" and value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g}{'×' if unit == '×' else f' {unit}' if unit else ''}"
