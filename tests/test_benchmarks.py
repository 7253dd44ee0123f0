"""Benchmarks run and write files of one form, and the tables of the pages are what those give."""

import argparse
import dataclasses
import importlib
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks import bars, cases, dask, dense, group, inverse, jacobi, pictures, solutions, tables
from benchmarks.__main__ import BENCHMARKS, PAGES
from testing import results
from testing.command import RESULTS, ROOT

FILES = sorted(RESULTS.glob("*.json"))


def group_of(name):
    return importlib.import_module(f"benchmarks.{'cpu' if name == 'run' else name}").GROUP


def options(**given):
    """What the parser gives."""
    defaults = {"device": "cpu", "threads": 1, "repeats": 2, "seconds": None, "output": None}
    return argparse.Namespace(**defaults | {"group": None, "large": False} | given)


def run(of, path, **given):
    """The exit status, and what was written."""
    status = group.run(of, options(output=path, **given), path.parent)
    return status, json.loads(path.read_text())


def test_the_form_of_a_result_file():
    """Records take one line each, as do lists; all else is indented."""
    records = [{"n": 1, "seconds": [0.5, 2e-3]}, {"n": 2, "worst": {"n": None}, "at": [[1], [2]]}]
    content = {"threads": 2, "cases": records, "rates": {"at": {8: 1.5}, "all": (1, 2)}, "bars": []}
    assert (
        results.text(content)
        == """{
 "threads": 2,
 "cases": [
  {"n": 1, "seconds": [0.5, 0.002]},
  {"n": 2, "worst": {"n": null}, "at": [[1], [2]]}
 ],
 "rates": {
  "at": {
   "8": 1.5
  },
  "all": [1, 2]
 },
 "bars": []
}"""
    )
    assert json.loads(results.text(content)) == json.loads(json.dumps(content))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_committed_result_files(path):
    written = path.read_text()
    assert written == results.text(json.loads(written)) + "\n"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_tables_of_the_pages(path):
    page = path.read_text()
    filled, _ = tables.filled(page, RESULTS)
    assert filled == page


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_the_numbers_of_the_pictures(name):
    picture = ElementTree.parse(ROOT / pictures.FOLDER / f"{name}.svg")
    told = picture.findtext(".//{http://purl.org/dc/elements/1.1/}description")
    assert told == pictures.description(name, RESULTS)


def test_the_pictures_are_what_is_drawn(tmp_path):
    """Byte by byte with the Matplotlib that drew the committed ones."""
    pytest.importorskip("matplotlib")
    pictures.write(RESULTS, tmp_path)
    for name in pictures.PICTURES:
        drawn, committed = (
            (folder / f"{name}.svg").read_text() for folder in (tmp_path, ROOT / pictures.FOLDER)
        )
        by, by_committed = (re.search("Matplotlib v[0-9.]+", x)[0] for x in (drawn, committed))
        assert by != by_committed or drawn == committed


@pytest.mark.parametrize("name", [*BENCHMARKS, "cube"])
def test_groups_write_what_is_committed(name):
    """The committed files of a group have its parts, records for its columns and targets."""
    of = group_of(name)
    paths = {device: RESULTS / f"{file}.json" for device, file in of.files.items()}
    paths = {device: path for device, path in paths.items() if path.exists()}
    assert paths
    for device, path in paths.items():
        content = json.loads(path.read_text())
        run = group.Run(of, options(device=device))
        for part in of.parts:
            if part.name and device in part.devices:
                records = content[part.name]
                records = records["rows"] if name == "crossover" else records
                assert all(part.lines(record) for record in records)
                run.records[part.name] = records
        assert bool(of.bars and of.bars(run)) == ("bars" in content)


def planted(targets, **more):
    """Three cases, of which the last is left out and the others are measured together."""

    def measure(run, case):
        if case == "late":
            return {"what": case, "skipped": "the time is up"}
        return [{"what": f"{case} {i}", "seconds": i / 4, "floor": 0.25} for i in (1, 2)]

    part = group.Part(
        "cases", lambda run: ["early", "late"], measure, "what:<9 seconds:s seconds/floor:.1f"
    )
    return group.Group({"cpu": "planted"}, [part], targets, **more)


@pytest.mark.parametrize("most, status", [(0.5, 0), (0.4, 1)])
def test_a_run(most, status, tmp_path, capsys):
    def targets(run):
        return [bars.largest("the longest", most, run.records["cases"], "seconds")]

    of = planted(targets, contents=lambda run: {"prepared": run.prepared}, prepare=lambda run: 7)
    found, content = run(of, tmp_path / "planted.json", device="cuda")
    assert found == status and content["prepared"] == 7
    assert [case["what"] for case in content["cases"]] == ["early 1", "early 2", "late"]
    [bar] = content["bars"]
    assert bar["measured"] == 0.5 and bar["ok"] == (status == 0)
    shown = capsys.readouterr().out
    assert "early 2      500 ms            2.0\n" in shown
    assert "late  skipped: the time is up\n" in shown
    assert f"1 targets, {status} missed" in shown


def test_records_that_tell_whether_they_are_within_their_limit(tmp_path):
    part = group.Part(
        "cases", lambda run: [True, False], lambda run, case: {"within": case}, "within"
    )
    of = group.Group({"cpu": "limits"}, [part])
    status, content = run(of, tmp_path / "limits.json")
    assert status == 1 and "bars" not in content


SMALL = {
    "run": [[next(cases.cases())]],
    "dense": [
        [
            dense.Case("all vectors", 20, 20, 1.0),
            dense.Case("values only", 20, 10, 1.0, vectors=False),
            dense.Case("batch", 4, 4, 1.0, batch=3, dtype="float32"),
        ]
    ],
    "jacobi": [[jacobi.Case("all vectors", 10, 10, 1.0, graded=True)], [(16, "float64")]],
    "inverse": [[inverse.Case(4, 1.0, batch=3), inverse.Case(10, None, refine=True)]],
    "solutions": [
        [
            solutions.Case("pinv", (20, 20), ahead=1.0),
            solutions.Case("lstsq", (2, 30, 20), rank=12, dtype="float32"),
        ]
    ],
    "dask": [[dask.Case(dask.GRADED, 400, 20)]],
    "eps": [[(20, "chi")]],
    "crossover": [[("chi", 16)]],
}


@pytest.mark.parametrize("name", SMALL)
def test_small_runs_on_the_cpu(name, tmp_path, capsys):
    """What they write has the keys of what is committed."""
    of, path = group_of(name), tmp_path / "small.json"
    parts = [
        dataclasses.replace(part, cases=lambda run, small=small: small)
        for part, small in zip(of.parts, SMALL[name], strict=False)
    ]
    status, content = run(dataclasses.replace(of, parts=parts), path)
    assert status == (not all(bar["ok"] for bar in content.get("bars", ())))
    committed = RESULTS / f"{of.files['cpu']}.json"
    if committed.exists():
        assert content.keys() == json.loads(committed.read_text()).keys()
    assert path.read_text() == results.text(content) + "\n"
    assert f"written: {path}" in capsys.readouterr().out
