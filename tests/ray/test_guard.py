"""Attacks on a running Ray cluster: a client without its token, a look at its files and ports, a proxy.

They are tried on a cluster as a sweep starts it, and on one as `python -m cardiolens.head` starts it.
"""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from cardiolens.config.cluster import ClusterSpec
from cardiolens.runtime.connect import ray_cluster
from tests.ray.test_calls_nobody import is_loopback

pytestmark = [
    pytest.mark.full,
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),  # Ray Data reads its own old options
]

PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "grpc_proxy", "ALL_PROXY")
# Whoever may write a key of Ray's own table can have a worker load a function.
ATTACK = """
import sys
from ray._raylet import GcsClient
print("written", GcsClient(address=sys.argv[1]).internal_kv_put(b"attack", b"1", True, None))
"""
# A program of the cluster's owner, without any set-up but the documented one.
OWNER = """
import os, sys
from cardiolens.runtime.connect import ray_cluster
from cardiolens.config.cluster import ClusterSpec
os.umask(0o037)
with ray_cluster(ClusterSpec(address=sys.argv[1])):
    import ray
    umask = ray.get(ray.remote(lambda: os.umask(0o077)).remote())
    print("umask of a worker", oct(umask))
"""


@dataclass(frozen=True)
class Attacked:
    """A running cluster."""

    address: str
    folder: Path  # that its files are in
    processes: list[psutil.Process]
    proxied: list[bytes]  # what a proxy of the environment was sent
    home: Path
    token: str


@contextmanager
def proxy() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that keeps what it is sent, for whoever reads the environment."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield f"http://127.0.0.1:{server.getsockname()[1]}", seen
        while True:
            try:
                connection, _ = server.accept()
            except BlockingIOError:
                break
            seen.append(connection.recv(65536))


def own_processes(root: psutil.Process) -> list[psutil.Process]:
    return [root, *root.children(recursive=True)]


@pytest.fixture(scope="module")
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="g", dir="/tmp") as folder:  # Ray's sockets need a short path
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def of_a_sweep(short: Path) -> Iterator[Attacked]:
    umask = os.umask(0o077)
    with pytest.MonkeyPatch.context() as patch, proxy() as (url, seen):
        for name in PROXIES:
            patch.setenv(name, url)
        patch.setenv("RAY_TMPDIR", str(short))
        with ray_cluster(ClusterSpec()):
            import ray

            ray.get(ray.remote(lambda: None).remote())
            address = ray.get_runtime_context().gcs_address
            processes = own_processes(psutil.Process())
            folder = Path(os.environ["RAY_TMPDIR"])
            yield Attacked(address, folder, processes, seen, short, os.environ["RAY_AUTH_TOKEN"])
    os.umask(umask)


