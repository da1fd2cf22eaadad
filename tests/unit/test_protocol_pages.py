"""Pages of the protocol: one heading a section, an index that finds it, references that resolve."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "docs" / "protocol"
SPECIFICATIONS = ("cardiolens/phantom/SPEC.md", "cardiolens/benchmarks/MEDTHINKVQA.md", "tests/README.md")
CITING = [
    path
    for folder in ("cardiolens", "conf", "tests", "bench", "jobs", "docs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".yaml", ".md"}
]
NUMBER = r"\d+(?:\.\d+)*"
# a list goes on with dotted numbers, or with a plain one after "and": a comma may also begin "200 patients"
CITED = re.compile(
    rf"\bprotocol[\s#]+({NUMBER}(?:(?:,| and| or| to) \d+(?:\.\d+)+| and \d+)*)", re.IGNORECASE
)


def headings(page: Path) -> list[str]:
    """The headings of a page, without those of its code blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    return re.findall(r"^#+ (.+)$", text, flags=re.M)


def sections(page: Path) -> list[str]:
    """The numbers of the sections that a page holds."""
    return [found[1] for heading in headings(page) if (found := re.match(rf"({NUMBER}) ", heading))]


def numbers() -> list[str]:
    """The numbers of all sections of the protocol's pages."""
    return [number for page in sorted(PROTOCOL.glob("*.md")) for number in sections(page)]


def specified() -> list[str]:
    """The numbers of the sections that stand beside the code."""
    checks = re.findall(r"^\| (14\.\d+) \|", (ROOT / "tests" / "README.md").read_text(), re.M)
    return [*(number for page in SPECIFICATIONS for number in sections(ROOT / page)), *checks]


def cited(text: str) -> Iterator[str]:
    """The sections that a text refers to by number."""
    for reference in CITED.findall(text):
        yield from re.findall(NUMBER, reference)


def test_every_section_has_one_heading():
    every = numbers() + specified()
    assert len(every) == len(set(every))


def test_the_index_leads_to_every_section():
    index = (PROTOCOL / "README.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .* \| \[.*\]\((\S+?)#\S+\) \|$", index, re.M)
    assert [number for number, _ in rows] == sorted({n.split(".")[0] for n in numbers()}, key=int)
    assert [(n, page) for n, page in rows if n not in sections(PROTOCOL / page)] == []
    assert [page for page in SPECIFICATIONS if f"`{page}`" not in index] == []


def test_every_reference_to_the_protocol_names_a_section():
    known = {*numbers(), *specified()}
    assert [f"{path}: {n}" for path in CITING for n in cited(path.read_text()) if n not in known] == []
