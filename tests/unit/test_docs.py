"""The docs: pages and links that are there, commands that exist, budgets of words, plain English."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.make_reference import pages as generated_pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SITE: Mapping[str, Any] = yaml.load(
    re.sub(r"!!python\S+", "", (ROOT / "mkdocs.yml").read_text("utf-8")), yaml.SafeLoader
)
GENERATED = generated_pages()


def _paths(entry: Any) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(entry, str):
        yield entry
    for inner in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from _paths(inner)


NAVIGATION = list(_paths(SITE["nav"]))
WRITTEN = [place for place in NAVIGATION if place not in GENERATED]
LINKING = [
    *(DOCS / place for place in WRITTEN if (DOCS / place).exists()),
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "lab").rglob("*.md")),
    ROOT / "examples" / "README.md",
]


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", prose(text), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def text_of(path: Path) -> str | None:
    """The text of a page, also of one that the site generates; None if there is none."""
    if path.is_relative_to(DOCS) and path.relative_to(DOCS).as_posix() in GENERATED:
        return GENERATED[path.relative_to(DOCS).as_posix()]
    if path.suffix == ".md" and path.is_file():
        return path.read_text("utf-8")
    return "" if path.exists() else None


def is_planned(path: Path) -> bool:
    """Whether a page of the navigation, or a result, is still to be moved."""
    return (path.is_relative_to(DOCS) and path.relative_to(DOCS).as_posix() in NAVIGATION) or (
        path.is_relative_to(ROOT / "bench" / "results")
    )


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", page.read_text("utf-8")):
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        text = text_of(found)
        if text is None and is_planned(found):
            continue
        assert text is not None, target
        assert not anchor or anchor in anchors(text), target
