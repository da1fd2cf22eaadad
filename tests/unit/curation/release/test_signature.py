"""Signatures of releases: made and checked here and by minisign, and refused where they do not fit."""

import base64
import shutil
import subprocess
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.released import INDEX
from cardiolens.curation.release.make import release
from cardiolens.curation.release.signature import SIGNATURE
from cardiolens.curation.release.verify import verify
from tests.unit.curation.release.test_release import SECRET, line, write_lines, write_study


def minisign(*words: str | Path, typed: str = "") -> subprocess.CompletedProcess[str]:
    assert shutil.which("minisign"), "these tests need minisign: .ci/run installs it"
    return subprocess.run(
        ["minisign", *map(str, words)], input=typed, capture_output=True, text=True, check=False
    )


def keys(folder: Path, name: str = "own") -> tuple[Path, Path]:
    """A private key without a password, and its public key, made by minisign."""
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    done = minisign("-G", "-W", "-s", private, "-p", public)
    assert done.returncode == 0, done.stderr
    return private, public


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    write_study(tmp_path, 1, f"{SECRET}-1")
    write_lines(tmp_path, [line(1)])
    given = {"questions": "q.jsonl", "studies": "studies", "out": "out"}
    return [f"{name}={tmp_path / path}" for name, path in given.items()] + ["name=ours", "licence=internal"]


@pytest.fixture
def signed(words: list[str], tmp_path: Path) -> Path:
    private, _ = keys(tmp_path)
    assert release([*words, f"sign={private}"]) == 0
    return tmp_path / "out"


def test_minisign_and_verify_accept_what_release_signed(
    signed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = minisign("-V", "-p", tmp_path / "own.pub", "-m", signed / INDEX)
    assert (done.returncode, done.stderr) == (0, "")
    assert "release:ours 1.0" in done.stdout
    text = (tmp_path / "own.pub").read_text().splitlines()[1]
    for key in (str(tmp_path / "own.pub"), text):
        capsys.readouterr()
        assert verify(signed, key) == 0
        assert capsys.readouterr().out.splitlines()[0].startswith("signature: valid: file:release.json")


@pytest.mark.parametrize("form", [[], ["-l"]], ids=["hashed", "legacy"])
def test_verify_accepts_what_minisign_signed(words: list[str], tmp_path: Path, form: list[str]) -> None:
    private, public = keys(tmp_path)
    release(words)
    done = minisign("-S", *form, "-s", private, "-m", tmp_path / "out" / INDEX)
    assert done.returncode == 0, done.stderr
    assert verify(tmp_path / "out", str(public)) == 0


def test_without_a_key_verify_says_that_nothing_was_checked(
    signed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert verify(signed) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("signature: not checked")
    (signed / SIGNATURE).unlink()
    assert verify(signed) == 0
    assert "signature: none" in capsys.readouterr().out


def _changed(place: int) -> Callable[[Path], object]:
    """A change of one bit of the decoded line at `place` of the signature."""

    def change(out: Path) -> None:
        lines = (out / SIGNATURE).read_bytes().split(b"\n")
        content = bytearray(base64.b64decode(lines[place]))
        content[-1] ^= 1
        lines[place] = base64.b64encode(bytes(content))
        (out / SIGNATURE).write_bytes(b"\n".join(lines))

    return change


def _replaced(old: bytes, new: bytes, name: str = SIGNATURE) -> Callable[[Path], object]:
    return lambda out: (out / name).write_bytes((out / name).read_bytes().replace(old, new))


FORGED: list[tuple[Callable[[Path], object], str]] = [
    (_replaced(b'"internal"', b'"CC-BY-4.0"', INDEX), "does not fit"),
    (_changed(1), "does not fit"),
    (_changed(3), "does not fit"),
    (_replaced(b"release:ours 1.0", b"release:ours 2.0"), "does not fit"),
    (_replaced(b"trusted comment: file", b"comment: file"), "has no trusted comment"),
    (_replaced(b"\n", b"\n\n"), "is not of minisign"),
    (lambda out: (out / SIGNATURE).unlink(), "cannot be read"),
    (lambda out: (out / SIGNATURE).write_bytes(b""), "is not of minisign"),
    (lambda out: (out / SIGNATURE).write_bytes(b"\xff" * 20_000), "cannot be read"),
    (
        lambda out: (out / SIGNATURE).write_bytes(b"untrusted comment: \nx\ntrusted comment: \ny\n"),
        "is not of minisign",
    ),
]


@pytest.mark.parametrize(("forge", "said"), FORGED)
def test_what_does_not_fit_the_key_is_named(
    signed: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    forge: Callable[[Path], object],
    said: str,
) -> None:
    forge(signed)
    capsys.readouterr()
    assert verify(signed, str(tmp_path / "own.pub")) == 1
    (told,) = capsys.readouterr().out.splitlines()
    assert told.startswith(SIGNATURE)
    assert said in told


def test_a_signature_of_another_key_is_named(
    signed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, other = keys(tmp_path, "other")
    assert verify(signed, str(other)) == 1
    own = (tmp_path / "own.pub").read_text().split()[5].zfill(16)  # the comment drops leading zeros
    assert f"was made with another key ({own})" in capsys.readouterr().out


def test_a_link_in_the_place_of_the_signature_is_named(
    signed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (signed / SIGNATURE).rename(tmp_path / "elsewhere")
    (signed / SIGNATURE).symlink_to(tmp_path / "elsewhere")
    assert verify(signed) == 1
    assert f"{SIGNATURE}: is a link" in capsys.readouterr().out


def _with_password(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    content = bytearray(base64.b64decode(lines[1]))
    content[2:4] = b"Sc"
    path.write_bytes(b"\n".join([lines[0], base64.b64encode(bytes(content))]))


def _with_other_half(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    content = bytearray(base64.b64decode(lines[1]))
    content[94:126] = blake2b(b"", digest_size=32).digest()
    path.write_bytes(b"\n".join([lines[0], base64.b64encode(bytes(content))]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.chmod(0o644), "others may read the key"),
        (lambda path: path.write_bytes(b""), "holds no private key"),
        (lambda path: path.write_bytes(b"\xff" * 100_000), "holds no private key"),
        (lambda path: path.unlink(), "holds no private key"),
        (_with_password, "has a password"),
        (_with_other_half, "not of one key"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_before_anything_is_written(
    words: list[str], tmp_path: Path, change: Callable[[Path], object], said: str
) -> None:
    private, _ = keys(tmp_path)
    change(private)
    with pytest.raises(InputError, match=said):
        release([*words, f"sign={private}"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", ["", "RW" + "!" * 54, "untrusted comment: x\nRWQ=\n", "\0"])
def test_what_is_no_public_key_is_refused(signed: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "no.pub"
    path.write_text(content)
    for key in (str(path), str(tmp_path / "absent"), str(tmp_path), "RW" + "A" * 53):
        with pytest.raises(InputError, match="is no public key of minisign"):
            verify(signed, key)
