"""Result files have one form, and the tables of the pages are what they give."""

import json

import pytest

from benchmarks import tables
from benchmarks.__main__ import PAGES
from testing import results
from testing.command import RESULTS

FILES = sorted(RESULTS.glob("*.json"))


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
