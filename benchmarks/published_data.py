"""The published figures, data/published_tables.json; data/README.md tells their origin."""

import json
from pathlib import Path

PUBLISHED = Path(__file__).parent / "data" / "published_tables.json"
MAX_SWEEPS = 10_000_000  # some of the published matrices need over a million


def published_and_remade():
    """The published figures, and those of the published kernel on one H200: (n, range) -> row."""
    published = json.loads(PUBLISHED.read_text())
    rows = published["same_kernel_on_one_h200"]["rows"]
    return published, {(row["n"], row["range"]): row for row in rows}
