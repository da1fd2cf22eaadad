"""Protect a Ray cluster: anyone who reaches its ports or files could run programs as its user.

A cluster on this machine has its own token, listens only on loopback addresses, and keeps its files in a
folder that only its user can enter.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.private_file import check_private, is_private_folder
from cardiolens.base.untrusted.bounded_files import read_bytes

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NO_PROXY = ("no_proxy", "NO_PROXY")  # gRPC reads the first, other libraries the second as well


@contextmanager
def guarded() -> Iterator[None]:
    """Protect the cluster that the block starts on this machine; restore the environment after the block.

    The user's Ray authentication settings do not apply: this cluster always has a token.
    """
    before = dict(os.environ)
    folder = private_folder(os.environ)
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_TMPDIR": str(folder),
    }
    # By default vLLM finds its address by a route to the internet, and puts sockets into /tmp.
    for name, value in {"VLLM_HOST_IP": "127.0.0.1", "VLLM_RPC_BASE_PATH": str(folder)}.items():
        os.environ.setdefault(name, value)
    _read_again()
    try:
        with ray_changed(loopback=True):
            yield
    finally:
        os.environ.clear()
        os.environ |= before
        _read_again()


@contextmanager
def ray_changed(*, loopback: bool) -> Iterator[None]:
    """Change for the block how Ray starts or joins a cluster: slow nodes are waited for, and nobody is asked.

    Even without a dashboard, Ray's API server asks three clouds for metadata, and reports that usage reports
    are off; Ray goes on without it, as when it fails to start. With `loopback`, 127.0.0.1 is not replaced
    with an address of this machine that others can reach.
    """
    from ray._private import ray_constants, services

    before = services.start_api_server, services.get_node, ray_constants.ENABLE_RAY_CLUSTER
    services.start_api_server = lambda *_, **__: (None, None)
    services.get_node = patient(services.get_node)
    if loopback:
        ray_constants.ENABLE_RAY_CLUSTER = False  # Ray's value on systems without cluster support
    try:
        yield
    finally:
        services.start_api_server, services.get_node, ray_constants.ENABLE_RAY_CLUSTER = before


def patient(get_node: Callable[..., Any]) -> Callable[..., Any]:
    """Return Ray's look-up of a node, which then waits up to three minutes for a node that is starting.

    Ray gives up after 30 s, which is too short where other work keeps the processors busy.
    """

    def look_up(*arguments: Any, **options: Any) -> Any:
        end = time.monotonic() + _START_SECONDS
        while True:
            try:
                return get_node(*arguments, **options)
            except RuntimeError:  # it is not registered yet
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    return look_up


_START_SECONDS = 180


def _read_again() -> None:
    """Make Ray read authentication mode and token again; it reads each once per process."""
    from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


def use_token(environment: MutableMapping[str, str]) -> bool:
    """Use the user's token for an existing cluster; False without a token, or if RAY_AUTH_MODE forbids it.

    InputError for a token file that others may read, or from which no token can be read.
    """
    if environment.get("RAY_AUTH_MODE", "token").lower() != "token":
        return False
    if not environment.get("RAY_AUTH_TOKEN"):
        path = token_file(environment)
        try:
            fault = (
                "" if read_bytes(path, _MOST_TOKEN).strip() else "is empty, and should hold the token of Ray"
            )
        except FileNotFoundError:
            return False
        except OSError as error:
            fault = f"the token of Ray cannot be read ({error.strerror})"
        if fault:
            raise InputError(f"{path}: {fault}; {_OTHER_TOKEN}")
        check_token_file(path)
    environment["RAY_AUTH_MODE"] = "token"
    _read_again()
    return True


_MOST_TOKEN = 1 << 16  # bytes of its file
_OTHER_TOKEN = "copy it again from the machine that started the cluster, or set RAY_AUTH_TOKEN_PATH"


def token_file(environment: Mapping[str, str]) -> Path:
    """Return the file in which Ray looks for a token."""
    return Path(environment.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")


def check_token_file(path: Path) -> None:
    """Raise InputError unless the user owns a token file and nobody else has access."""
    otherwise = ", and if anybody else uses this machine delete it and start the cluster again with a new one"
    check_private(path, str(path), "run programs as you", otherwise, what="this token", owned=True)


def make_token_file(path: Path) -> None:
    """Write a new random token to a file of mode 600; an existing file is checked and kept."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        disk.create(path, secrets.token_hex(32).encode())
    except FileExistsError:
        check_token_file(path)


def private_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder for sessions and sockets, owned by the user and closed to others; make it if absent.

    This folder must be private because Ray opens its own folders to everybody.
    """
    folder = folder_of_sockets(environment)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); {_OF_YOUR_OWN}") from None
    if not is_private_folder(folder):
        raise InputError(f"{folder}: belongs to or is open to somebody else; {_OF_YOUR_OWN}")
    return folder


def folder_of_sockets(environment: Mapping[str, str]) -> Path:
    """Return RAY_TMPDIR or TMPDIR if that is a private folder, else a folder below it, which may be absent.

    InputError if the sockets that Ray makes below it would have paths that are too long.
    """
    name = next((name for name in ("RAY_TMPDIR", "TMPDIR") if environment.get(name)), "RAY_TMPDIR")
    folder = Path(environment.get(name) or "/tmp").absolute()
    if not (folder.is_dir() and is_private_folder(folder)):
        folder /= f"ray-{os.getuid()}"
    n_bytes, most = len(os.fsencode(folder)), _SOCKET_BYTES - len(_BELOW)
    if n_bytes > most:
        raise InputError(
            f"{name}: {folder} has {n_bytes} bytes, Ray's sockets below it {n_bytes + len(_BELOW)}; Linux "
            f"takes {_SOCKET_BYTES}; set RAY_TMPDIR to a folder of your own with mode 700 and a path of at "
            f"most {most} bytes, e.g. mkdir -p -m 700 /tmp/r$(id -u); export RAY_TMPDIR=/tmp/r$(id -u)"
        )
    return folder


_SOCKET_BYTES = 107
_BELOW = "/ray/session_2000-01-01_00-00-00_000000_4194304/sockets/plasma_store"  # of the longest process id
_OF_YOUR_OWN = "remove it, or set RAY_TMPDIR to a short path of a folder of your own with mode 700"


def unproxied(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the no_proxy variables: the user's hosts and the loopback addresses."""
    listed = [*(environment.get("no_proxy") or environment.get("NO_PROXY", "")).split(","), *LOOPBACK]
    value = ",".join(dict.fromkeys(filter(None, (host.strip() for host in listed))))
    return dict.fromkeys(_NO_PROXY, value)
