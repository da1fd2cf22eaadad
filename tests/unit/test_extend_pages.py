"""The README and the guides to extend: what they show composes, what they name is there."""

import re
import runpy
import shlex
from pathlib import Path
from typing import get_args

import pytest
import yaml

from cardiolens.config.compose import read_spec
from cardiolens.config.sweep_factors import PromptSpec
from cardiolens.protocol.prompts.template import check_folder

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guides"
PAGES = [GUIDES / "extend.md", GUIDES / "other-organs.md", GUIDES / "http.md", GUIDES / "gpus.md"]
BLOCK = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```', re.MULTILINE | re.DOTALL)
BLOCKS = {title: text for page in PAGES for title, text in BLOCK.findall(page.read_text("utf-8"))}


def test_the_styles_of_a_prompt_are_those_that_there_are() -> None:
    styles = get_args(PromptSpec.model_fields["style"].annotation)
    *first, last = (f"`{style}`" for style in styles)
    assert f"beside {', '.join(first)} and {last}" in (GUIDES / "extend.md").read_text("utf-8")


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


README = (ROOT / "README.md").read_text("utf-8")
SWEEPS = re.findall(r"^python -m cardiolens\.sweep (.*?)(?:  #.*)?$", README.replace("\\\n", " "), re.M)


def test_the_readme_has_at_most_700_words() -> None:
    assert len(README.split()) <= 700
    assert len(SWEEPS) == 4


@pytest.mark.parametrize("sweep", SWEEPS)
def test_a_sweep_of_the_readme_is_understood(
    sweep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the model file of the README in the folder that one works in."""
    ((name, entry),) = re.findall(r"```yaml\n# (\S+), in the folder that you work in\n(.*?)```", README, re.S)
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(entry)
    monkeypatch.chdir(tmp_path)
    (model,) = read_spec(shlex.split(sweep)).model
    assert (model.name, model.engine) == ("my_model", "http")


def test_the_subtask_of_the_page_is_that_of_the_example() -> None:
    (entry,) = yaml.safe_load(BLOCKS["my_protocol/t2.yaml, one more entry"])
    assert entry == runpy.run_path(str(ROOT / "examples" / "own_protocol.py"))["SUBTASK"]
