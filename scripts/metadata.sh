#!/usr/bin/env bash
# Checks what tells others about the project: pyproject.toml, CITATION.cff, the workflows and issue
# forms, and the recipe of conda.  It needs the extra "dev".
set -euo pipefail
cd "$(dirname "$0")/.."

validate-pyproject pyproject.toml packaging/*/pyproject.toml
# in an environment of its own: it needs an old jsonschema
[ -x build/cffconvert/bin/cffconvert ] || {
    python3 -m venv --clear build/cffconvert
    build/cffconvert/bin/python -m pip install --quiet cffconvert
}
build/cffconvert/bin/cffconvert --validate
check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
! command -v actionlint >/dev/null || actionlint

python3 - <<'CHECK'
import pathlib
import re

from rattler_build import Stage0Recipe

recipe = Stage0Recipe.from_file("conda/recipe.yaml")
version = re.search(r'(?m)^version = "(.+)"', pathlib.Path("pyproject.toml").read_text())[1]
for name in ("conda/recipe.yaml", "CITATION.cff"):
    assert re.search(rf'(?m)^ *version: "?{version}"?$', pathlib.Path(name).read_text()), name
changes = pathlib.Path("CHANGELOG.md").read_text()
assert re.search(rf"(?m)^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changes), "CHANGELOG.md"
print(f"conda/recipe.yaml is a recipe; all say {version}")
CHECK
