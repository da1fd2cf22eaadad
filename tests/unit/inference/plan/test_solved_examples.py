"""Solved examples of other patients before a question: whose, which, keyed, loaded, refused."""

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from page_run import write_record
from small_cohort import frame_rows, make_cohort, reader, requests_of, sweep_spec, swept, values, volume_row

from cardiolens.base.errors import InputError
from cardiolens.config.sweep_factors import arms
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.plan.request import ShownExample
from cardiolens.protocol.dialogue.chain import FrameRef
from cardiolens.score.statistics.factors import arm_factors
from cardiolens.show.export.dataset_export import write_dataset
from cardiolens.show.page.columns import prompt_words
from cardiolens.show.page.write import write_page
from cardiolens.storage import documents, schemas, tables
from cardiolens.study.anatomy import DATA, HEART
from cardiolens.study.cohort import Cohort, StudyRecord, write_cohort
from cardiolens.study.shards import part_writer
from tests.unit.asked import served

SUBTASKS = ["C02", "C10", "P01", "R-T2"]
STANDARD = {"name": "standard", "style": "standard", "max_tokens": 64}
TWO = STANDARD | {"name": "two", "shots": 2}
PATIENTS = 8


def planned_with(root: Path, *prompts: dict[str, Any], **changes: Any) -> Plan:
    return plan(
        sweep_spec(root, reader("constant", answer="A"), subtask=SUBTASKS, prompt=list(prompts), **changes)
    )


def examples_of(planned: Plan) -> dict[str, Any]:
    (model,) = planned.identities
    shown: dict[str, Any] = {}
    for row in tables.read(planned.run.requests(model) / "examples", schemas.EXAMPLES).to_pylist():
        frames = [FrameRef(**frame) for frame in row["frames"]]
        shown.setdefault(row["request_key"], []).append(ShownExample(row["qa_id"], row["study_id"], frames))
    return shown


def questions_of(root: Path) -> dict[str, dict[str, Any]]:
    rows = tables.read(root / "store" / "questions", schemas.QUESTIONS).to_pylist()
    return {row["qa_id"]: row for row in rows}


def test_examples_are_solved_questions_of_other_patients_alone(root: Path) -> None:
    planned = planned_with(root, STANDARD, TWO)
    shown = examples_of(planned)
    questions = questions_of(root)
    asked = [row for row in requests_of(planned, prompt="two") if row["answer_type"] != "report"]
    assert len(asked) == PATIENTS * 3
    for row in asked:
        assert row["status"] == "planned"
        assert "shots:2" in row["flags"]
        own, examples = questions[row["qa_id"]], shown[row["request_key"]]
        lenders = [questions[example.qa_id] for example in examples]
        assert {lender["subtask"] for lender in lenders} == {row["subtask"]}
        assert len({own["patient_id"], *(lender["patient_id"] for lender in lenders)}) == 3
        letters = re.findall(r"^ANSWER: ([A-Z, ]+)$", row["prompt"], re.M)
        assert letters == [", ".join(lender["answer"]) for lender in lenders]
        assert row["prompt"].count("\ufffc") == len(row["frames"]) + sum(len(one.frames) for one in examples)
        assert row["prompt"].index("Now the question") > row["prompt"].rindex(letters[-1] + "\n\n")


def test_the_order_is_fixed_and_answers_take_turns(root: Path) -> None:
    first, again = (examples_of(planned_with(root, TWO)) for _ in range(2))
    assert first == again
    questions = questions_of(root)
    answers = Counter(tuple(row["answer"] or ()) for row in questions.values() if row["subtask"] == "C10")
    assert len(answers) > 1
    for examples in first.values():
        lenders = [questions[example.qa_id] for example in examples]
        if lenders[0]["subtask"] == "C10":
            assert lenders[0]["answer"] != lenders[1]["answer"]


