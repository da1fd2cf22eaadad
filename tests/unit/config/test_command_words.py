"""The words of every command that takes name=value are read by one function, and refused alike."""

import sys
from importlib import import_module

import pytest

# A command, the words before its own, and words that it takes.
COMMANDS = {
    "compare": ([], ["a=x", "b=y"]),
    "confirm": ([], ["out=x"]),
    "ingest": (["init"], ["out=x"]),
    "release": ([], ["questions=q", "studies=s", "out=o", "name=n", "licence=l"]),
    "review": (["add"], ["reader=r", "out=x"]),
    "store": (["ls"], ["store=x"]),
    "track": ([], ["run=x"]),
    "work": ([], ["run=x", "step=score"]),
}


def refused(command, words, monkeypatch, capsys):
    first, _ = COMMANDS[command]
    monkeypatch.setattr(sys, "argv", [command, *first, *words])
    assert import_module(f"cardiolens.commands.{command}").main() == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert "Traceback" not in message
    return message


@pytest.mark.parametrize("command", COMMANDS)
def test_a_word_that_stands_twice_is_refused(command, monkeypatch, capsys):
    _, words = COMMANDS[command]
    name = words[0].partition("=")[0]
    message = refused(command, [*words, f"{name}=other"], monkeypatch, capsys)
    assert f"{name}=: stands twice" in message


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_word_is_refused_with_the_legal_ones(command, monkeypatch, capsys):
    _, words = COMMANDS[command]
    message = refused(command, [*words, "outt=x"], monkeypatch, capsys)
    assert "outt=: no word of this command; choose from " in message
    assert all(word.partition("=")[0] in message for word in words)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("bare", ["x", "--fast", ""])
def test_a_word_without_a_value_is_refused(command, bare, monkeypatch, capsys):
    _, words = COMMANDS[command]
    assert "expected name=value" in refused(command, [*words[1:], bare], monkeypatch, capsys)
    name = words[0].partition("=")[0]
    message = refused(command, [*words[1:], f"{name}="], monkeypatch, capsys)
    assert f"{name}=: has no value" in message


@pytest.mark.parametrize("command", COMMANDS)
def test_a_word_that_is_missing_is_named(command, monkeypatch, capsys):
    _, words = COMMANDS[command]
    name = words[0].partition("=")[0]
    assert f"{name}= is not given; give " in refused(command, words[1:], monkeypatch, capsys)


@pytest.mark.parametrize(
    ("command", "word", "message"),
    [
        ("work", "nodes=two", "nodes: "),
        ("work", "nodes=0", "nodes: "),
        ("compare", "margin=much", "margin: "),
        ("track", "mode=cloud", "mode: Input should be 'online' or 'offline', got 'cloud'"),
    ],
)
def test_a_value_of_another_type_is_named(command, word, message, monkeypatch, capsys):
    _, words = COMMANDS[command]
    assert message in refused(command, [*words, word], monkeypatch, capsys)
