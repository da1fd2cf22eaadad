"""Words on the command line and files of the user's own `conf/` that cannot be used."""

import subprocess
import sys

import pytest
from refusals import refused

from cardiolens.commands.command import run_verb
from cardiolens.config.sweep import SweepSpec

OPTIONS = "expected only budget, answer_format, caption"
OF_MODEL = ".*dtype, engine, "
NO_BUDGET = r"is neither a number of frames \(16\) nor of visual tokens \(tokens:8192\), 1 or more"

WORDS = [
    # names that no group has
    ("model=[nope]", r"model=nope: unknown model; choose from .*budget_effect"),
    ("model=null", r"model=null: unknown model; choose from"),
    ("model=", r"model=: unknown model; choose from"),
    ("model=[]", r"model: Field required"),
    ("selector=[best]", r"selector=best: unknown selector; choose from all, clinical, encoder"),
    ("prompt=[nice]", r"prompt=nice: unknown prompt; choose from .*reasoning, standard"),
    (
        "control=[blnd]",
        r"control=blnd: unknown control; did you mean bl.*choose from bl.*none",
    ),
    ("dataset=mri", r"dataset=mri: unknown dataset; choose from .*phantom_200"),
    ("tracker=comet", r"tracker=comet: unknown tracker; choose from none, wandb"),
    ("+experiment=nope", r"experiment=nope: unknown experiment; choose from .*controls"),
    ("experiment=demo", r"write \+experiment=demo"),
    # words that are none
    ("=3", r"'=3' is not of the form name=value"),
    ("budget", r"'budget' is not of the form name=value; quote lists in the shell"),
    ("budget=[8", r"'budget=\[8' is not of the form name=value"),
    ("a b", r"'a b' is not of the form name=value"),
    ("budget=8,16", r"budget=8,16.*To use it as a list, use key=\[value1,value2\]"),
    # options that do not exist
    (
        "budgets=[8]",
        r"budgets: unknown option; did you mean budget\? choose from budget, answer_format",
    ),
    ("+budgets=[8]", rf"unknown key 'budgets'; {OPTIONS}"),
    (
        "stream.flush_row=8",
        r"stream\.flush_row: unknown option; did you mean flush_rows.*, stall_seconds",
    ),
    ("model.tiny.nope=3", rf"model\.tiny\.nope: unknown option; choose from {OF_MODEL}"),
    ("+model.tiny.nope=3", rf"model\.0: unknown key 'nope'; expected only {OF_MODEL}"),
    ("+model.foo=3", r"model: foo is 3; expected its options, e\.g\. foo: \{\.\.\.\}"),
    ("+model.tiny.max_tokens.standrad=5", r"max_tokens\.standrad: no such prompt; choose from .*reasoning"),
    # duplicates and contradictions
    ("model=[tiny,tiny]", r"model=\[tiny,tiny\]: tiny stands twice; name each once"),
    ("selector=[clinical,clinical]", r"clinical stands twice"),
    ("control=[blind,blind]", r"blind stands twice"),
    ("dataset=[phantom_ci,phantom_200]", r"dataset=\[phantom_ci,phantom_200\]: a sweep has one"),
    ("budget=[8,8]", r"budget: names an entry twice, got \(8, 8\)"),
    ("selector=[random@1,random@1]", r"seeds \[1, 1\] contain a seed twice; give each once"),
    ("selector=[clinical@3]", r"a random or stratified selector needs seeds, e\.g\. \[2026\]; no other"),
    ("+selector.clinical.encoder=/clip", r"kind clinical looks at no frames; encoder goes with kcenter"),
    ("+model.tiny.http.base_url=ftp://x", r"base_url: must be http\(s\)://host"),
    ("dataset.window_pct=[99,1]", r"must be two percentiles, low below high.*got \[99, 1\]"),
    # wrong types, zero, negative, infinite, missing
    *[
        (f"budget={value}", NO_BUDGET)
        for value in ("", "null", "[0]", "[-1]", "[eight]", "[1.5]", "[true]", "[tokens:0]", "[tokens:x]")
    ],
    ("budget=[]", r"budget: needs at least one entry"),
    ("budget={a:1}", r"budget=\{a:1\} .*not a list|budget=\{a:1\} .*ListConfig"),
    ("~budget", r"budget: Field required"),
    ("selector=[random@x]", r"selector=\[random@x\]: 'x' is not a seed; give a whole number"),
    ("selector=[random@-1]", r"'-1' is not a seed"),
    ("selector=[random@]", r"'' is not a seed; give a whole number, e\.g\. random@2027"),
    ("model.tiny.max_model_len=0", r"model\.0\.max_model_len: Input should be greater than 0, got 0"),
    ("model.tiny.max_model_len=many", r"valid integer.*got 'many'"),
    ("model.tiny.dtype=int4", r"should be 'auto', 'bfloat16', 'float16' or 'float32', got 'int4'"),
    ("model.tiny.kv_cache_gib=inf", r"kv_cache_gib: Input should be a finite number, got inf"),
    ("+model.tiny.sampling.temperature=nan", r"temperature: Input should be a finite number, got nan"),
    ("+model.tiny.sampling.top_p=0", r"top_p: Input should be greater than 0, got 0"),
    ("stream.flush_seconds=inf", r"flush_seconds: Input should be a finite number, got inf"),
    ("stream.max_attempts=0", r"max_attempts: Input should be greater than 0, got 0"),
    ("cluster.object_store_gib=inf", r"object_store_gib: Input should be a finite number"),
    ("limit=-3", r"limit: Input should be greater than 0, got -3"),
    ("limit=all", r"limit: Input should be a valid integer.*got 'all'"),
    ("mode=dry", r"mode: Input should be 'run' or 'plan', got 'dry'"),
    ("strict=perhaps", r"strict: Input should be a valid boolean"),
    ("caption=all", r"caption: Input should be 'none', 'view' or 'full', got 'all'"),
    ("answer_format=free", r"'letters', 'json' or 'choice', got 'free'"),
    ("tracker.mode=sometimes", r"'online' or 'offline', got 'sometimes'"),
    ("statistics.min_n=", r"statistics\.min_n: Input should be a valid integer"),
    ("dataset=real", r"dataset\.studies has no value; give one: dataset\.studies=\.\.\."),
    ("dataset.protocol=null", r"protocol: Input should be a valid string, got None"),
    # paths
    ("name=../x", r"name: String should match pattern .*got '\.\./x'"),
    ("dataset.name=../../x", r"dataset\.name: String should match pattern"),
    ("store=", r"store: is empty, which would mean the working directory; give a path"),
    ("outputs=", r"outputs: is empty"),
    ("dataset.studies=", r"dataset\.studies: is empty"),
    ("store=null", r"store: Input is not a valid path"),
    ("store=${nope}", r"Interpolation key 'nope' not found full_key: store"),
]

