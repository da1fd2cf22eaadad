"""A sweep calls nobody: every address that any of its processes turns to is recorded, and is loopback.

strace records the calls of the kernel, and so those of Ray's and W&B's own programs too, which no hook of
Python's or of the C library would see (W&B's is static). It needs no privilege: a process may trace its own
children. Where the kernel allows it the sweep has a network of its own besides, with loopback alone, so that
a library cannot do without asking only because somebody answers.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest

from tests.ray.processes import printed_by

pytestmark = [pytest.mark.ray, pytest.mark.full]

CALLS = "connect,sendto,sendmsg,sendmmsg"
ALONE = ["unshare", "--user", "--map-root-user", "--net"]
TO = re.compile(r'sin6?_port=htons\((\d+)\).*?(?:inet_addr\("|AF_INET6, ")([^"]+)"')
# Both kinds of call that a sweep must not make, so that the recording itself is tested.
PROBE = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.connect(("192.0.2.77", 80))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.sendto(b"name?", ("127.0.0.53", 53))
"""


def traced(command: list[str], folder: Path) -> tuple[str, list[tuple[str, int]]]:
    """What a command printed, and every address and port that it or a child of it turned to."""
    assert shutil.which("strace"), "this test needs strace: .ci/run installs it"
    trace = folder / "trace"
    with_trace = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", f"trace={CALLS}", "-e", "signal=none"]
    script = f'{"ip link set lo up; " if alone() else ""}exec "$@"'
    inside = ["bash", "-c", script, "-", *with_trace, "-o", str(trace), *command]
    printed = printed_by([*(ALONE if alone() else []), *inside], folder)
    return printed, [(address, int(port)) for port, address in TO.findall(trace.read_text())]


def alone() -> bool:
    """Return whether this machine gives an ordinary process a network of its own."""
    tried = subprocess.run([*ALONE, "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    return tried.returncode == 0


def beyond(calls: list[tuple[str, int]]) -> set[tuple[str, int]]:
    """Calls to another machine, and questions to a name server wherever it is."""
    return {call for call in calls if not is_loopback(call[0]) or call[1] == 53}


def is_loopback(text: str) -> bool:
    address = ip_address(text)
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="n", dir="/tmp") as made:  # Ray's sockets need a short path
        yield Path(made)


def test_the_recording_sees_a_call_and_a_question_for_a_name(folder: Path) -> None:
    script = folder / "probe.py"
    script.write_text(PROBE)
    trace = printed_by(["strace", "-f", "-qq", "-e", f"trace={CALLS}", sys.executable, str(script)], folder)
    calls = [(address, int(port)) for port, address in TO.findall(trace)]
    assert beyond(calls) == {("192.0.2.77", 80), ("127.0.0.53", 53)}


def test_a_sweep_of_readers_calls_nobody(folder: Path) -> None:
    words = ["model=[oracle]", "budget=[4]", "dataset.phantom.canonical=[PH-NORMAL]"]
    printed, calls = traced(
        [sys.executable, "-m", "cardiolens.sweep", *words, "dataset.phantom.n_sampled=1"], folder
    )
    assert "page: outputs" in printed
    assert list(folder.glob("outputs/*/wandb/*")), "W&B was written, offline"
    assert len(calls) > 20, "Ray's processes talk among themselves"
    assert beyond(calls) == set()


@pytest.mark.long
def test_the_demo_with_its_engine_calls_nobody(folder: Path) -> None:
    printed, calls = traced([sys.executable, "-m", "cardiolens.sweep", "+experiment=demo", "limit=4"], folder)
    assert "reader_small" in printed
    assert beyond(calls) == set()
