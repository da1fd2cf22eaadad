"""Byte order marks, and what desktops and archivers leave in folders: read, or passed over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_folders import study

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import BYTE_ORDER_MARK, decode
from cardiolens.config.compose import read_spec
from cardiolens.config.conf_names import legal_names
from cardiolens.config.dataset import DatasetSpec
from cardiolens.protocol.prompts.template import check_folder
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.instantiate import records
from cardiolens.protocol.tasks.questions import write_questions
from cardiolens.study.manifest import read_study
from cardiolens.workflow.steps.prepare_studies import _read_studies
from tests.unit.questions_file import read_questions

LEFT = ("__MACOSX", ".ipynb_checkpoints", "._S1", ".DS_Store", "Thumbs.db", "desktop.ini", ".git", "@eaDir")


@given(st.text().filter(lambda text: not text.startswith(("\ufeff", "\0")) and text[1:2] != "\0"))
def test_a_mark_changes_nothing(text):
    assert decode(BYTE_ORDER_MARK + text.encode()) == decode(text.encode()) == text


@given(st.text('abc{}": ', min_size=2), st.sampled_from(["utf-16", "utf-16-le", "utf-16-be", "utf-32"]))
def test_other_encodings_are_named(text, encoding):
    with pytest.raises(UnicodeError, match=r"^it is UTF-16 or UTF-32; expected UTF-8; save it as UTF-8$"):
        decode(text.encode(encoding))


def test_a_manifest_and_questions_may_begin_with_a_mark(tmp_path):
    path = study(tmp_path / "S1") / "study.json"
    path.write_bytes(BYTE_ORDER_MARK + path.read_bytes())
    assert read_study(path.parent).study_id == "S1"
    catalogue = load_catalogue("openprotocol-1")
    asked = records("S1", catalogue, {"cine.lv_size": ("normal",)}, sequences=["cine"], reports={})
    write_questions(tmp_path / "plain.jsonl", asked)
    (tmp_path / "marked.jsonl").write_bytes(BYTE_ORDER_MARK + (tmp_path / "plain.jsonl").read_bytes())
    marked = read_questions(tmp_path / "marked.jsonl", catalogue)
    assert marked.num_rows
    assert marked.equals(read_questions(tmp_path / "plain.jsonl", catalogue))


@pytest.mark.parametrize("name", LEFT)
def test_what_was_left_behind_is_no_study(name, tmp_path):
    study(tmp_path / "S1")
    (tmp_path / name).mkdir()
    (tmp_path / name / "study.json").write_text("no study")
    studies, failed = _read_studies(DatasetSpec(name="own", studies=tmp_path, questions=tmp_path / "q"))
    assert ([one.study_id for one in studies], failed) == (["S1"], {})


def test_templates_and_configuration_pass_them_over(tmp_path, monkeypatch):
    (tmp_path / "templates").mkdir()
    text = "{{ question }} {{ options }}"
    (tmp_path / "templates" / "question_standard.jinja").write_bytes(BYTE_ORDER_MARK + text.encode())
    (tmp_path / "templates" / "._question_standard.jinja").write_bytes(b"\0\x05\x16\x07")
    check_folder(tmp_path / "templates")
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    own = b"name: own\nstudies: a\nquestions: b\n"
    (tmp_path / "conf" / "dataset" / "own.yaml").write_bytes(BYTE_ORDER_MARK + own)
    (tmp_path / "conf" / "dataset" / "._own.yaml").write_bytes(b"\0\x05\x16\x07")
    monkeypatch.chdir(tmp_path)
    assert "._own" not in legal_names("dataset")
    assert read_spec(["dataset=own"]).dataset.name == "own"


def test_a_mark_that_would_hide_a_package_is_refused(tmp_path, monkeypatch):
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    path = tmp_path / "conf" / "experiment" / "mine.yaml"
    text = b"# @package _global_\nlimit: 7\n"
    monkeypatch.chdir(tmp_path)
    path.write_bytes(text)
    assert read_spec(["+experiment=mine"]).limit == 7
    path.write_bytes(BYTE_ORDER_MARK + text)
    with pytest.raises(InputError, match=r"mine\.yaml: .*a byte order mark hides its first line from Hydra"):
        read_spec(["+experiment=mine"])
    path.write_bytes(text.decode().encode("utf-16"))
    with pytest.raises(InputError, match=r"mine\.yaml: .*UTF-16 or UTF-32; expected UTF-8"):
        read_spec(["+experiment=mine"])
