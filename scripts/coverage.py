#!/usr/bin/env python3
"""Which lines of csrc/ no C test reached, after they ran in a build of the preset "coverage".

usage: scripts/coverage.py BUILD_FOLDER

A source is compiled for several precisions and instruction sets.  A line counts as reached if one
of them reached it.  csrc/python is not part of that build.
"""

import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def counts(build):
    """file -> line -> how often it ran, the sum over all objects."""
    found = collections.defaultdict(collections.Counter)
    for notes in sorted(pathlib.Path(build).rglob("csrc/**/*.gcno")):
        said = subprocess.run(
            ["gcov", "--json-format", "--stdout", notes.resolve()],
            capture_output=True,
            text=True,
            check=True,
            cwd=build,
        )
        for document in said.stdout.splitlines():
            for file in json.loads(document)["files"]:
                path = pathlib.Path(build, file["file"]).resolve()
                if path.is_relative_to(ROOT / "csrc"):
                    for line in file["lines"]:
                        found[path][line["line_number"]] += line["count"]
    return found


def main(build):
    lines = reached = 0
    for path, of_file in sorted(counts(build).items()):
        text = path.read_text().splitlines()
        missed = sorted(number for number, count in of_file.items() if count == 0)
        lines += len(of_file)
        reached += len(of_file) - len(missed)
        for number in missed:
            print(f"{path.relative_to(ROOT)}:{number}:{text[number - 1]}")
    print(f"{reached} of {lines} lines reached: {100 * reached / lines:.2f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
