"""The pages of *Extend*: what they show composes, what they name is there, and each says what needs code."""

import re
import runpy
from pathlib import Path
from typing import get_args

import pytest
import yaml

from cardiolens.config.compose import read_spec
from cardiolens.config.sweep_factors import PromptSpec
from cardiolens.protocol.prompts.template import check_folder

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "extend").glob("*.md"))
BLOCK = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```', re.MULTILINE | re.DOTALL)
BLOCKS = {title: text for page in PAGES for title, text in BLOCK.findall(page.read_text("utf-8"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_what_is_there_and_says_what_needs_code(page: Path) -> None:
    text = " ".join(page.read_text("utf-8").split())
    named = re.findall(r"`((?:cardiolens|tests|jobs|examples)/[\w./-]+)`", text)
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert "needs code" in text


@pytest.mark.parametrize("page", ["README", "model", "selector", "metric"])
def test_what_a_package_of_its_own_may_bring_is_said(page: str) -> None:
    text = " ".join((ROOT / "docs" / "extend" / f"{page}.md").read_text("utf-8").split())
    assert "[package of your own](../how-to/plugins.md)" in text
    assert "no interface for plug-ins" not in text


def test_the_styles_of_a_prompt_are_those_that_there_are() -> None:
    styles = get_args(PromptSpec.model_fields["style"].annotation)
    *first, last = (f"`{style}`" for style in styles)
    assert f"beside {', '.join(first)} and {last}" in (ROOT / "docs/extend/prompt.md").read_text("utf-8")


def test_every_page_stands_in_the_table() -> None:
    table = (ROOT / "docs" / "extend" / "README.md").read_text("utf-8")
    linked = set(re.findall(r"^\| \[[^]]+\]\((\w+\.md)\)", table, re.MULTILINE))
    assert linked == {page.name for page in PAGES} - {"README.md"}


def test_the_files_of_the_pages_compose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: dict[str, list[str]] = {}
    for title, text in BLOCKS.items():
        path = tmp_path / title
        if title.startswith(("conf/", "my_templates/")):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if title.startswith("conf/"):
            groups.setdefault(path.parent.name, []).append(path.stem)
    monkeypatch.chdir(tmp_path)
    (dataset,) = groups.pop("dataset")
    words = [f"{group}=[{','.join(names)}]" for group, names in groups.items()]
    spec = read_spec([*words, f"dataset={dataset}", "templates=my_templates"])
    assert {"model", "selector", "prompt"} == groups.keys()
    for group, names in groups.items():
        assert [entry.name for entry in getattr(spec, group)] == names
    assert spec.dataset.name == dataset
    check_folder(tmp_path / "my_templates")


def test_the_subtask_of_the_page_is_that_of_the_example() -> None:
    (entry,) = yaml.safe_load(BLOCKS["my_protocol/t2.yaml, one more entry"])
    assert entry == runpy.run_path(str(ROOT / "examples" / "own_protocol.py"))["SUBTASK"]
