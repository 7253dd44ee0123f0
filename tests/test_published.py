"""The published tables, repeated: every figure is there, ours beside it, and what is refused."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from testing.dense_families import prime_toeplitz
from testing.measures import BOUNDS, INVERSE_BOUNDS

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "benchmarks" / "data" / "published_tables.json"

# Writes a table of one study, as the benchmark does: PATH.json, PATH_NAME.csv, and PATH.md.
PROGRAM = """
import json, sys
from pathlib import Path
from benchmarks import tables
from tools.published import neighbours, runner

name, device, path = sys.argv[1], sys.argv[2], Path(sys.argv[3])
study, until = neighbours.STUDIES[name], float("inf")
EDIT
rows = neighbours.rows(study, device, until)
path.write_text(json.dumps({name: rows}))
runner._write_csv(path.with_suffix(".csv"), rows)
lines = tables.TABLES[f"published_{name}"][0](json.loads(path.read_text()))
path.with_suffix(".md").write_text("\\n".join(lines))
"""

# One size alone: the least, or the next.
ONE = """
by_size = neighbours._by_size
neighbours._by_size = lambda published: dict(list(by_size(published).items())[{0}:{0} + 1])
"""

NOTHING = "until = 0\n"

# A device that takes no batches.
REFUSING = (
    ONE.format(1)
    + """
import dataclasses

def call(A, *arguments, **options):
    if A.ndim == 3:
        raise NotImplementedError("no batches")
    return neighbours._svd(A, *arguments, **options)

study = dataclasses.replace(study, call=call)
neighbours.JACOBI = study
"""
)


def python(*arguments, status=0, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def written(study, edit, folder, device="cpu"):
    """The rows, the lines of the CSV file, and the text of the tables."""
    path = folder / "table.json"
    python("-c", PROGRAM.replace("EDIT", edit), study, device, path)
    with path.with_suffix(".csv").open() as file:
        lines = list(csv.DictReader(file))
    return json.loads(path.read_text())[study], lines, path.with_suffix(".md").read_text()


def figures(key):
    """(n, experiment, setting, seconds) of the published tables."""
    for experiment, content in json.loads(TABLES.read_text())[key].items():
        if isinstance(content, dict):
            for setting, seconds in content.items():
                if setting not in ("sizes", "threads"):
                    for n, value in zip(content["sizes"], seconds, strict=True):
                        yield n, experiment, setting, value


@pytest.mark.parametrize(
    ("study", "key", "matrices", "count"),
    [("jacobi", "jacobi_svd", 1, 85), ("inverse", "gauss_jordan_inverse", 2, 18)],
)
def test_every_published_figure_is_there(study, key, matrices, count, tmp_path):
    rows, lines, text = written(study, NOTHING, tmp_path)
    assert all("seconds" not in row for row in rows)  # the time was up
    published = list(figures(key))
    assert len(published) == count
    for n, experiment, setting, seconds in published:
        here = [row for row in rows if row["n"] == n]
        assert len(here) == matrices
        assert all(row["published"][experiment][setting] == seconds for row in here)
        column = f"published.{experiment}.{setting}"
        assert [float(x[column]) for x in lines if x["n"] == str(n)] == [seconds] * matrices
    in_rows = (len(s) for row in rows for s in row["published"].values())
    assert sum(in_rows) == count * matrices
    assert text.count("| published: ") == len({experiment for _, experiment, _, _ in published})


@pytest.mark.parametrize("study", ["jacobi", "inverse"])
def test_ours_stand_beside(study, device, tmp_path):
    kinds = {"cpu"} | ({"batch", "auto"} if study == "jacobi" else set())
    if device == "cuda":
        pytest.importorskip("torch")
        kinds |= {"host", "device", "managed", "managed_with_host"}
        kinds |= {"cusolver"} if study == "jacobi" else set()
    rows, lines, text = written(study, ONE.format(0), tmp_path, device)
    for row, line in zip(rows, lines, strict=True):
        assert set(row["seconds"]) == kinds and row["refused"] == {}
        for kind, seconds in row["seconds"].items():
            assert 0 < seconds < 1 and float(line[f"seconds.{kind}"]) == seconds
        bound = BOUNDS["residual"](0) if study == "jacobi" else INVERSE_BOUNDS[False]
        assert 0 < row["residual"] <= bound
    assert "tsvd: on the CPU" in text and ("device arrays" in text) == (device == "cuda")


def test_what_is_refused_is_said(tmp_path):
    [row], [line], text = written("jacobi", REFUSING, tmp_path)
    assert row["refused"] == {"batch": "no batches"} == {"batch": line["refused.batch"]}
    assert set(row["seconds"]) == {"cpu", "auto"} and row["residual"] <= BOUNDS["residual"](0)
    assert text.count("| refused |") == 1


def test_without_a_device(tmp_path):
    path = tmp_path / "published_cuda.json"
    command = "-m", "tools.published", "--device", "cuda", "-o", path
    said = python(*command, status=1, CUDA_VISIBLE_DEVICES="")
    assert "device='cuda' cannot be used" in said
    assert not path.exists()


def test_prime_toeplitz():
    expected = [[2, 3, 5, 7], [3, 2, 3, 5], [5, 3, 2, 3], [7, 5, 3, 2]]
    assert np.array_equal(prime_toeplitz(4), expected)
