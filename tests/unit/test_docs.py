"""The docs: pages and links that are there, commands that exist, budgets of words, plain English."""

import ast
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from pydantic import BaseModel

from cardiolens.commands.help import VERBS
from cardiolens.config.conf_names import GROUPS, legal_names
from cardiolens.config.sweep import SweepSpec
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
REWRITTEN = ("index.md", "get-started/", "guides/")  # in the form that holds for all
TEXTS = {place: (DOCS / place).read_text("utf-8") for place in WRITTEN if place.startswith(REWRITTEN)}
LINKING = [*(DOCS / place for place in WRITTEN), *sorted(ROOT.glob("*.md")), ROOT / "examples" / "README.md"]
LINKING += [page for folder in ("lab", "bench") for page in sorted((ROOT / folder).rglob("*.md"))]


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", prose(text), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def text_of(path: Path) -> str | None:
    """The text of a page, also of one that the site generates; None if there is none."""
    if generated := GENERATED.get(os.path.relpath(path, DOCS)):
        return generated
    if path.suffix == ".md" and path.is_file():
        return path.read_text("utf-8")
    return "" if path.exists() else None


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", page.read_text("utf-8")):
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        text = text_of(found)
        assert text is not None, target
        assert not anchor or anchor in anchors(text), target


# ---- commands: each is a verb with options that it has, and names of `conf/` that are there

BLOCKS = re.compile(r'^```(?:sh|text)(?: title="\w+")?\n(.*?)^```', re.M | re.S)
COMMAND = re.compile(r"^(?:python -m cardiolens\.|cardiolens )(\w+)([^\n|;&)]*)", re.M)
FILES = re.compile(r'^```yaml title="conf/(\w+)/(\w+)\.yaml"', re.M)
SWEEPING = ("sweep", "prepare", "submit", "doctor")
OWN = {"model": {"a", "b", "c", "my_model"}, "dataset": {"brain"}}  # of examples


class AskedError(Exception):
    """The options of a verb, in place of its help."""