def test_controls_change_examples_as_they_change_the_question(root: Path) -> None:
    controls = ["blind", "captions", "blank", "shuffled_options", "other_patient"]
    planned = planned_with(root, TWO, control=["none", *controls])
    by_control = {
        name: [row for row in requests_of(planned, control=name) if row["answer_type"] != "report"]
        for name in ("none", *controls)
    }
    assert not any("\ufffc" in row["prompt"] for name in ("blind", "captions") for row in by_control[name])
    assert all("Frame 1:" in row["prompt"].split("ANSWER: ")[0] for row in by_control["captions"])
    for own, black in zip(by_control["none"], by_control["blank"], strict=True):
        assert (own["prompt"], own["request_key"] == black["request_key"]) == (black["prompt"], False)
    shown, met = examples_of(planned), 0
    for own, other in zip(by_control["none"], by_control["other_patient"], strict=True):
        met += other["frames_study_id"] in {one.study_id for one in shown[own["request_key"]]}
        assert other["frames_study_id"] not in {one.study_id for one in shown[other["request_key"]]}
        assert [one.frames for one in shown[own["request_key"]]] == [
            one.frames for one in shown[other["request_key"]]
        ]
    assert met, "no donor of frames had to be left out"


def test_an_arm_with_examples_is_judged_and_says_how_many(root: Path) -> None:
    planned, judged = swept(sweep_spec(root, reader("oracle"), subtask=SUBTASKS, prompt=[STANDARD, TWO]))
    by_name = {arm.prompt.name: arm.arm_id for arm in planned.arms}
    assert values(judged, by_name["two"], ["primary"])["primary", "tier:1"] == pytest.approx(100)
    assert [prompt_words(arm) for arm in arm_factors(arms(planned.spec))] == ["standard", "two, 2 shots"]
    write_record(planned, judged)
    assert [arm.get("shots") for arm in documents.read_manifest(planned.run)["arms"]] == [None, 2]
    page = write_page(planned.run, [planned.run]).read_text()
    assert "two, 2 shots" in page
    assert "Prompt two shows 2 shots before each question" in page
    export = write_dataset(planned.run, patient_ids=False)
    parts = [pq.read_table(path) for path in sorted(export.rglob("answers/**/*.parquet"))]
    rows = [row for part in parts for row in part.select(["prompt", "subtask", "flags"]).to_pylist()]
    assert {row["prompt"] for row in rows if "shots:2" in row["flags"]} == {"two"}
    assert all(
        "shots:2" in row["flags"] for row in rows if row["prompt"] == "two" and row["subtask"] != "R-T2"
    )


def with_training(root: Path, training: int) -> Path:
    """A cohort whose first patients are of the cohort train; every patient has two slices of one view."""
    make_cohort(root, PATIENTS)
    names = [f"PH-{number:04d}" for number in range(1, PATIENTS + 1)]
    for folder in ("frames", "volumes"):
        for part in (root / "store" / folder).iterdir():
            part.unlink()
    with part_writer(root / "store", "part-1.parquet") as writer:
        for number, name in enumerate(names):
            cohorts = ["full", "train"] if number < training else ["full"]
            row = volume_row(name, "cine_sax", 3, 6) | {"cohort": cohorts}
            writer.rows.append(writer.write(row, frame_rows(name, "cine_sax", 3, 6)))
    record = StudyRecord(part="part-1.parquet", state="")
    write_cohort(root / "store", Cohort(window_pct=(1, 99), studies=dict.fromkeys(names, record), failed={}))
    return root


def test_where_patients_are_kept_for_training_they_alone_lend_and_are_not_asked(tmp_path: Path) -> None:
    root = with_training(tmp_path, 3)
    spec = sweep_spec(root, reader("constant", answer="A"), subtask=["C10"], prompt=[STANDARD, TWO])
    planned = plan(spec)
    kept = {f"PH-{number:04d}" for number in (1, 2, 3)}
    assert kept.isdisjoint({row["study_id"] for row in requests_of(planned)})
    assert {example.study_id for examples in examples_of(planned).values() for example in examples} <= kept
    assert planned.examples_kept == 3
    without = plan(sweep_spec(root, reader("constant", answer="A"), subtask=["C10"]))
    assert kept < {row["study_id"] for row in requests_of(without, prompt="standard")}


