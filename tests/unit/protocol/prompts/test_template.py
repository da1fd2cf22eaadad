"""Templates are found, refused and rendered as the rules of section 7 say."""

import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.base.errors import InputError
from cardiolens.inference.plan.plan import plan
from cardiolens.protocol.prompts.frames import captions
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import (
    check_folder,
    question_block,
    template_folders,
    template_for,
)
from cardiolens.storage import schemas, tables
from cardiolens.study.structure import VolumeStructure

BRAIN = Path(__file__).resolve().parents[4] / "examples" / "brain" / "protocol" / "anatomy.yaml"
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


def test_no_level_words_where_the_slice_order_is_unknown():
    unknown = VolumeStructure("cine_sax", "cine", "sax", 10, 25, 0, 9, (1, 5, 8), levels_known=False)
    expected = " cine, short axis, slice 2 of 10, phase 1 of 25, end-diastole"
    assert captions(unknown, "full")[25] == expected


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


@pytest.mark.parametrize("end", ["{% if %}", "{{ options[7].text }}"])
def test_a_template_that_cannot_be_rendered_is_refused_before_anything_runs(tmp_path, end):
    (tmp_path / "question_standard.jinja").write_text(GOOD + end)
    with pytest.raises(InputError, match="cannot be rendered as a Jinja template"):
        check_folder(tmp_path)


def test_a_folder_without_a_template_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no template; a template is called one of"):
        check_folder(tmp_path)


KNOWN = {"C02": "thinned, thickened or bulging", "L02": "where along the long axis"}
PROMPTS = [
    {"name": name, "style": style, "max_tokens": 1024}
    for name, style in (("reasoning", "reasoning"), ("paper", "paper"), ("standard", "standard"))
]


def test_two_subtasks_are_asked_by_the_papers_points_and_all_others_as_before(tmp_path: Path) -> None:
    root = make_cohort(tmp_path, 3)
    subtasks = ["C02", "L02", "C10", "D01", "R-LGE"]
    spec = sweep_spec(root, reader("constant", answer="A"), prompt=PROMPTS, subtask=subtasks)
    planned = plan(spec)
    prompt_of = {arm.arm_id: arm.prompt.name for arm in planned.arms}
    rows = tables.read(planned.run.requests("constant"), schemas.REQUESTS).to_pylist()
    asked = {(row["qa_id"], prompt_of[row["arm_id"]]): row for row in rows}
    assert {row["subtask"] for row in rows} == set(subtasks)
    for (qa_id, prompt), row in asked.items():
        ours = asked[qa_id, "reasoning"]
        if prompt != "paper":
            assert "expected of normal muscle" not in row["prompt"]
        elif points := KNOWN.get(row["subtask"]):
            assert points in row["prompt"]
            assert row["request_key"] != ours["request_key"]
            assert row["prompt"].splitlines()[-1] == ours["prompt"].splitlines()[-1]
        else:
            assert (row["request_key"], row["prompt"]) == (ours["request_key"], ours["prompt"])
