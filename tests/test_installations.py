"""The tools that hold two installations against each other, with one in both places."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
GROUP = "threads/33/chi"


def compare(*arguments):
    """Exit status and output."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.compare", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode in (0, 1) and not done.stderr, done.stdout + done.stderr
    return done.returncode, done.stdout


def test_checksums_are_the_same_twice_and_tell_differences(device, tmp_path):
    paths = tmp_path / "old.json", tmp_path / "new.json"
    for path in paths:
        status, _ = compare("checksums", "--device", device, "--group", GROUP, "-o", path)
        assert status == 0
    status, output = compare("checksums", "--compare", *paths)
    assert status == 0 and "24 cases, all the same bits" in output

    content = json.loads(paths[1].read_text())
    cases = content["cases"]["threads"]
    bits, counts, lost, *_ = cases
    assert bits.startswith(GROUP)
    cases[bits] = "0" * 16 + cases[bits][16:]
    cases[counts] += "0"
    del cases[lost]
    paths[1].write_text(json.dumps(content))
    status, output = compare("checksums", "--compare", *paths)
    assert status == 1 and "24 cases: bits 1, counts 1, only old 1, only new 0" in output
    for kind, name in (("bits", bits), ("counts", counts), ("only old", lost)):
        assert f"{kind:<10}{name}\n" in output


def test_against_itself(tmp_path):
    path = tmp_path / "against.json"
    _, output = compare(
        *("against", "--old", sys.executable, "--group", "vectors/uniform_1/8/float64"),
        *("--rounds", "3", "-o", path),
    )
    assert "both are of the same build" in output
    [line] = json.loads(path.read_text())["lines"]
    assert line["name"] == "vectors/uniform_1/8/float64"
    for clock in ("end_to_end", "processor"):
        assert 0.01 < line[clock]["ratio"] < 100
        for side in ("old", "new"):
            assert 0 < line[clock][side]["least"] <= line[clock][side]["median"]
