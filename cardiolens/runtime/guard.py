"""Guards of a Ray cluster: whoever reaches its ports or files could run programs as its user.

A cluster of this machine has a token of its own, listens on loopback addresses alone, and keeps its files in
a folder that nobody else can enter.
"""

import os
import secrets
import stat
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from cardiolens.base.errors import InputError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NO_PROXY = ("no_proxy", "NO_PROXY")  # gRPC reads the first, other libraries the second as well
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@contextmanager
def guarded() -> Iterator[None]:
    """Guard the cluster that the block starts on this machine; the environment is restored after the block.

    What the user set for other clusters does not hold for this one: it is never without a token.
    """
    from ray._private import services

    before, server = dict(os.environ), services.start_api_server
    folder = private_folder(os.environ)
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_TMPDIR": str(folder),
    }
    # vLLM finds out its address by a route to the internet, and puts sockets into /tmp.
    for name, value in {"VLLM_HOST_IP": "127.0.0.1", "VLLM_RPC_BASE_PATH": str(folder)}.items():
        os.environ.setdefault(name, value)
    services.start_api_server = no_api_server
    _read_again()
    try:
        with loopback_kept():
            yield
    finally:
        services.start_api_server = server
        os.environ.clear()
        os.environ |= before
        _read_again()


@contextmanager
def loopback_kept() -> Iterator[None]:
    """Keep Ray from replacing 127.0.0.1 by an address of this machine that others can reach."""
    from ray._private import ray_constants

    replaced = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False  # as Ray has it on systems without clusters
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = replaced


def no_api_server(*_arguments: object, **_options: object) -> tuple[None, None]:
    """Stand for Ray's function that starts its server of the dashboard, and start nothing.

    Without a dashboard that server would still ask three clouds for metadata, and report that it does not
    report. Ray goes on without it, as where it cannot be started.
    """
    return None, None


def _read_again() -> None:
    """Have Ray read mode and token again: it reads each once per process."""
    from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


def use_token(environment: MutableMapping[str, str]) -> bool:
    """Show the user's token to an existing cluster; return False if there is none, or RAY_AUTH_MODE forbids.

    InputError for a token that others may read.
    """
    if environment.get("RAY_AUTH_MODE", "token").lower() != "token":
        return False
    if not environment.get("RAY_AUTH_TOKEN"):
        path = token_file(environment)
        if not path.exists():
            return False
        check_token_file(path)
    environment["RAY_AUTH_MODE"] = "token"
    _read_again()
    return True


def token_file(environment: Mapping[str, str]) -> Path:
    """The file in which Ray looks for a token."""
    return Path(environment.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")


def check_token_file(path: Path) -> None:
    """Raise InputError unless a token file is the user's own and nobody else's."""
    status = path.stat()
    if status.st_mode & _OTHERS or status.st_uid != os.getuid():
        raise InputError(
            f"{path}: others may read this token (mode {stat.S_IMODE(status.st_mode):o}, owner "
            f"{status.st_uid}), and with it run programs as you; run chmod 600 {path}, and if anybody else "
            "uses this machine delete it and start the cluster again with a new one"
        )


def make_token_file(path: Path) -> None:
    """Write a new random token to a file of mode 600; one that is there is checked and kept."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        check_token_file(path)
        return
    with open(handle, "w") as file:
        file.write(secrets.token_hex(32))


def private_folder(environment: Mapping[str, str]) -> Path:
    """The folder for sessions and sockets, made if need be: the user's own, closed to everybody else.

    RAY_TMPDIR or TMPDIR if it is such a folder, else one below it. Ray opens its own folders to everybody,
    so it is this one that must be closed. The name is short: the path of a socket may have 107 characters.
    """
    system = Path(environment.get("RAY_TMPDIR") or environment.get("TMPDIR") or "/tmp")
    if system.is_dir() and _is_private(system):
        return system.absolute()
    folder = system.absolute() / f"ray-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); {_OF_YOUR_OWN}") from None
    if not _is_private(folder):
        raise InputError(f"{folder}: belongs to or is open to somebody else; {_OF_YOUR_OWN}")
    return folder


_OF_YOUR_OWN = "remove it, or set RAY_TMPDIR to a short path of a folder of your own with mode 700"


def _is_private(folder: Path) -> bool:
    """Return whether a folder, which is no link, is the user's own and closed to everybody else."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & _OTHERS


def unproxied(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that keep loopback addresses from a proxy, added to what the user lists there."""
    listed = [*(environment.get("no_proxy") or environment.get("NO_PROXY", "")).split(","), *LOOPBACK]
    value = ",".join(dict.fromkeys(filter(None, (host.strip() for host in listed))))
    return dict.fromkeys(_NO_PROXY, value)
