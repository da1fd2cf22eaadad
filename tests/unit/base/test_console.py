"""Terminals and logs: a reader that leaves, and words of others that open no line of their own."""

import logging
import subprocess
import sys

import pytest

from cardiolens.base.console import console, say
from cardiolens.base.sanitize import PlainFormatter

MUCH = """
import sys
from cardiolens.commands.command import begin
sys.argv = ["cardiolens test"]
begin()
for number in range(100_000):
    print(number)
{end}
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(2)"])
def test_a_reader_that_leaves_ends_a_command_without_a_traceback(end: str) -> None:
    command = [sys.executable, "-c", MUCH.format(end=end)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_any_other_broken_pipe_is_shown() -> None:
    code = MUCH.format(end="raise BrokenPipeError('of a server')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "BrokenPipeError: of a server" in done.stderr
    assert done.returncode == 1


EVIL = "S1\x1b[2J\nERROR all is well\r\x9b31m [bold]b[/] :smile: \ud800"


def test_a_message_of_a_log_is_one_line() -> None:
    record = logging.LogRecord(
        "n", logging.ERROR, "f", 1, "%s: %s", (EVIL, "http://me:pw@h/ sk-0123456789"), None
    )
    said = PlainFormatter("%(levelname)s %(message)s").format(record)
    assert said.isprintable()
    assert "pw" not in said
    assert "sk-0" not in said


def test_a_traceback_keeps_its_lines() -> None:
    try:
        raise ValueError(EVIL)
    except ValueError as error:
        told = (type(error), error, error.__traceback__)
    record = logging.LogRecord("n", logging.ERROR, "f", 1, "failed", (), told)
    said = PlainFormatter("%(message)s").format(record)
    assert "Traceback" in said
    assert all(line.isprintable() for line in said.replace("\ufffd", "").splitlines())


def test_a_line_on_the_terminal_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say(EVIL)
    said = capsys.readouterr().out
    assert said.removesuffix("\n").isprintable()


def test_a_table_shows_names_as_they_are() -> None:
    from rich.table import Table

    table = Table(title=EVIL)
    table.add_column(EVIL)
    table.add_row(EVIL)
    with console.capture() as captured:
        console.print(table)
    said = captured.get()
    assert "\x1b[2J" not in said
    assert "\x9b" not in said
    assert "\\x1b" in said
