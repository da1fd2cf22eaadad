"""Words of every verb and script: the same mistake gets the same kind of sentence, and exit code 2."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import pytest

from bench.options import options
from cardiolens.commands.help import VERBS


@dataclass(frozen=True)
class Command:
    """A command with words that it takes, and how each mistake is made."""

    module: str
    words: tuple[str, ...] = ()  # a legal set; the first is required
    first: tuple[str, ...] = ()  # an action
    wrong: str = ""  # a word with a value of a wrong type
    sweep: tuple[str, ...] = ()  # words that describe a sweep, of which the last one counts
    listed: tuple[str, ...] = ()  # legal words that are named beside those above


SWEEP = {"sweep": ("name=a",), "wrong": "limit=two", "listed": ("dataset", "model", "budget")}
COMMANDS: Mapping[str, Command] = {
    "compare": Command("cardiolens.commands.compare", ("a=x", "b=y"), wrong="margin=much"),
    "compare runs": Command("cardiolens.commands.compare", ("runs=[x]", "out=y.html"), listed=("store",)),
    "confirm": Command("cardiolens.commands.confirm", ("out=x",), listed=("decisions",)),
    "export": Command(
        "cardiolens.commands.export", ("run=x",), wrong="patient_ids=maybe", listed=("format", "patient_ids")
    ),
    "ingest": Command("cardiolens.commands.ingest", ("out=x", "source=y"), wrong="threshold=two"),
    "ingest init": Command("cardiolens.commands.ingest", ("out=x",), ("init",)),
    "judge": Command("cardiolens.commands.judge", ("run=x",), listed=("runs",)),
    "judge of": Command(
        "cardiolens.commands.judge", ("run=x", "of=errors", "model=tiny"), listed=("cluster",)
    ),
    "prepare": Command("cardiolens.commands.prepare", **SWEEP),
    "questions": Command("cardiolens.commands.questions", ("out=x", "masks=y", "labels=acdc")),
    "release": Command(
        "cardiolens.commands.release",
        ("questions=q", "studies=s", "out=o", "name=n", "licence=l"),
        wrong="references=maybe",
    ),
    "release verify": Command("cardiolens.commands.release", ("verify=x",)),
    "report": Command(
        "cardiolens.commands.report",
        ("run=x",),
        wrong="page.include_images=maybe",
        listed=("runs", "page.include_images"),
    ),
    "review": Command(
        "cardiolens.commands.review",
        ("questions=q", "studies=s", "out=o", "mode=verify"),
        wrong="port=two",
    ),
    "review audit": Command(
        "cardiolens.commands.review", ("run=x",), ("audit",), wrong="replies=few", listed=("replies", "port")
    ),
    "status": Command("cardiolens.commands.status", ("run=x",)),
    "store ls": Command("cardiolens.commands.store", ("store=x",), ("ls",)),
    "store prune": Command("cardiolens.commands.store", ("store=x",), ("prune",), "apply=maybe"),
    "submit": Command("cardiolens.commands.submit", **SWEEP),
    "doctor": Command("cardiolens.commands.doctor", **SWEEP),
    "sweep": Command("cardiolens.commands.sweep", **SWEEP),
    "view": Command("cardiolens.commands.view", ("run=x",), listed=("runs",)),
    "work": Command("cardiolens.commands.work", ("run=x", "step=score"), wrong="nodes=two"),
    "make_medthinkvqa": Command(
        "jobs.make_medthinkvqa", ("out=x",), wrong="test=many", listed=("test", "train", "seed")
    ),
    "make_public_vqa": Command(
        "jobs.make_public_vqa",
        ("out=x", "benchmark=slake"),
        wrong="pictures=many",
        listed=("pictures", "seed"),
    ),
    "make_phantom": Command(
        "jobs.make_phantom",
        ("vendor=ge", "format=dicom"),
        sweep=("dataset=phantom_ci",),
        wrong="repeats=often",
    ),
    "medthinkvqa scores": Command("jobs.medthinkvqa", ("run=x",), ("scores",)),
    "medthinkvqa check": Command("jobs.medthinkvqa", ("file=x", "root=y"), ("check",), "split=all"),
    "medthinkvqa judge": Command(
        "jobs.medthinkvqa", ("steps=x", "root=y", "out=o", "model=tiny"), ("judge",), "split=dev"
    ),
    "show_selection": Command(
        "jobs.show_selection",
        ("study=x",),
        sweep=("budget=[8]",),
        wrong="format=xml",
        listed=("format", "subtask"),
    ),
    "show_study": Command("jobs.show_study", ("study=x", "out=y"), wrong="phases=two", listed=("phases",)),
}


def name_of(word: str) -> str:
    return word.partition("=")[0]


def each(wanted: Callable[[Command], object]) -> pytest.MarkDecorator:
    """Go through the commands that are wanted."""
    chosen = {name: command for name, command in COMMANDS.items() if wanted(command)}
    return pytest.mark.parametrize("command", chosen.values(), ids=chosen)


every_command = each(lambda command: True)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(module: str, words: Sequence[str], monkeypatch, capsys) -> str:
    """The sentence with which a command refuses words."""
    monkeypatch.setattr(sys, "argv", [module.rpartition(".")[2], *words])
    main = import_module(module).main
    assert (main(list(words)) if module.startswith("jobs.") else main()) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert message.count("\n") == 1
    assert "Traceback" not in message
    return message


def test_no_verb_is_left_out() -> None:
    modules = {command.module.rpartition(".")[2] for command in COMMANDS.values()}
    verbs = {verb for group in VERBS.values() for verb in group}
    assert modules >= verbs - {"head"}, "head takes the options of `ray start`"


@every_command
def test_a_word_that_stands_twice_is_refused(command, monkeypatch, capsys):
    for word in command.words:
        words = [*command.first, *command.words, *command.sweep, f"{name_of(word)}=other"]
        message = refused(command.module, words, monkeypatch, capsys)
        value = word.partition("=")[2]
        assert f"{name_of(word)}=: stands twice, as {value!r} and 'other'; give it once" in message


@every_command
def test_an_unknown_word_is_refused_with_the_legal_ones(command, monkeypatch, capsys):
    words = [*command.first, *command.words, *command.sweep, "ouut=x"]
    message = refused(command.module, words, monkeypatch, capsys)
    assert "unknown key 'ouut'; " in message
    legal = {*map(name_of, command.words), *command.listed, *filter(None, [name_of(command.wrong)])}
    assert legal <= set(message.strip().partition("expected only ")[2].split(", "))


@every_command
def test_a_word_without_an_equals_sign_is_refused(command, monkeypatch, capsys):
    for bare in ("x", "--fast", ""):
        message = refused(
            command.module, [*command.first, *command.words, *command.sweep, bare], monkeypatch, capsys
        )
        assert repr(bare) in message
        assert "name=value" in message


@every_command
def test_a_word_without_a_value_is_refused(command, monkeypatch, capsys):
    word, *others = (*command.words, *command.sweep)
    name = name_of(word)
    words = [*command.first, *others, f"{name}="]
    message = refused(command.module, words, monkeypatch, capsys)
    assert message.startswith(f"error: {name}=: has no value; give one")


@each(lambda command: len(command.words) > 0 and command.words != ("verify=x",))
def test_a_word_that_is_missing_is_named(command, monkeypatch, capsys):
    name = name_of(command.words[0])
    message = refused(command.module, [*command.first, *command.words[1:]], monkeypatch, capsys)
    assert f"{name}= is not given; give {name}=..." in message


@each(lambda command: command.wrong)
def test_a_value_of_another_type_is_named(command, monkeypatch, capsys):
    name, _, value = command.wrong.partition("=")
    words = [*command.first, *command.words, *command.sweep, command.wrong]
    message = refused(command.module, words, monkeypatch, capsys)
    assert message.startswith(f"error: {name}: Input should be ")
    assert message.endswith(f", got {value!r}\n")


@pytest.mark.parametrize("verb", ["judge", "report", "view"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run=a", "runs=[a,b]"], "runs=: stands beside run=; give one of them"),
        (["runs=[a]"], "runs=[a]: give two runs or more"),
        (["runs=[]"], "runs=[]: give two runs or more"),
        (["runs=[a,b]"], "runs=a: no such folder"),
    ],
)
def test_runs_are_several_and_each_is_there(verb, words, message, monkeypatch, capsys):
    assert message in refused(f"cardiolens.commands.{verb}", words, monkeypatch, capsys)


def test_options_that_ray_does_not_know_are_refused(monkeypatch, capsys):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "x" * 32)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_TMPDIR", "")  # pytest's own folder is too long for sockets
    for word in ("--num-gpuss=4", "out=x", "--num-gpus=two"):
        message = refused("cardiolens.commands.head", [word], monkeypatch, capsys)
        assert "give options of `ray start`" in message


def test_a_node_without_a_token_joins_nothing(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("RAY_TMPDIR", "")
    message = refused("cardiolens.commands.head", ["--address=127.0.0.1:1"], monkeypatch, capsys)
    assert f"{tmp_path / 'token'}: no token; copy it from the machine of the head" in message


@pytest.mark.parametrize(
    ("error", "said"), [(Exception("timed out\nat 3"), "timed out"), (OSError(), "OSError")]
)
def test_a_node_that_does_not_start_is_a_sentence(monkeypatch, capsys, error, said):
    def fail(*_words, **_options):
        raise error

    monkeypatch.setenv("RAY_AUTH_TOKEN", "x" * 32)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_TMPDIR", "")
    monkeypatch.setattr("ray.scripts.scripts.start.main", fail)
    monkeypatch.setattr(sys, "argv", ["head"])
    assert import_module("cardiolens.commands.head").main() == 1
    assert capsys.readouterr().err == f"error: Ray could not start a node here ({said})\n"


MOST = 120  # of a sweep, an import and drafts together; 180 at the first count


def test_there_are_no_more_options() -> None:
    every = options()
    assert len(every) == len(set(every))
    assert "cluster.partition" in every
    assert len(every) <= MOST
