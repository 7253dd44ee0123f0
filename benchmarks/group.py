"""The form of a benchmark, and its run: it measures, prints, checks the targets, writes the file.

The module of a benchmark has a GROUP: cases, a function that measures one, the columns that are
printed, and targets. The table in __main__.py names the module.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from benchmarks import bars
from testing import results

# Keys of what a record says beside its columns.
NOTES = ("skipped", "failed", "note", "lapack_note", "same_card_note")


@dataclass(frozen=True)
class Part:
    """Cases that are measured in the same way.

    name: the name of their records in the result file; those without one are printed only.
    cases(run): the cases, made while the run goes on. measure(run, case): a record, or a list of
    records. columns: what is printed, keys of a record or ratios of two, each with the format of
    its number: "family:<12 n seconds:s device/floor:.2f"; < is for text, s for seconds.
    shown(record): what is printed of it instead, one or a list. devices: where it is measured.
    """

    name: str
    cases: Callable
    measure: Callable
    columns: str
    shown: Callable = lambda record: record
    head: str = ""
    devices: tuple[str, ...] = ("cpu", "cuda")

    def title(self):
        return "  ".join(f"{key:{place}}" for key, place, _ in self._columns())

    def lines(self, record):
        """What is printed of a record."""
        return [_line(shown, self._columns()) for shown in _listed(self.shown(record))]

    def _columns(self):
        """Key, place and format of a number."""
        for word in self.columns.split():
            key, _, form = word.partition(":")
            is_text = form.startswith("<")
            yield key, form if is_text else f">{max(len(key), 8)}", "" if is_text else form


@dataclass(frozen=True)
class Group:
    """A benchmark.

    files: device -> name of the result file; it runs on these devices. bars(run): the targets.
    contents(run): what the file holds beside the records, or instead of those of a part.
    prepare(run): comes first, such as to load kernels. seconds: how long it may take, or that by
    device.
    """

    files: dict[str, str]
    parts: list[Part]
    bars: Callable | None = None
    contents: Callable = lambda run: {}
    prepare: Callable = lambda run: None
    seconds: float | dict[str, float] = inf


class Run:
    """A run that goes on: the options of the command, the records so far, and the clock."""

    def __init__(self, group, options):
        self.options, self.repeats, self.threads = options, options.repeats, options.threads
        self.device = options.device if options.device in group.files else next(iter(group.files))
        seconds = group.seconds[self.device] if isinstance(group.seconds, dict) else group.seconds
        self.seconds = options.seconds or seconds
        self.start = time.monotonic()
        self.records = {}  # by the name of the part
        self.prepared = None  # what prepare() returned

    @property
    def elapsed(self):
        return time.monotonic() - self.start

    def left(self, share=1):
        """Seconds until the run, or a share of it, should end."""
        return share * self.seconds - self.elapsed


def run(group, options, folder):
    """Writes the result file. Returns the exit status: 0 if all targets are met."""
    load = results.load()
    run = Run(group, options)
    run.prepared = group.prepare(run)
    for part in group.parts:
        if run.device not in part.devices:
            continue
        records = run.records[part.name] = run.records.get(part.name, [])
        print("", *filter(None, (part.head, part.title())), sep="\n", flush=True)
        for case in part.cases(run):
            found = _listed(part.measure(run, case))
            records += found
            for record in found:
                print(*part.lines(record), sep="\n", flush=True)
    contents = group.contents(run)
    written = {name: records for name, records in run.records.items() if name}
    contents |= {name: written[name] for name in written if name not in contents}
    missed = any(not record.get("within", True) for record in written.get("cases", ()))
    if group.bars:
        contents["bars"] = group.bars(run)
        missed = bars.show(contents["bars"]) > 0
    path = options.output or folder / f"{group.files[run.device]}.json"
    results.write(path, run.threads, load, **contents)
    return 1 if missed else 0


def _listed(found):
    return found if isinstance(found, list) else [found]


def _line(record, columns):
    cells = []
    for key, place, form in columns:
        value = record.get(key)
        if "/" in key:
            over, under = (record.get(one) for one in key.split("/"))
            value = over / under if over and under else None
        if value is None:
            text = ""
        elif isinstance(value, (bool, str, dict)):
            text = str(value)
        else:
            text = bars.text(value, "s") if form == "s" else format(value, form)
        cells.append(f"{text:{place}}")
    notes = "".join(f"  {key}: {record[key]}" for key in NOTES if record.get(key))
    return "  ".join(cells).rstrip() + notes