@contextmanager
def head(short: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    options = ("--num-cpus=1", "--object-store-memory=100000000", "--block", *words)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    started = subprocess.Popen(
        [sys.executable, "-m", "cardiolens.head", *options],
        env=environment | {"HOME": str(short), "RAY_TMPDIR": str(short), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield started
    finally:
        children = psutil.Process(started.pid).children(recursive=True) if started.poll() is None else []
        started.send_signal(signal.SIGTERM)
        started.communicate(timeout=600)
        for child in psutil.wait_procs(children, timeout=300)[1]:
            child.kill()


def _until_started(head: subprocess.Popen[str]) -> tuple[subprocess.Popen[str] | None, str]:
    """Wait until a head runs; None with what it printed if it ended instead."""
    printed = ""
    while line := head.stdout.readline():
        printed += line
        if "Ray runtime started" in line:
            return head, printed
    return None, printed


@pytest.fixture(scope="module")
def of_several(short: Path) -> Iterator[Attacked]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ExitStack() as running:
        started, printed = _until_started(running.enter_context(head(short, f"--port={port}")))
        if not started:  # on a very busy machine
            started, printed = _until_started(running.enter_context(head(short, f"--port={port}")))
        assert started, printed
        processes = own_processes(psutil.Process(started.pid))
        token = (short / ".ray" / "auth_token").read_text()
        yield Attacked(f"127.0.0.1:{port}", short / f"ray-{os.getuid()}", processes, [], short, token)


@pytest.fixture(params=["of_a_sweep", "of_several"])
def attacked(request: pytest.FixtureRequest) -> Attacked:
    return request.getfixturevalue(request.param)


def client(program: str, attacked: Attacked, **environment: str) -> str:
    """What a program printed that another user's shell, or the owner's with HOME, runs."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", program, attacked.address],
        env={**clean, "HOME": "/nonexistent", **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("shown", [{}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}])
def test_a_client_without_the_token_is_refused(attacked: Attacked, shown: dict[str, str]) -> None:
    printed = client(ATTACK, attacked, **shown)
    assert "AuthenticationError" in printed, printed
    assert "written" not in printed


def test_the_token_is_what_lets_a_client_in(attacked: Attacked) -> None:
    """Else the test above would also pass with a cluster that lets nobody in."""
    shown = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": attacked.token}
    assert client(ATTACK, attacked, **shown).startswith("written")


def test_nothing_listens_beyond_loopback(attacked: Attacked) -> None:
    ports = []
    for process in attacked.processes:
        with suppress(psutil.NoSuchProcess):  # Ray ends idle workers
            found = [one for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN]
            ports += [(process.name(), one.laddr.ip) for one in found]
    assert len(ports) > 5, "a GCS, a raylet, agents and workers"
    assert [found for found in ports if not is_loopback(found[1])] == []


def test_nobody_else_enters_the_folder_of_sessions(attacked: Attacked) -> None:
    status = attacked.folder.stat()
    assert status.st_uid == os.getuid()
    assert stat.S_IMODE(status.st_mode) == 0o700, "folders below it are open to everybody: Ray's doing"
    assert list(attacked.folder.rglob("*.sock*")) or list(attacked.folder.rglob("plasma_store"))
    files = [path for path in attacked.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in files if path.stat().st_mode & 0o077] == []


def test_the_token_is_in_no_command_line_and_in_no_file_of_a_session(attacked: Attacked) -> None:
    lines = []
    for process in psutil.process_iter():
        with suppress(psutil.ZombieProcess, psutil.NoSuchProcess):  # has ended, and with it its command line
            lines.append(" ".join(process.cmdline()))
    assert lines
    assert [line for line in lines if attacked.token in line] == []
    files = [path for path in attacked.folder.rglob("*") if path.is_file()]
    assert [path for path in files if attacked.token.encode() in path.read_bytes()] == []


def test_a_proxy_gets_nothing_of_loopback(of_a_sweep: Attacked) -> None:
    assert of_a_sweep.proxied == []


def test_the_owner_connects_with_the_file_alone_and_keeps_the_umask(of_several: Attacked) -> None:
    path = of_several.home / ".ray" / "auth_token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "umask of a worker 0o37" in client(OWNER, of_several, HOME=str(of_several.home))


def test_another_token_is_an_error_in_words(of_several: Attacked) -> None:
    printed = client(OWNER, of_several, RAY_AUTH_TOKEN="0" * 64)
    assert "wants another token; set RAY_AUTH_TOKEN_PATH" in printed.splitlines()[-1]


def test_a_token_that_others_can_read_starts_and_joins_nothing(short: Path, of_several: Attacked) -> None:
    home = short / "open"
    (home / ".ray").mkdir(parents=True)
    (home / ".ray" / "auth_token").write_text("0" * 64)
    (home / ".ray" / "auth_token").chmod(0o644)
    printed = client(OWNER, of_several, HOME=str(home))
    assert "others may read this token (mode 644" in printed
    with head(home) as started:
        assert "run chmod 600" in started.communicate(timeout=600)[0]
        assert started.returncode == 2