def test_too_few_examples_are_refused_or_skipped_with_the_reason(tmp_path: Path, root: Path) -> None:
    with pytest.raises(InputError, match=r"shows 9 solved examples, and no subtask has more than 7 "):
        planned_with(root, TWO | {"shots": 9})
    with pytest.raises(InputError, match=r"no subtask has more than 1 answered questions"):
        plan(sweep_spec(with_training(tmp_path, 1), reader("uniform"), subtask=["C10"], prompt=[TWO]))
    planned = planned_with(root, TWO | {"shots": 7})
    assert {row["status"] for row in requests_of(planned, prompt="two")} == {"planned"}


def test_examples_take_the_templates_of_their_own_protocol(root: Path, tmp_path: Path) -> None:
    protocol, questions = tmp_path / "mine-1", tmp_path / "questions.jsonl"
    shutil.copytree(DATA / HEART, protocol)
    (protocol / "templates").mkdir(exist_ok=True)
    for source, copy in ((protocol / "protocol.yaml",) * 2, (root / "questions.jsonl", questions)):
        copy.write_text(source.read_text().replace(HEART, "mine-1"))
    own = "Words of this protocol: {{ question }} {% for option in options %}{{ option.letter }} {% endfor %}"
    (protocol / "templates" / "question_standard.jinja").write_text(own)
    dataset = {"name": "small", "studies": root, "questions": questions, "protocol": f"{protocol}"}
    spec = sweep_spec(root, reader("uniform"), dataset=dataset, prompt=[TWO], subtask=["C10"])
    rows = requests_of(plan(spec))
    assert rows
    for row in rows:
        _, *parts = re.split("Solved example|Now the question", row["prompt"])
        assert [part.count("Words of this protocol: ") for part in parts] == [1, 1, 1]
        assert "frames above are shown in this order" not in row["prompt"], "of the packaged template"


def test_tokens_and_frames_of_examples_are_counted_and_what_does_not_fit_is_marked(root: Path) -> None:
    entry = served().model_dump() | {"name": "served", "image_tokens": 100}
    wide, narrow = entry | {"max_model_len": 32768}, entry | {"name": "narrow", "max_model_len": 1500}
    none = narrow | {"name": "none", "max_model_len": 100}
    planned = plan(sweep_spec(root, wide, narrow, none, subtask=["C10"], prompt=[STANDARD, TWO]))
    rows = [requests_of(planned, "served", prompt=name) for name in ("standard", "two")]
    for one, two in zip(*rows, strict=True):
        assert len(one["frames"]) == len(two["frames"]) == 8
        assert two["predicted_tokens"] - one["predicted_tokens"] > 2 * 8 * 100
    for name, status in (("standard", "planned"), ("two", "overflow")):
        assert {row["status"] for row in requests_of(planned, "narrow", prompt=name)} == {status}
    assert planned.most_frames == {"served": 3 * 8, "narrow": 8, "none": 0}, "an engine reserves no more"


@pytest.mark.parametrize(
    ("answer_format", "style", "solved"),
    [
        ("letters", "standard", r"^ANSWER: [A-Z]$"),
        ("choice", "standard", r"^[A-Z]$"),
        ("choice", "reasoning", r"^ANSWER: [A-Z]$"),
    ],
)
def test_an_example_ends_as_a_reply_should(root: Path, answer_format: str, style: str, solved: str) -> None:
    prompt = TWO | {"style": style}
    spec = sweep_spec(root, reader("uniform"), subtask=["C10"], prompt=[prompt], answer_format=answer_format)
    (row, *_) = requests_of(plan(spec))
    *examples, asked = row["prompt"].split("\n\n")
    assert [bool(re.search(solved, example, re.M)) for example in examples] == [True, True]
    assert not re.search(solved, asked, re.M)
    assert ("1. " in asked, any("1. " in example for example in examples)) == (style == "reasoning", False)
