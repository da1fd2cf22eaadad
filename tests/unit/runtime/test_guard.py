"""A guarded cluster: its folder, its token, its environment, and an address that is dead."""

import errno
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError, RunError
from cardiolens.runtime.connect import check_answers, for_workers
from cardiolens.runtime.guard import (
    _BELOW,
    make_token_file,
    patient,
    private_folder,
    unproxied,
    use_token,
)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with room for Ray's sockets below it, which pytest's own has not."""
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701, 0o1777])
def test_below_an_open_folder_a_closed_one_is_made(short: Path, mode: int) -> None:
    short.chmod(mode)
    folder = private_folder({"RAY_TMPDIR": str(short)})
    assert folder.parent == short
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_folder({"TMPDIR": str(short)}) == folder, "the same again"


def test_a_closed_folder_is_taken_as_it_is(short: Path) -> None:
    short.chmod(0o700)
    assert private_folder({"RAY_TMPDIR": str(short), "TMPDIR": "/"}) == short


def test_a_folder_that_somebody_else_could_enter_is_refused(short: Path) -> None:
    short.chmod(0o755)
    (short / f"ray-{os.getuid()}").mkdir()
    (short / f"ray-{os.getuid()}").chmod(0o770)
    with pytest.raises(InputError, match="open to somebody else; remove it, or set RAY_TMPDIR"):
        private_folder({"RAY_TMPDIR": str(short)})


def test_a_link_in_its_place_is_refused(short: Path) -> None:
    """Somebody else may have put it there, to have sockets made where they can reach them."""
    short.chmod(0o755)
    (short / "elsewhere").mkdir(mode=0o700)
    (short / f"ray-{os.getuid()}").symlink_to(short / "elsewhere")
    with pytest.raises(InputError):
        private_folder({"RAY_TMPDIR": str(short)})


@pytest.mark.parametrize("variable", ["RAY_TMPDIR", "TMPDIR"])
def test_a_folder_that_is_too_long_for_sockets_is_refused_beforehand(short: Path, variable: str) -> None:
    for length, mode in ((39, 0o700), (40, 0o700), (39 - len(f"/ray-{os.getuid()}"), 0o755), (36, 0o755)):
        folder = short / ("é" * 4).ljust(length - len(str(short)) - 1 - 4, "x")
        folder.mkdir()
        folder.chmod(mode)
        assert len(os.fsencode(folder)) == length
        if length == 39 or length < 36:
            assert private_folder({variable: str(folder)}).is_relative_to(folder)
            continue
        with pytest.raises(
            InputError, match=rf"{variable}: .* 107; set RAY_TMPDIR .* at most 39 bytes"
        ) as error:
            private_folder({variable: str(folder)})
        assert list(folder.iterdir()) == []
        remedy = str(error.value).partition("e.g. ")[2].replace("/tmp", str(short))
        done = subprocess.run(
            ["sh", "-c", f'{remedy}; printf %s "$RAY_TMPDIR"'], capture_output=True, check=True
        )
        assert private_folder({"RAY_TMPDIR": done.stdout.decode()}) == Path(done.stdout.decode())


def test_ray_takes_the_longest_folder_that_is_accepted() -> None:
    from ray._private.utils import validate_socket_filepath

    validate_socket_filepath("x" * 39 + _BELOW)
    with pytest.raises(OSError, match="cannot exceed 107"):
        validate_socket_filepath("x" * 40 + _BELOW)


def test_a_token_is_long_random_closed_and_kept(tmp_path: Path) -> None:
    one, other = tmp_path / "one" / "auth_token", tmp_path / "other" / "auth_token"
    umask = os.umask(0)
    make_token_file(one)
    make_token_file(other)
    os.umask(umask)
    assert stat.S_IMODE(one.stat().st_mode) == 0o600
    assert stat.S_IMODE(one.parent.stat().st_mode) == 0o700
    assert len(one.read_text()) == 64
    assert one.read_text() != other.read_text()
    before = one.read_text()
    make_token_file(one)
    assert one.read_text() == before


HOSTS = st.lists(st.sampled_from(["corp.example", "10.0.0.0/8", "localhost", "::1"])).map(",".join)


@given(st.dictionaries(st.sampled_from(["no_proxy", "NO_PROXY"]), HOSTS))
def test_loopback_is_added_to_what_the_user_keeps_from_a_proxy(environment: dict[str, str]) -> None:
    found = unproxied(environment)
    assert found["no_proxy"] == found["NO_PROXY"], "libraries read one or the other"
    hosts = found["no_proxy"].split(",")
    assert {"localhost", "127.0.0.1", "::1"} <= set(hosts)
    given_hosts = (environment.get("no_proxy") or environment.get("NO_PROXY", "")).split(",")
    assert set(filter(None, given_hosts)) <= set(hosts)
    assert len(hosts) == len(set(hosts))


def test_no_token_is_read_or_shown_where_the_user_forbids_it(tmp_path: Path) -> None:
    path = tmp_path / "auth_token"
    path.write_text("0" * 64)
    path.chmod(0o644)
    environment = {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN_PATH": str(path)}
    assert not use_token(environment)
    with pytest.raises(InputError, match="others may read this token"):
        use_token({"RAY_AUTH_TOKEN_PATH": str(path)})
    assert not use_token({"RAY_AUTH_TOKEN_PATH": str(tmp_path / "none")})


def test_a_token_that_cannot_be_read_is_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the cluster would be said not to answer, or to be open."""
    path = tmp_path / "auth_token"
    path.touch(mode=0o600)
    with pytest.raises(InputError, match="is empty, and should hold the token"):
        use_token({"RAY_AUTH_TOKEN_PATH": str(path)})
    with pytest.raises(InputError, match=r"cannot be read.*RAY_AUTH_TOKEN_PATH"):
        use_token({"RAY_AUTH_TOKEN_PATH": str(tmp_path)})

    def locked(path: Path, most: int) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("cardiolens.runtime.guard.read_bytes", locked)
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        use_token({"RAY_AUTH_TOKEN_PATH": str(path)})


