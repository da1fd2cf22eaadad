"""Paths with any characters as words of commands, and in messages that are pasted into a shell."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from cardiolens.base.console import shown_word
from cardiolens.base.errors import InputError
from cardiolens.config.command_words import read_words
from cardiolens.config.compose import read_spec
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.config.sweep_words import value_of
from cardiolens.storage.places import RunWord, RunWords

NAMES = [
    *("a=b", "two words", " a", "a,b", "[a]", "{a: b}", "o'brien", '"a"b', "~a", "50%", "a#b", "choice(a,b)"),
    *("`a`", "$a", "${a", "a\\", "a\\b'", "*", "123", "true", "Zürich", "東京", "🫀", "a\u202fb"),
]
ASKED = ["dataset=phantom_ci", "model=[oracle]"]


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_taken_as_it_is_written(name: str) -> None:
    wanted = Path(f"/data/{name}")
    sweep = read_spec([*ASKED, f"++dataset.studies={wanted}", f"store={name}", f"outputs={wanted}"])
    assert (sweep.dataset.studies, sweep.store, sweep.outputs) == (wanted, Path(name), wanted)
    imported = read_words(IngestSpec, [f"source={name}", f"out={wanted}"])
    assert (imported.source, imported.out) == (Path(name), wanted)
    assert read_words(RunWord, [f"run={name}", f"store={wanted}"]).run == Path(name)


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(blacklist_categories=("Cc", "Cs")), min_size=1, max_size=8))
def test_any_text_is_taken_as_it_is_written(name: str) -> None:
    if "\\" not in name and not re.search(r"\$\{[^{}]*\}", name):
        assert OmegaConf.create({"store": value_of("store", f"/{name}")}).store == f"/{name}"


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("store='/a b'", "/a b"),
        ("store=/a\\=b", "/a=b"),
        ("store=/a/${name}", "/a/${name}"),
        ("store=null", None),
        ("budget=[8,16]", [8, 16]),
        ("model.served.http.api_model=[key]", ["key"]),  # refused later: no texts
        ("model.served.revision=12", 12),
        ("subtask=C01", "C01"),
        ("cluster.sbatch=[--account=mri,--mem=200G]", ["--account=mri", "--mem=200G"]),
    ],
)
def test_what_hydra_reads_counts_as_it_reads_it(word: str, value: object) -> None:
    name, _, text = word.partition("=")
    assert value_of(name, text) == value


def test_a_text_that_hydra_cannot_read_is_taken_too() -> None:
    words = ["model=[served]", "model.served.source=/a=b/東京, 2", "model.served.http.api_model=a b=c"]
    (model,) = read_spec(["dataset=phantom_ci", *words]).model
    assert (model.source, model.http.api_model) == ("/a=b/東京, 2", "a b=c")


def test_a_tilde_is_the_home_also_where_the_shell_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    assert read_spec([*ASKED, "dataset.studies=~/a b"]).dataset.studies == Path("/home/x/a b")
    encoder = read_spec([*ASKED, "statistics.bertscore_model=~/e"]).statistics.bertscore_model
    assert encoder == Path("/home/x/e")
    assert read_words(RunWord, ["run=~/r"]).run == Path("/home/x/r")


def test_runs_with_commas_stand_in_quotes(tmp_path: Path) -> None:
    assert read_words(RunWords, ["runs=['/a,b',/c d,\"/e,]\"]"]).runs == tuple(
        map(Path, ("/a,b", "/c d", "/e,]"))
    )
    with pytest.raises(InputError, match=r"a path with a comma stands in quotes"):
        read_words(RunWords, [f"runs=[{tmp_path}/a,b]"]).open()


@pytest.mark.parametrize(
    ("read", "option"),
    [
        (read_spec, "store"),
        (lambda words: read_words(IngestSpec, words), "out"),
        (lambda words: read_words(RunWord, words), "run"),
    ],
)
def test_the_message_for_a_path_that_the_shell_cut_works_when_it_is_pasted(read, option: str) -> None:
    with pytest.raises(InputError, match="belongs to the word before it") as error:
        read([f"{option}=/data/o'brien", "b"])
    pasted = str(error.value).rpartition("write ")[2]
    show = [sys.executable, "-c", "import sys; print(sys.argv[1])"]
    got = subprocess.run(
        ["sh", "-c", f'"$0" "$1" "$2" {pasted}', *show], capture_output=True, text=True, check=True
    )
    assert got.stdout == f"{option}=/data/o'brien b\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_command_that_is_shown_works_when_it_is_pasted(name: str) -> None:
    pasted = f"printf %s {shown_word('dataset.studies', name)}"
    got = subprocess.run(["sh", "-c", pasted], capture_output=True, text=True, check=True)
    assert got.stdout == f"dataset.studies={name}"
