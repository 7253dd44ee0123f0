"""The pages for readers: their examples run, their links lead somewhere, sentences are short."""

import doctest
import importlib.util
import os
import re
from pathlib import Path

import pytest

import tsvd

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other tests need memory too

ROOT = Path(__file__).parent.parent
HOME = "https://github.com/tsvd/tsvd"
# Address in README.md, which is also read outside the repository -> what is there.
ABSOLUTE = rf"(?:{HOME}/(?:blob|tree)|https://raw.githubusercontent.com/tsvd/tsvd)/main/"
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
# The words of a sentence.
MOST = 24


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def check(folder, link):
    name, _, anchor = link.partition("#")
    path = (folder / name).resolve()
    assert path.exists(), link
    assert not anchor or anchor in anchors(path), link


@pytest.mark.parametrize("page", [*DOCS, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_links(page):
    for link in re.findall(r"\]\((?!https?:)([^)\s]*)\)", page.read_text()):
        path, _, anchor = link.partition("#")
        check(page.parent, f"{path or page.name}#{anchor}")


def test_links_of_the_readme():
    links = re.findall(r"\]\(([^)\s]*)\)", README.read_text())
    assert links
    for link in links:
        assert link.startswith("https://"), link
        if inside := re.match(ABSOLUTE, link):
            check(ROOT, link[inside.end() :])


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 130


def paragraphs(text):
    """Without code, tables and headings; an item of a list is a paragraph."""
    text = re.sub(r"<!-- table: .*?<!-- end of table -->", "", text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?:\||#|    ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ *(?:[-*]|\d+\.) ", "\n", text, flags=re.MULTILINE)
    return re.split(r"\n\s*\n", text)


def sentences(text):
    for paragraph in paragraphs(text):
        plain = re.sub(r"`[^`]*`", "code", paragraph)
        plain = re.sub(r"\]\([^)]*\)", "", plain)
        # A capital before the full stop is an initial.
        yield from re.split(r"(?<![ (][A-Z])(?<=[.!?])[)\"]?\s+", plain)


@pytest.mark.parametrize("page", [README, *DOCS], ids=lambda path: path.name)
def test_sentences_are_short(page):
    for sentence in sentences(page.read_text()):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        assert len(words) <= MOST, sentence


# ---- examples ----

# What the first line of an example says that it needs, and its module.
NEEDS = {
    "PyTorch": "torch",
    "CuPy": "cupy",
    "JAX": "jax",
    "Numba": "numba",
    "Dask": "dask",
    "Ray": "ray",
    "mpi4py": "mpi4py",
    "Zarr": "zarr",
}


def examples(page):
    """The Python examples of a page: the kind of each, its first line and its text."""
    found = re.findall(r"^```(python|pycon)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [(kind, text.splitlines()[0], text) for kind, text in found]


def missing(line):
    """What an example needs by its first line and this machine lacks."""
    needs = re.search(r"# needs (.*)", line)
    for name in re.split(r" and an? | and |, ", needs[1]) if needs else ():
        if name == "GPU":
            if len(tsvd.devices()) < 2:
                return name
        elif importlib.util.find_spec(NEEDS[name]) is None:
            return name
    return None


# PyTorch's own forward mode warns of PyTorch's own use of it.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize(
    ("page", "number"),
    [(page, i) for page in (README, *DOCS) for i in range(len(examples(page)))],
    ids=lambda x: x.name if isinstance(x, Path) else str(x),
)
def test_examples(page, number):
    """An example and those before it on its page, which it may build on, run as they stand."""
    if lacks := missing(examples(page)[number][1]):
        pytest.skip(f"there is no {lacks}")
    names = {}
    for kind, line, text in examples(page)[: number + 1]:
        if missing(line):
            continue
        if kind == "python":
            exec(compile(text, page.name, "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(text, names, page.name, None, 0)
        results = doctest.DocTestRunner().run(test, clear_globs=False)
        assert results.attempted > 0 and results.failed == 0
        names = test.globs


def test_there_are_examples():
    assert len(examples(README)) >= 2 and sum(len(examples(page)) for page in DOCS) >= 13
