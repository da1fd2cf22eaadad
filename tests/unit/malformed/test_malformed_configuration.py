"""Words on the command line and files of the user's own `conf/` that cannot be used."""

import pytest
from refusals import refused

from cardiolens.commands.command import run_verb
from cardiolens.config.sweep import SweepSpec

OPTIONS = "expected only budget, answer_format, caption"
OF_MODEL = ".*card, engine, "
NO_BUDGET = r"is neither a number of frames \(16\) nor of visual tokens \(tokens:8192\), 1 or more"

WORDS = [
    # names that no group has
    ("model=[nope]", r"model=nope: unknown model; choose from .*budget_effect"),
    ("model=null", r"model=null: unknown model; choose from"),
    (
        "control=[blnd]",
        r"control=blnd: unknown control; did you mean bl.*choose from bl.*none",
    ),
    ("experiment=demo", r"write \+experiment=demo"),
    # words that are none
    ("budget", r"'budget' is not of the form name=value; quote lists in the shell"),
    ("budget=[8", r"'budget=\[8' is not of the form name=value"),
    ("budget=8,16", r"budget=8,16.*To use it as a list, use key=\[value1,value2\]"),
    # options that do not exist
    (
        "budgets=[8]",
        r"budgets: unknown option; did you mean budget\? choose from budget, answer_format",
    ),
    (
        "stream.flush_row=8",
        r"stream\.flush_row: unknown option; did you mean flush_rows.*, stall_seconds",
    ),
    ("+model.tiny.nope=3", rf"model\.0: unknown key 'nope'; expected only {OF_MODEL}"),
    ("+model.foo=3", r"model: foo is 3; expected its options, e\.g\. foo: \{\.\.\.\}"),
    ("+model.tiny.max_tokens.standrad=5", r"max_tokens\.standrad: no such prompt; choose from .*reasoning"),
    # duplicates and contradictions
    ("dataset=[phantom_ci,phantom_200]", r"dataset=\[phantom_ci,phantom_200\]: a sweep has one"),
    ("budget=[8,8]", r"budget: names an entry twice, got \[8, 8\]"),
    ("selector=[random@1,random@1]", r"seeds \[1, 1\] contain a seed twice; give each once"),
    ("selector=[clinical@3]", r"a random or stratified selector needs seeds, e\.g\. \[2026\]; no other"),
    ("+model.tiny.http.base_url=ftp://x", r"base_url: must be http\(s\)://host"),
    ("+dataset.windows.lge=[99,1]", r"must be two percentiles, low below high"),
    # wrong types, zero, negative, infinite, missing
    *[
        (f"budget={value}", NO_BUDGET)
        for value in ("", "null", "[0]", "[-1]", "[eight]", "[1.5]", "[true]", "[tokens:0]", "[tokens:x]")
    ],
    ("selector=[random@x]", r"selector=\[random@x\]: 'x' is not a seed; give a whole number"),
    ("model.tiny.max_model_len=0", r"model\.0\.max_model_len: Input should be greater than 0, got 0"),
    ("+model.tiny.sampling.temperature=nan", r"temperature: Input should be a finite number, got nan"),
    ("stream.max_attempts=0", r"max_attempts: Input should be greater than 0, got 0"),
    ("limit=-3", r"limit: Input should be greater than 0, got -3"),
    ("keep_going=perhaps", r"keep_going: Input should be a valid boolean"),
    ("dataset=real", r"dataset\.studies has no value; give one: dataset\.studies=\.\.\."),
    # paths
    ("name=../x", r"name: String should match pattern .*got '\.\./x'"),
    ("store=", r"store: is empty, which would mean the working directory; give a path"),
    ("store=${oc.env:HOME}", r"Unsupported interpolation type oc\.env"),
    ("store=${nope}", r"Interpolation key 'nope' not found full_key: store"),
]

FILES = [  # a file of the user's own, and the words that name it
    ("model/mine.yaml", b"mine: [1,\n b: }", "model=[mine]", r"conf/model/mine\.yaml: not YAML .*line 2"),
    ("model/mine.yaml", b"mine: {source: /x, source: /y}", "model=[mine]", r"found duplicate key source"),
    ("model/mine.yaml", b"", "model=[mine]", r"model: needs at least one entry"),
    (
        "model/mine.yaml",
        b"- mine",
        "model=[mine]",
        r"model\.0: .* a valid dictionary.*got 'mine'",
    ),
    ("model/mine.yaml", b"mine: {engine: vllm}", "model=[mine]", r"needs source: a hub id, a local folder"),
    ("model/mine.yaml", b"mine: {sorce: /x}", "model=[mine]", r"unknown key 'sorce'; expected only .*engine"),
    (
        "selector/mine.yaml",
        b"mine: {kind: magic}",
        "selector=[mine]",
        r"'random', 'strat.*got 'magic'",
    ),
    ("experiment/mine.yaml", b"# @package _global_\nbudgets: [8]", "+experiment=mine", OPTIONS),
    (
        "experiment/mine.yaml",
        b"# @package _global_\ndefaults: [mine]",
        "+experiment=mine",
        r"\+experiment=mine: the defaults of a configuration file lead back to it; remove that entry",
    ),
    (
        "experiment/mine.yaml",
        b"# @package _global_\ndefaults:\n - override /model: [nope]",
        "+experiment=mine",
        r"model=nope: unknown model; choose from .*budget_effect",
    ),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def unreachable(spec: SweepSpec) -> int:
    raise AssertionError(f"accepted: {spec}")


@pytest.mark.full
@pytest.mark.parametrize(("word", "said"), WORDS, ids=[word for word, _ in WORDS])
def test_a_word_that_cannot_be_used_is_named(word, said, here, capsys):
    refused(lambda: run_verb(unreachable, [word]), said, capsys, here)


@pytest.mark.parametrize("row", FILES, ids=[str(row[1]) for row in FILES])
def test_a_file_that_cannot_be_used_is_named(row, here, capsys):
    file, content, word, said = row
    own = here / "conf" / file
    own.parent.mkdir(parents=True)
    own.write_bytes(content)
    refused(lambda: run_verb(unreachable, [word]), said, capsys, here)


@pytest.mark.usefixtures("here")
def test_what_a_user_gave_twice_or_as_one_word_is_taken_where_it_is_clear():
    found: list[SweepSpec] = []
    words = ["subtask=C01", "selector=[random@1,random@2]", "model.tiny.max_tokens.report=9"]
    assert run_verb(lambda spec: found.append(spec) or 0, words) == 0
    assert (found[0].subtask, found[0].selector[0].seeds) == (("C01",), (1, 2))
