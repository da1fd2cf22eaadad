"""Blind probes: planted give-aways are found, and none where there are none."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.command_words import read_words
from cardiolens.config.curation_specs import QuestionsSpec
from cardiolens.curation.probes.blind_probes import (
    OPTIONS_ALONE,
    QUESTION_ALONE,
    SETTINGS,
    Probe,
    probe,
    probe_drafts,
)
from cardiolens.phantom.roster import catalogue
from cardiolens.protocol.prompts.question import TextRequest
from cardiolens.protocol.tasks.questions import given_questions
from tests.unit.curation.questions.report_folders import lines

CATALOGUE = catalogue()
N = 20


def write_drafts(folder: Path, *, planted: bool) -> Path:
    """Drafts of two subtasks; in those of L01, if planted, the right option says more than the other."""
    folder.mkdir(parents=True, exist_ok=True)
    subtask = CATALOGUE["L01"]
    common = {"tier": subtask.tier, "sequence": subtask.sequence, "question": subtask.question}
    common |= {"schema": "qa-1", "answer_type": subtask.answer_type, "protocol": CATALOGUE.protocol}
    common |= {"subtask": "L01", "origin": "report", "verification": {"status": "draft", "queue": "sampling"}}
    state = {"backcheck": True, "legal": True, "leakage": False, "probe": None, "verdict": "pass"}
    records: list[dict[str, Any]] = []
    checked: list[dict[str, Any]] = []
    for number in range(N):
        name, answer, texts = f"S{number:02d}", "AB"[number % 2], {"A": "Absent", "B": "Present"}
        if planted:
            texts[answer] += " on the images that are shown here"
        own = {"qa_id": f"{name}:L01", "study_id": name, "patient_id": name, "answer": [answer]}
        options = [{"key": key, "text": text} for key, text in texts.items()]
        records.append(common | own | {"options": options})
        records.append({"study": name, "subtask": "C10", "answer": ["ABCD"[number % 4]], "origin": "report"})
        checked.append({"study_id": name, "checked": {"L01": dict(state), "C10": dict(state)}})
    for name, rows in (("questions", records), ("6-automatic", checked), ("rejects", [])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def choose(request: TextRequest, pick: Any) -> str:
    options = re.findall(r"^([A-Z])\. (.*)$", request.prompt, re.MULTILINE)
    letter = pick(options)[0] if options else "I do not know"
    is_list = '["<letter>"' in request.prompt
    return json.dumps({"answer": [letter] if is_list else letter})


def longest(requests: Sequence[TextRequest]) -> list[str | None]:
    return [
        choose(request, lambda options: max(options, key=lambda one: len(one[1]))) for request in requests
    ]


def first(requests: Sequence[TextRequest]) -> list[str | None]:
    return [choose(request, lambda options: options[0]) for request in requests]


def silent(requests: Sequence[TextRequest]) -> list[str | None]:
    return [None for _ in requests]


def test_a_planted_give_away_is_found_and_its_questions_are_out(tmp_path: Path) -> None:
    folder = write_drafts(tmp_path, planted=True)
    assert probe_drafts(folder, CATALOGUE, {"one": longest, "two": longest}) == 0
    probes = json.loads((folder / "probes.json").read_text())
    assert probes["subtasks"]["L01"]["leaks"]
    assert probes["subtasks"]["L01"]["excess"] == pytest.approx(0.5)
    assert not probes["subtasks"]["C10"]["leaks"]
    assert {line["subtask"] for line in lines(folder / "questions.jsonl")} == {"C10"}
    assert {(line["reason"], line["subtask"]) for line in lines(folder / "rejects.jsonl")} == {
        ("answered_blind", "L01")
    }
    automatic = lines(folder / "6-automatic.jsonl")
    assert {one["checked"]["L01"]["verdict"] for one in automatic} == {"fail"}
    before = {path.name: path.read_text() for path in folder.glob("*.jsonl")}
    probe_drafts(folder, CATALOGUE, {"one": longest, "two": longest})
    assert {path.name: path.read_text() for path in folder.glob("*.jsonl")} == before, "a second time"


def test_where_nothing_is_planted_nothing_is_found(tmp_path: Path) -> None:
    folder = write_drafts(tmp_path, planted=False)
    probe_drafts(folder, CATALOGUE, {"one": longest, "two": first, "three": silent})
    probes = json.loads((folder / "probes.json").read_text())
    assert not any(score["leaks"] for score in probes["subtasks"].values())
    assert probes["out"] == 0
    made = lines(folder / "questions.jsonl")
    assert len(made) == 2 * N
    assert {line["verification"]["probes"] for line in made} == {3}
    assert all(line["verification"].get("queue") != "full" for line in made)


def test_a_leak_that_one_model_alone_sees_goes_to_review_and_stays(tmp_path: Path) -> None:
    folder = write_drafts(tmp_path, planted=True)
    probe_drafts(folder, CATALOGUE, {"one": longest, "two": first})
    made = [line for line in lines(folder / "questions.jsonl") if line["subtask"] == "L01"]
    assert len(made) == N
    assert {line["verification"]["queue"] for line in made} == {"full"}


def test_models_that_do_not_answer_find_no_leak_and_are_no_probe(tmp_path: Path) -> None:
    folder = write_drafts(tmp_path, planted=True)
    before = {path.name: path.read_text() for path in folder.iterdir()}
    with pytest.raises(InputError, match="no reply of two holds an answer"):
        probe_drafts(folder, CATALOGUE, {"one": longest, "two": silent})
    assert {path.name: path.read_text() for path in folder.iterdir()} == before


def test_options_stand_in_three_orders_and_letters_lead_back_to_them(tmp_path: Path) -> None:
    row = next(given_questions(write_drafts(tmp_path, planted=False) / "questions.jsonl", CATALOGUE))
    probes = {setting: Probe(setting, row.question) for setting in SETTINGS}
    assert probes["order 1"].answer('{"answer": "A"}') == {"A"}
    assert probes["order 2"].answer('{"answer": "A"}') == {"B"}
    assert probes["order 1"].answer('{"answer": "Z"}') is None
    assert probes["order 1"].answer("no JSON") is None
    assert row.question.question not in probes[OPTIONS_ALONE].request().prompt
    assert "A. " not in probes[QUESTION_ALONE].request().prompt
    assert probes[QUESTION_ALONE].answer('{"answer": "It is present."}') == {"B"}


def test_fewer_than_two_models_and_a_folder_without_drafts_are_refused(tmp_path: Path) -> None:
    spec = read_words(QuestionsSpec, [f"draft={write_drafts(tmp_path, planted=False)}"])
    with pytest.raises(InputError, match="two or more models"):
        probe(spec, ["model=uniform"])
    for words in ([], ["draft=x", "out=y", "masks=z", "labels=acdc"]):
        with pytest.raises(InputError, match=r"out= is not given|give one of them"):
            read_words(QuestionsSpec, words)