FILES = [  # a file of the user's own, and the words that name it
    ("model/mine.yaml", b"mine: [1,\n b: }", "model=[mine]", r"conf/model/mine\.yaml: not YAML .*line 2"),
    ("model/mine.yaml", b"mine: \xff\xfe", "model=[mine]", r"conf/model/mine\.yaml: not YAML .*(0xff|UTF-8)"),
    (
        "model/mine.yaml",
        b"mine:\n\tsource: /x",
        "model=[mine]",
        r"mine\.yaml: not YAML .*cannot start any token.*line 2",
    ),
    ("model/mine.yaml", b"mine: {source: /x, source: /y}", "model=[mine]", r"found duplicate key source"),
    ("model/mine.yaml", b"", "model=[mine]", r"model: needs at least one entry"),
    ("model/mine.yaml", b"mine: 3", "model=[mine]", r"mine is 3; expected its options"),
    ("model/mine.yaml", b"mine: null", "model=[mine]", r"mine is None; expected its options"),
    (
        "model/mine.yaml",
        b"- mine",
        "model=[mine]",
        r"model\.0: .* a valid dictionary.*got 'mine'",
    ),
    ("model/mine.yaml", b"mine: {engine: vllm}", "model=[mine]", r"needs source: a hub id, a local folder"),
    ("model/mine.yaml", b"mine: {sorce: /x}", "model=[mine]", r"unknown key 'sorce'; expected only .*dtype"),
    ("model/mine.yaml", b"mine: {engine: tgi}", "model=[mine]", r"should be 'vllm', 'http'.*got 'tgi'"),
    ("model/tiny.yaml", b"tiny: {engine: oracle, size: 3}", "model=[tiny]", r"unknown key 'size'"),
    (
        "selector/mine.yaml",
        b"mine: {kind: magic}",
        "selector=[mine]",
        r"'random', 'strat.*got 'magic'",
    ),
    ("selector/mine.yaml", b"mine: {kind: random}", "selector=[mine]", r"needs seeds, e\.g\. \[2026\]"),
    ("experiment/mine.yaml", b"# @package _global_\nbudgets: [8]", "+experiment=mine", OPTIONS),
    ("experiment/mine.yaml", b"# @package _global_\nname: ${a.b}", "+experiment=mine", r"'a\.b' not found"),
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


def test_hydra_itself_says_no_more_than_that(here):
    command = [sys.executable, "-m", "cardiolens.sweep", "-m", "model=oracle,uniform", "page.x=3"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: page.x: unknown option; choose from include_images\n"


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
