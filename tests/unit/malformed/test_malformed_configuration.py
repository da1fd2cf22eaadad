"""Words on the command line and files of the user's own `conf/` that cannot be used."""

from pathlib import Path

import pytest
import yaml
from refusals import refused, run_verb

from cardiolens.config.sweep import SweepSpec

TABLES = yaml.safe_load(Path(__file__).with_name("configuration.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def unreachable(spec: SweepSpec) -> int:
    raise AssertionError(f"accepted: {spec}")


@pytest.mark.full
@pytest.mark.parametrize("word", TABLES["words"])
def test_a_word_that_cannot_be_used_is_named(word, here, capsys):
    refused(lambda: run_verb(unreachable, [word]), TABLES["words"][word], capsys, here)


@pytest.mark.parametrize("row", TABLES["files"], ids=lambda row: row[1])
def test_a_file_that_cannot_be_used_is_named(row, here, capsys):
    file, content, word, said = row
    own = here / "conf" / file
    own.parent.mkdir(parents=True)
    own.write_text(content)
    refused(lambda: run_verb(unreachable, [word]), said, capsys, here)


@pytest.mark.usefixtures("here")
def test_what_a_user_gave_twice_or_as_one_word_is_taken_where_it_is_clear():
    found: list[SweepSpec] = []
    words = ["subtask=C01", "selector=[random@1,random@2]", "model.tiny.max_tokens.report=9"]
    assert run_verb(lambda spec: found.append(spec) or 0, words) == 0
    assert (found[0].subtask, found[0].selector[0].seeds) == (("C01",), (1, 2))
