"""Controls and wordings: what they change of a request, and how they show known faults of readers (8.6)."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cohort import make_cohort, reader, requests_of, sweep_spec, swept

from cardiolens.base.errors import InputError
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.frame_views import donors
from cardiolens.inference.plan.missing import missing
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.stream.loader import StudyLoader
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.score.run_results.scoring import RunResults
from cardiolens.study.structure import StudyStructure, VolumeStructure

PATIENTS = 24

ALL = [
    *("none", "blind", "captions", "blank", "other_patient"),
    *("shuffled_options", "reversed_options", "repeat"),
]
SUBTASKS = ["C02", "C10", "L01", "P01", "C16"]  # C10 is ordinal


@pytest.fixture(scope="module")
def done(root: Path) -> tuple[Plan, RunResults]:
    """Every control with a reader of the text and one that needs images."""
    readers = (
        reader("constant", answer="A"),
        reader("oracle"),
        reader("noisy", error=0.3),
        reader("budget_effect", base=0.9, blind=0.3),
    )
    return swept(sweep_spec(root, *readers, control=ALL, subtask=SUBTASKS))


def by_control(done: tuple[Plan, RunResults]) -> dict[str, list[dict[str, Any]]]:
    """Requests of the constant reader by control, in order of qa_id."""
    return {name: requests_of(done[0], "constant", control=name) for name in ALL}


def row_of(done: tuple[Plan, RunResults], model: str, control: str, metric: str) -> dict[str, Any]:
    planned, judged = done
    (arm,) = [a.arm_id for a in planned.arms if (a.model.name, a.control) == (model, control)]
    wanted = (arm, metric, "tier:1")
    rows = judged.scores.to_pylist()
    (row,) = [row for row in rows if (row["arm_id"], row["metric"], row["scope"]) == wanted]
    return row  # type: ignore[no-any-return]


def test_another_patients_frames_stand_at_the_same_places(done: tuple[Plan, RunResults]) -> None:
    found = by_control(done)
    for own, other in zip(found["none"], found["other_patient"], strict=True):
        assert own["frames"] == other["frames"]
        assert other["frames_study_id"] not in (None, own["study_id"])
        assert own["prompt"] == other["prompt"]
    donated = [row["frames_study_id"] for row in found["other_patient"] if row["subtask"] == "C10"]
    assert len(set(donated)) == len(donated) == 24


def test_options_move_unless_they_are_ordered_and_verdicts_keep_their_keys(
    done: tuple[Plan, RunResults],
) -> None:
    found = by_control(done)
    for own, moved in zip(found["none"], found["shuffled_options"], strict=True):
        assert sorted(moved["option_keys"]) == own["option_keys"]
        if own["subtask"] == "C10":
            assert moved["request_key"] == own["request_key"]
    orders = [[row["option_keys"] for row in found[name]] for name in ("none", "shuffled_options")]
    assert orders[0] != orders[1]
    assert row_of(done, "oracle", "shuffled_options", "primary")["value"] == pytest.approx(100)


def test_captions_are_told_without_their_frames(done: tuple[Plan, RunResults]) -> None:
    found = by_control(done)
    for own, told in zip(found["none"], found["captions"], strict=True):
        lines = [line for line in own["prompt"].splitlines() if line.startswith("Frame ")]
        assert lines
        assert told["prompt"].splitlines()[: len(lines)] == lines
        assert "\ufffc" not in told["prompt"]
        assert "frames above" not in told["prompt"]
        assert told["frames"] == []
        assert told["frames_study_id"] is None
        assert told["template"].startswith("captions_")
    # studies of one shape have the same captions, and are asked once
    assert len({row["request_key"] for row in found["captions"]}) == len(SUBTASKS)
    looks = row_of(done, "budget_effect", "captions", "primary")
    assert looks["value"] < row_of(done, "budget_effect", "none", "primary")["value"] - 20


def test_ordinal_options_are_reversed_and_verdicts_keep_their_keys(done: tuple[Plan, RunResults]) -> None:
    found = by_control(done)
    for own, turned in zip(found["none"], found["reversed_options"], strict=True):
        if own["subtask"] == "C10":
            assert turned["option_keys"] == own["option_keys"][::-1] == ["D", "C", "B", "A"]
            assert "A. Severely reduced" in turned["prompt"]
            assert "from most to least severe" in turned["prompt"]
            assert "from least to most severe" not in turned["prompt"]
        else:
            assert turned["request_key"] == own["request_key"]
    assert row_of(done, "oracle", "reversed_options", "primary")["value"] == pytest.approx(100)
    said = {(row["arm_id"], row["qa_id"]): row for row in done[1].replies.verdicts.to_pylist()}
    for row in found["reversed_options"]:
        if row["subtask"] == "C10":  # the constant reader says A, which stands for the most severe option
            assert said[row["arm_id"], row["qa_id"]]["parsed"] == ["D"]


def test_reversed_options_tell_a_preference_for_places_from_conservatism(root: Path) -> None:
    readers = (reader("constant", answer="A"), reader("collapse", share=0.9), reader("oracle"))
    control, wanted = ["none", "reversed_options"], ["C10", "C06", "C01"]
    done = swept(sweep_spec(root, *readers, control=control, subtask=wanted, name="turned"))
    first, conservative, right = (
        row_of(done, model, "reversed_options", "order_bias") for model in ("constant", "collapse", "oracle")
    )
    assert first["value"] == 100
    assert right["value"] == pytest.approx(0, abs=1e-9)
    for row in (first, right):  # no resample differs from another, so there is no interval
        assert math.isnan(row["low"])
        assert math.isnan(row["high"])
    assert abs(conservative["value"]) < 10
    assert row_of(done, "collapse", "none", "primary")["value"] < 80


def test_a_repeat_asks_the_same_under_another_key(done: tuple[Plan, RunResults]) -> None:
    found = by_control(done)
    for own, again in zip(found["none"], found["repeat"], strict=True):
        assert (own["prompt"], own["frames"]) == (again["prompt"], again["frames"])
        assert (own["replicate"], again["replicate"]) == (0, 1)
        assert own["request_key"] != again["request_key"]


def test_blank_frames_are_black_and_have_keys_of_their_own(root: Path) -> None:
    constant = reader("constant", answer="A")
    planned = plan(sweep_spec(root, constant, control=["blank", "none"], subtask=["L01"], name="b"))
    work = missing(planned.run.requests("constant"), root / "nothing", 1).work
    reading = StudyLoader(planned.store.root, planned.volumes, Rendering(8))
    [[study]] = [table.to_pylist() for table in reading(work.slice(0, 1))]
    shown = {picture["key"]: np.frombuffer(picture["pixels"], np.uint8) for picture in study["pictures"]}
    blank, plain = ([shown[key] for key in ask["frame_keys"]] for ask in study["asks"])
    if any(pixels.any() for pixels in blank):
        blank, plain = plain, blank
    assert not any(pixels.any() for pixels in blank)
    assert all(pixels.any() for pixels in plain)
    assert len(blank) == len(plain)


def test_a_planted_preference_for_the_first_place_is_found_by_shuffling(
    done: tuple[Plan, RunResults],
) -> None:
    assert row_of(done, "constant", "shuffled_options", "position_bias.1")["low"] > 20
    unbiased = row_of(done, "noisy", "shuffled_options", "position_bias.1")
    assert unbiased["low"] < 0 < unbiased["high"]


def structure(study_id: str, n_slices: int) -> StudyStructure:
    return StudyStructure(study_id, {"lge_sax": VolumeStructure("lge_sax", "lge", "sax", n_slices, 1)})


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("AB"), st.sampled_from([8, 9])), max_size=20))
def test_donors_are_other_patients_of_the_same_shape(drawn: list[tuple[int, str, int]]) -> None:
    questions = [
        {
            "qa_id": f"q{at}",
            "subtask": "C02",
            "study_id": f"s{at}",
            "patient_id": f"p{patient}",
            "answer": [key],
        }
        for at, (patient, key, _) in enumerate(drawn)
    ]
    shapes = {f"s{at}": structure(f"s{at}", slices) for at, (_, _, slices) in enumerate(drawn)}
    found = donors(questions, shapes)
    assert found == donors(questions[::-1], shapes)
    assert len(set(found.values())) == len(found)
    by_study = {row["study_id"]: row for row in questions}
    for row in questions:
        if donor := found.get(row["qa_id"]):
            assert by_study[donor]["patient_id"] != row["patient_id"]
            assert shapes[donor].volumes == shapes[row["study_id"]].volumes


WORDED = ["C02", "C10", "D01", "R-T2"]
CATALOGUE = load_catalogue("openprotocol-1")


@pytest.fixture(scope="module")
def worded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("wordings"), 6)


def test_a_wording_changes_the_text_and_nothing_else(worded: Path) -> None:
    planned = plan(sweep_spec(worded, reader("oracle"), subtask=WORDED, wording=[0, 1, 2]))
    for number in (1, 2):
        rows = (requests_of(planned, wording=wording) for wording in (0, number))
        for own, other in zip(*rows, strict=True):
            subtask = CATALOGUE[own["subtask"]]
            said = own["prompt"].replace(subtask.question, subtask.wordings[number - 1])
            assert other["prompt"] == said != own["prompt"]
            assert other["request_key"] != own["request_key"]
            assert (other["frames"], other["option_keys"]) == (own["frames"], own["option_keys"])


def test_wordings_are_judged_and_compared_as_a_factor(worded: Path) -> None:
    planned, judged = swept(sweep_spec(worded, reader("oracle"), subtask=WORDED, wording=[0, 2]))
    own, other = (arm.arm_id for arm in planned.arms)
    scores = [row for row in judged.scores.to_pylist() if row["metric"] == "primary"]
    assert {row["arm_id"] for row in scores} >= {own, other}
    assert all(row["value"] == 100 for row in scores)
    (compared,) = {(row["arm_id"], row["versus_arm_id"]) for row in judged.comparisons.to_pylist()}
    assert compared == (other, own)


@pytest.mark.parametrize(
    ("wording", "said"),
    [
        ([3], "wording 3: subtask C02 has 2 wordings besides its own"),
        ([1, 1], "names an entry twice"),
    ],
)
def test_a_wording_that_is_none_is_refused(worded: Path, wording: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        plan(sweep_spec(worded, reader("oracle"), subtask=WORDED, wording=wording))


SHOT = {"name": "one", "style": "standard", "max_tokens": 64, "shots": 1}


@pytest.mark.parametrize("further", [{}, {"limit": 1, "prompt": [SHOT]}], ids=["asked", "shown as solved"])
def test_a_question_in_words_of_its_own_has_no_other_wording(
    worded: Path, tmp_path: Path, further: dict[str, Any]
) -> None:
    changed = tmp_path / "questions.jsonl"
    lines = (worded / "questions.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if further and '"study_id": "PH-0001"' in line]  # of the first study
    own = [line.replace(CATALOGUE["C10"].question, "How well does it pump?") for line in lines[len(kept) :]]
    changed.write_text("".join(kept + own))
    dataset = {"name": "small", "studies": worded, "questions": changed}
    plan(sweep_spec(worded, reader("oracle"), subtask=WORDED, dataset=dataset, name="own", **further))
    with pytest.raises(InputError, match="asks in words of its own"):
        plan(sweep_spec(worded, reader("oracle"), subtask=WORDED, dataset=dataset, wording=[0, 1], **further))
