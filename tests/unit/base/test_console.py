"""Commands whose output nobody reads any more."""

import subprocess
import sys

import pytest

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