def test_the_users_own_variables_reach_engines_and_secrets_do_not():
    found = for_workers(
        {
            "VLLM_LOGGING_LEVEL": "DEBUG",
            "VLLM_ATTENTION_BACKEND": "FLASH_ATTN",
            "VLLM_API_KEY": "secret",
            "HF_HOME": "/models",
            "HF_TOKEN": "secret",
            "OMP_NUM_THREADS": "1",
            "HOME": "/home/me",
        }
    )
    assert found["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert found["VLLM_ATTENTION_BACKEND"] == "FLASH_ATTN"
    assert found["HF_HOME"] == "/models"
    assert found["OMP_NUM_THREADS"] == "1"
    assert found["TRANSFORMERS_VERBOSITY"] == "error"
    assert "secret" not in found.values()
    assert "HOME" not in found


def test_without_any_engines_are_quiet():
    assert for_workers({})["VLLM_LOGGING_LEVEL"] == "WARNING"


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://localhost:{port}", "127.0.0.1:70000"])
def test_an_address_where_nothing_listens_is_told_at_once(address: str):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RunError, match=r"no Ray cluster answers there .* python -m cardiolens\.head"):
        check_answers(address.format(port=port))


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://localhost:{port}", "auto", "/tmp/ray"])
def test_what_listens_or_only_ray_understands_is_left_to_ray(address: str):
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_answers(address.format(port=server.getsockname()[1]))


def test_a_node_that_starts_slowly_is_waited_for_and_one_that_never_does_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = iter([RuntimeError("Deadline Exceeded"), RuntimeError("not found")])

    def get_node(address: str, node_id: str) -> str:
        for error in missing:
            raise error
        return f"{node_id} at {address}"

    assert patient(get_node)("host:1", node_id="n1") == "n1 at host:1"
    missing = iter([RuntimeError("never")] * 2)
    monkeypatch.setattr("cardiolens.runtime.guard._START_SECONDS", -1)
    with pytest.raises(RuntimeError, match="never"):
        patient(get_node)("host:1", "n1")
