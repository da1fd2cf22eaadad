"""Templates are found, refused and rendered as the rules of section 7 say."""

import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.protocol.prompts.frames import caption
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import (
    check_folder,
    question_block,
    render,
    template_folders,
    template_for,
)
from cardiolens.protocol.select.selection import pick
from cardiolens.storage.schemas import FRAME
from cardiolens.study.structure import StudyStructure, VolumeStructure

BRAIN = Path(__file__).resolve().parents[4] / "examples" / "brain" / "protocol" / "anatomy.yaml"
SAX = VolumeStructure("cine_sax", "cine", "sax", 10, 25, 0, 9, (1, 5, 8))
STUDY = StudyStructure("PH-0001", {"cine_sax": SAX})
ASKED = AskedQuestion(
    "C02",
    "cine",
    "Which?",
    "multi",
    (("A", "Normal"), ("B", "Thinned"), ("C", "Thickened")),
    ("A",),
    ("one", "two", "three", "four", "five"),
)
GOOD = (
    "Own: {{ question }}\n{% for option in options %}\n{{ option.letter }}) {{ option.text }}\n{% endfor %}\n"
)


def test_caption_is_the_specification_s():
    expected = "Frame 3: cine, short axis, slice 2 of 10 (base to apex), phase 1 of 25"
    assert caption(pick(SAX, 1, 0), SAX, 3, "view") == expected
    assert caption(pick(SAX, 1, 0), SAX, 3, "none") == "Frame 3:"


def test_no_level_words_where_the_slice_order_is_unknown():
    unknown = VolumeStructure("cine_sax", "cine", "sax", 10, 25, 0, 9, (1, 5, 8), levels_known=False)
    expected = "Frame 1: cine, short axis, slice 2 of 10, phase 1 of 25, end-diastole"
    assert caption(pick(unknown, 1, 0), unknown, 1, "full") == expected


def test_shuffled_options_are_lettered_by_place_and_the_rule_follows():
    shuffled = AskedQuestion("C02", "cine", "Which?", "multi", tuple(reversed(ASKED.options)), ("A",))
    text = question_block(shuffled, 2, template_for(shuffled, "standard"))
    assert "A. Thickened\nB. Thinned\nC. Normal\n" in text
    assert "If option C applies, pick only C." in text
    assert shuffled.keys == ("C", "B", "A")


def test_question_text_is_not_a_template():
    asked = AskedQuestion("X01", "cine", "{{ rule }} <b> & {% endif %}", "single", ASKED.options)
    assert "Question: {{ rule }} <b> & {% endif %}\n" in question_block(
        asked, 2, template_for(asked, "standard")
    )


def test_the_question_only_control_mentions_no_frames():
    prompt = render((), STUDY, ASKED, template_for(ASKED, "reasoning", display="nothing"), "view")
    assert "frame" not in (prompt.system + prompt.text).lower()
    assert FRAME not in prompt.text


def test_own_template_is_found_first_and_named_by_its_content(tmp_path):
    (tmp_path / "question_standard.jinja").write_text(GOOD)
    own = template_for(ASKED, "standard", (tmp_path,))
    packaged = template_for(ASKED, "standard")
    assert question_block(ASKED, 2, own) == "Own: Which?\nA) Normal\nB) Thinned\nC) Thickened"
    assert own.name == f"question_standard@{sha256(GOOD.encode()).hexdigest()[:8]}"
    assert own.name != packaged.name
    assert own.system == packaged.system
    assert template_for(ASKED, "reasoning", (tmp_path,)) == template_for(ASKED, "reasoning")


@pytest.mark.parametrize(("has_own", "beginning"), [(False, "Own: "), (True, "Mine. Own: ")])
def test_templates_of_a_protocol_stand_behind_the_users(tmp_path, has_own, beginning):
    protocol = tmp_path / "protocol"
    (protocol / "templates").mkdir(parents=True)
    (protocol / "templates" / "question_standard.jinja").write_text(GOOD)
    if has_own:
        (tmp_path / "question_standard.jinja").write_text(f"Mine. {GOOD}")
    template = template_for(ASKED, "standard", template_folders(tmp_path, str(protocol)))
    assert question_block(ASKED, 2, template).startswith(beginning)


def test_only_protocols_about_the_heart_are_told_what_d02_takes_for_granted(tmp_path):
    asked = AskedQuestion("D02", "multi", "Which?", "single", ASKED.options)
    without_anatomy = template_for(asked, "standard", template_folders(None, str(tmp_path)))
    assert "non-ischaemic" in question_block(asked, 2, without_anatomy)
    assert without_anatomy == template_for(asked, "standard")
    shutil.copy(BRAIN, tmp_path)
    other_organ = template_for(asked, "standard", template_folders(None, str(tmp_path)))
    assert "non-ischaemic" not in question_block(asked, 2, other_organ)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{% for option in options %}{{ option.text }}{% endfor %}", r"never uses \['question'\]"),
        ("{{ question }}", r"never uses \['options'\]"),
        (GOOD + "{{ answer }}", r"uses \['answer'\], which it is not given; it may use \['checklist'"),
        (GOOD + "{% if %}", "cannot be rendered as a Jinja template"),
        (GOOD + "{{ options[7].text }}", "cannot be rendered as a Jinja template"),
        (GOOD + "\ufffc", "holds U"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_before_anything_runs(tmp_path, text, message):
    (tmp_path / "question_standard.jinja").write_text(text)
    with pytest.raises(InputError, match=message):
        check_folder(tmp_path)


def test_a_folder_without_a_template_that_is_used_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no template; a template is called one of"):
        check_folder(tmp_path)
    (tmp_path / "questions.jinja").write_text(GOOD)
    with pytest.raises(InputError, match=r"questions.jinja: no prompt uses this name"):
        check_folder(tmp_path)
