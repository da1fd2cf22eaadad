"""Files that mean harm: named at once, without waiting, and in little memory, whatever they claim to hold."""

import json
import os
import re
import socket
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused, run_verb
from study_folders import sha256, study, volume, voxels, write_nifti

from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import one_line, several_lines
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.config.compose import check_own_files
from cardiolens.config.dataset import Windows
from cardiolens.protocol.prompts.template import check_folder
from cardiolens.study.group import prepare_group
from cardiolens.study.manifest import read_study
from cardiolens.study.nifti import parse_header
from cardiolens.workflow.steps.prepare_studies import prepare_dataset

MIB = 2**20
pytestmark = pytest.mark.timeout(60)

WINDOWS = Windows(pct=(1.0, 99.0))


@contextmanager
def little_memory(most: int = 32 * MIB) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak / MIB:.0f} MiB"


def failure(folder: Path) -> str:
    """The error of preparing one study folder."""
    (outcome,) = prepare_group(folder.parent / "store", "part-1.parquet", [folder], WINDOWS)
    assert outcome.record is None
    return outcome.error


def packed(whole: bytes, more: int = 0) -> bytes:
    """Bytes in gzip, with `more` MiB of zeros behind them."""
    packer = zlib.compressobj(1, wbits=31)
    zeros = bytes(MIB)
    return b"".join([packer.compress(whole), *(packer.compress(zeros) for _ in range(more)), packer.flush()])


def with_file(folder: Path, path: str, content: bytes, **changes: object) -> Path:
    """A study whose volume is this file."""
    entry = volume(folder)
    (folder / path).write_bytes(content)
    return study(folder, entry | {"path": path, "sha256": sha256(folder / path)} | changes)


def nifti(tmp_path: Path) -> bytes:
    write_nifti(tmp_path / "whole.nii", voxels())
    return (tmp_path / "whole.nii").read_bytes()


def reshaped(whole: bytes, *shape: int) -> bytes:
    patched = bytearray(whole)
    struct.pack_into(f"<{1 + len(shape)}h", patched, 40, len(shape), *shape)
    return bytes(patched)