@cache
def options(verb: str) -> Mapping[str, type[BaseModel]]:
    """The options of a verb, by action."""

    def asked(doc: str | None, found: Mapping[str, type[BaseModel]], words: object) -> None:
        raise AskedError(found)

    with patch("cardiolens.commands.command.end_if_asked", asked), pytest.raises(AskedError) as caught:
        import_module(f"cardiolens.commands.{verb}").main()
    return caught.value.args[0]


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands of a page, each with its words."""
    for block in BLOCKS.findall(page.read_text("utf-8")):
        for verb, rest in COMMAND.findall(re.sub(r"\\\n\s*", " ", block)):
            words = shlex.split(re.sub(r"\s#.*|\$\(.*", "", rest))
            yield verb, [word for word in words if not word.startswith(("...", "-", "<"))]


def faults(page: Path) -> Iterator[str]:
    """What is wrong with the commands of a page."""
    for verb, words in commands(page):
        if verb not in {name for verbs in VERBS.values() for name in verbs}:
            yield f"no verb {verb}"
            continue
        if verb == "head":
            continue
        specs = options(verb)
        legal = {field.alias or name for spec in specs.values() for name, field in spec.model_fields.items()}
        legal |= {"experiment", "model", *SweepSpec.model_fields} if verb in SWEEPING else {"model"}
        for word in words:
            name, equals, value = word.lstrip("+").partition("=")
            if not equals and name not in specs:
                yield f"{verb}: no action {name}"
            elif equals and name.partition(".")[0].partition("/")[0] not in legal | {"hydra"}:
                yield f"{verb}: no option {name}"
            elif name in (*GROUPS, "experiment") and verb in SWEEPING:
                named = {one.partition("@")[0] for one in value.strip("[]").split(",")}
                strange = {one for one in named if re.fullmatch(r"\w+", one)}
                yield from (f"{verb}: no {name} {one}" for one in sorted(strange - names_of(name)))


def names_of(group: str) -> set[str]:
    """The names of a group: of the packaged files, and of those that a page shows."""
    shown = {name for text in TEXTS.values() for kind, name in FILES.findall(text) if kind == group}
    return shown | {*legal_names(group)} | OWN.get(group, set())


@pytest.mark.parametrize("page", TEXTS)
def test_commands_have_verbs_options_and_names_that_exist(page: str) -> None:
    assert list(faults(DOCS / page)) == []


NAMING = TEXTS | {path.name: path.read_text("utf-8") for path in sorted(ROOT.glob("*.md"))}


@pytest.mark.parametrize("page", NAMING)
def test_files_that_a_page_names_are_there(page: str) -> None:
    folders = "cardiolens|docs|tests|jobs|examples|bench|conf|requirements|slurm"
    named = re.findall(rf"`((?:{folders})/[\w./-]+)`", NAMING[page])
    own = {f"conf/{kind}/{name}.yaml" for text in TEXTS.values() for kind, name in FILES.findall(text)}
    assert [path for path in named if path not in own and not (ROOT / path).exists()] == []


# ---- budgets of words

BUDGETS: Mapping[str, int] = SITE["extra"]["max_words"]


def count(text: str) -> int:
    """The number of words: what holds a letter or a digit, so no bar of a table."""
    return sum(1 for word in text.split() if re.search(r"\w", word))


def test_every_page_has_a_budget_and_a_place_in_the_navigation() -> None:
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert there == BUDGETS.keys() - {"all"} == set(WRITTEN)


@pytest.mark.parametrize("page", TEXTS)
def test_a_page_keeps_its_budget(page: str) -> None:
    assert count(TEXTS[page]) <= BUDGETS[page]


def test_all_pages_keep_the_budget_of_all() -> None:
    assert sum(map(count, TEXTS.values())) <= BUDGETS["all"]


# ---- plain English: words that an engineer stumbles over, and what to write

STUMBLES = {
    r"tells?|told|telling": "say, report, state, detect, distinguish",
    r"whose": "of the, with its",
    r"of (?:which|whom)|from who|to who": "two sentences",
    r"(?:save|but) for": "except",
    r"dearest": "most expensive",
    r"ours|theirs|with us": "name the thing",
    r"(?:one|\d+|tokens|frames|requests|items|answers|questions|words) an? "
    r"(?:second|minute|hour|subtask|question|study|patient|frame|model|line)": "per",
    r"never (?:run|tried|tested|used)": "what was tested is in the README",
    r"made anew": "made again",
    r"at first look|at hand|be it|so be it": "what is true now",
    r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}": "no commit: figures are in bench/results",
}
DECIMAL = re.compile(r"(?<![\w.\])])\.\d")  # .94: 94 %, or 0.94


def stumbles(text: str) -> list[str]:
    """The words of a page that are never needed; code, links and quotations are free."""
    plain = re.sub(r"`[^`]*`|\]\([^)]*\)|\"[^\"]*\"|<[^>]*>", " ", prose(text))
    found = [match[0] for words in STUMBLES for match in re.finditer(rf"\b(?:{words})\b", plain, re.I)]
    return found + DECIMAL.findall(plain)


@pytest.mark.parametrize("page", TEXTS)
def test_a_page_is_in_plain_english(page: str) -> None:
    assert stumbles(TEXTS[page]) == []


# Answers of a person or a reader, and the words of an answer that is not read.
QUOTED = {"cannot tell", "I cannot tell"}


def texts_of_code() -> Iterator[tuple[str, str]]:
    """Docstrings, messages and help of the package: strings of more than one word, by file and line."""
    for path in sorted((ROOT / "cardiolens").rglob("*.py")):
        if path.name == "reply_words.py":  # patterns of replies
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and " " in text and text.strip(" .;") not in QUOTED:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def test_messages_and_docstrings_are_in_plain_english() -> None:
    found = [(where, word) for where, text in texts_of_code() for word in stumbles(text)]
    assert [(where, word) for where, word in found if word[0] != "."] == []  # .2 is a format there


def test_a_word_that_is_never_needed_is_seen() -> None:
    assert stumbles("The header tells which of `told` it is, of which .94 are ours.") == [
        "tells", "of which", "ours", ".9",
    ]  # fmt: skip
