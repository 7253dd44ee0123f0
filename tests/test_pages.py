"""The pages for readers: their links lead somewhere, and their sentences are short."""

import re
from pathlib import Path

import pytest

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