SHAPES = {
    "voxels": [10**6, 10**6, 12],
    "frames in a stack": [1, 1, 10**9],
    "frames of a cycle": [1, 1, 10**5, 10**5],
    "a side": [10**12, 1, 1],
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_declared_size_beyond_all_volumes_is_refused(shape: list[int], tmp_path: Path) -> None:
    folder = tmp_path / "S1"
    study(folder, volume(folder) | {"shape": shape, "layout": {"order": "static"}})
    with (
        little_memory(),
        pytest.raises(InputError, match=r"shape has [\d,]+ (voxels|frames); expected at most"),
    ):
        read_study(folder)


def test_a_header_of_another_shape_is_refused_before_voxels_are_unpacked(tmp_path: Path) -> None:
    whole = reshaped(nifti(tmp_path), 1000, 1000, 600)
    folder = with_file(tmp_path / "S1", "v.nii.gz", packed(whole, 1200))
    with little_memory():
        assert "its shape is (1000, 1000, 600); expected (6, 5, 12)" in failure(folder)


def test_a_file_that_holds_more_than_its_header_says_is_refused(tmp_path: Path) -> None:
    folder = with_file(tmp_path / "S1", "v.nii.gz", packed(nifti(tmp_path), 300))
    with little_memory():
        assert "MiB more than the 1072 bytes that its header declares" in failure(folder)


def test_a_file_far_larger_than_its_volume_is_not_read(tmp_path: Path) -> None:
    folder = with_file(tmp_path / "S1", "v.nii", nifti(tmp_path))
    os.truncate(folder / "v.nii", 2**40)
    with little_memory():
        assert "it has 1,099,511,627,776 bytes; expected at most" in failure(folder)


@given(st.integers(-(2**31), 2**31).filter(lambda offset: offset < 352 or offset > 352 + 64 * MIB))
def test_voxels_begin_behind_the_header(tmp_path_factory: pytest.TempPathFactory, offset: int) -> None:
    patched = bytearray(nifti(tmp_path_factory.mktemp("nifti")))
    struct.pack_into("<f", patched, 108, offset)
    with pytest.raises(InputError, match=r"its voxels begin at byte|header is damaged"):
        parse_header(bytes(patched))


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.bind(path.name)
    finally:
        os.chdir(here)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


NO_FILES: dict[str, Callable[[Path], None]] = {"a pipe": fifo, "a socket": listening, "a device": device}


@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_not_waited_for(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "it")
    with pytest.raises(OSError, match=r"it is a (pipe|device), not a file|No such device or address"):
        read_bytes(tmp_path / "it")


@pytest.mark.parametrize("make", [fifo, listening])
@pytest.mark.parametrize("name", ["v.nii", "m.nii", "study.json"])
def test_a_study_of_pipes_is_refused(make: Callable[[Path], None], name: str, tmp_path: Path) -> None:
    folder = with_file(tmp_path / "S1", "v.nii", nifti(tmp_path), mask={"path": "m.nii", "sha256": "0" * 64})
    (folder / name).unlink(missing_ok=True)
    make(folder / name)
    assert f"{name}: cannot be read" in failure(folder)


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize("text", [LAUGHS, "a: &x [*x]", "a: &x {b: *x}"])
def test_aliases_that_stand_for_more_than_memory_are_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "model" / "mine.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with little_memory(), pytest.raises(InputError, match="its aliases are nested"):
        check_own_files()


@pytest.mark.parametrize("key", ["study_id", "patient_id", "volumes", "sha256", "path"])
def test_a_manifest_of_two_meanings_is_refused(key: str, tmp_path: Path) -> None:
    folder = with_file(tmp_path / "S1", "v.nii", nifti(tmp_path))
    text = (folder / "study.json").read_text()
    (found,) = list(re.finditer(rf'"{key}": ("[^"]*"|\[)', text))[:1]
    value = "[], " if found[1] == "[" else f"{found[1]}, "
    (folder / "study.json").write_text(text[: found.start()] + f'"{key}": {value}' + text[found.start() :])
    with pytest.raises(InputError, match=rf"study\.json: key '{key}' stands twice in one object"):
        read_study(folder)


ASKED = "{{ question }} {{ options }} "
TEMPLATES = [
    "{% for i in range(10**9) %}x{% endfor %}",
    "{{ 'x' * 10**10 }}",
    "{{ 10 ** 10 ** 10 }}",
    "{{ question | center(10**10) }}",
    "{{ [question] | join(question) }}",
    "{% set x = question %}" + "{% set x = x ~ x %}" * 99 + "{{ x }}",
    "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "{% for a in options recursive %}{{ loop(options) }}{% endfor %}",
    "{% for a in options %}{% for b in options %}{% for c in options %}x{% endfor %}{% endfor %}{% endfor %}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{% include '/etc/passwd' %}",
    "{% filter upper %}x{% endfilter %}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "x" * (65 << 10),
]


@pytest.mark.parametrize("text", TEMPLATES, ids=range(len(TEMPLATES)))
def test_a_template_that_is_a_program_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "question_standard.jinja").write_text(ASKED + text)
    with little_memory(), pytest.raises(InputError, match=r"question_standard\.jinja: "):
        check_folder(tmp_path)


def test_names_that_move_the_cursor_are_printed_as_escapes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\nerror: all is well\r\x9b31m\u202e"
    folder = tmp_path / "studies" / f"S1{evil}"
    folder.mkdir(parents=True)
    (folder / "study.json").write_text(json.dumps({"schema": "study-1", "study_id": evil, "x" + evil: 1}))
    words = ["dataset=real", f"dataset.studies={folder.parent}", "dataset.questions=q"]
    said = refused(
        lambda: run_verb(prepare_dataset, [*words, f"store={tmp_path}/store"]), "study", capfd, tmp_path
    )
    assert said.removesuffix("\n").isprintable()
    assert "\\x1b" in said


@given(st.text(st.characters(codec=None)))
def test_plain_text_can_be_stored_and_moves_no_cursor(text: str) -> None:
    assert one_line(text).isprintable()
    assert one_line(one_line(text)) == one_line(text)
    assert len(one_line(text, 10)) <= 13
    kept = several_lines(text)
    kept.encode()
    assert all(character >= " " or character in "\n\t" for character in kept)
    assert not set(kept) & {chr(code) for code in range(0x7F, 0xA0)}
    assert several_lines(kept) == kept


@given(st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"))))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert one_line(text) == several_lines(text) == text
