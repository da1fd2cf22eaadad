"""Submissions of runs on withheld answers: scored as by a sweep with the answers, read as a stranger's."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from page_run import write_record
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.release.withheld_answers import (
    MOST_TEXT,
    Score,
    Submit,
    read_answers,
    read_submission,
    score_submission,
    scores_of,
    submit,
    verdicts_of,
    without_answers,
    write_answers,
)
from cardiolens.inference.engine.ask import Ask, Pictures, Reply
from cardiolens.inference.engine.readers import Reader
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.questions import given_questions, write_questions
from cardiolens.score.run_results.scoring import RunResults
from cardiolens.storage.places import Run

CATALOGUE = load_catalogue("openprotocol-1")
SOME = ("C02", "C10", "D01", "R-CINE")
CANARY = "cardiolens canary 1"
FIRST = "PH-0004"  # of the patients whose answers are withheld
ONE = {"name": "standard", "style": "standard", "max_tokens": 64, "asks_back": False}
PROMPTS = [ONE, ONE | {"name": "three", "samples": 3}]
FORMS = (
    "ANSWER: A",
    "ANSWER: B",
    "I would say B.",
    "ANSWER: A, C",
    '{"answer": "C"}',
    "hm",
    "",
    "ANSWER: none",
)


class Varied(Reader):
    """An engine whose replies differ in form: legal, prose, empty, cut, refused by its host."""

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        draw = random.Random(f"{ask.request_key}{ask.seed}")
        text = (
            draw.choice(FORMS)
            if ask.option_keys
            else json.dumps({"findings": "No oedema.", "impression": "."})
        )
        ending = draw.choice(["stop", "stop", "length"])
        return Reply(text=text, finish_reason=ending, refused=draw.random() < 0.1)


def spec_of(root: Path, questions: str) -> SweepSpec:
    """Two readers under two prompts and two orders of options, with the statistics of a sweep by default."""
    dataset = {"name": "small", "studies": root, "questions": root / questions}
    arms = {"prompt": PROMPTS, "control": ["none", "shuffled_options"], "statistics": {}}
    return sweep_spec(root, reader("uniform"), reader("constant", answer="B"), dataset=dataset, **arms)


def write_release(root: Path) -> None:
    """A folder with the questions of some subtasks as a release has them, its index, and the owner's file."""
    rows = [
        row for row in given_questions(root / "questions.jsonl", CATALOGUE) if row.question.subtask in SOME
    ]
    kept = {row.question.study_id for row in rows if row.question.patient_id >= FIRST}
    withheld = [row for row in rows if row.question.study_id in kept]
    write_questions(root / "alone.jsonl", [row.record for row in withheld])
    out = root / "release"
    out.mkdir()
    write_questions(out / "questions.jsonl", [row.record for row in without_answers(rows, kept)])
    facts = {"schema": "release-1", "name": "small", "canary": CANARY}
    (out / "release.json").write_text(json.dumps(facts))
    write_answers(root / "answers.jsonl", (dict(row.record) | {"canary": CANARY} for row in withheld))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run, RunResults]:
    """The release, a run on it, and what a sweep says of the same replies where it has the answers."""
    root = make_cohort(tmp_path_factory.mktemp("submission"), 9)
    write_release(root)
    _, alone = swept(spec_of(root, "alone.jsonl"), Varied())  # first: a store has the questions of one file
    planned, judged = swept(spec_of(root, "release/questions.jsonl"), Varied())
    write_record(planned, judged)
    submit(Submit(submit=planned.run.root, out=root / "submission.jsonl"))
    return root, planned.run, alone


def read(path: Path, answers: Path) -> Any:
    known = read_answers(answers, "openprotocol-1")
    return verdicts_of(read_submission(path, known), known), known


def test_the_scores_differ_by_nothing_from_those_of_a_sweep_with_the_answers(
    made: tuple[Path, Run, RunResults],
) -> None:
    root, _, alone = made
    verdicts, known = read(root / "submission.jsonl", root / "answers.jsonl")
    scored = scores_of(verdicts, known.catalogue).to_pylist()
    expected = {(row["metric"], row["scope"], row["arm_id"]): row for row in alone.scores.to_pylist()}
    assert len(scored) > 100
    assert {row["scope"] for row in scored} >= {"tier:1", "tier:2", "tier:3", "subtask:C02", "sequence:cine"}
    for row in scored:
        assert repr(row) == repr(expected[row["metric"], row["scope"], row["arm_id"]])


def test_what_is_printed_says_what_had_no_reply(
    made: tuple[Path, Run, RunResults], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, _, _ = made
    lines = (root / "submission.jsonl").read_text().splitlines(keepends=True)
    arm = json.loads(lines[0])["arms"][0]
    dropped = [
        line
        for line in lines[1:]
        if json.loads(line)["arm_id"] == arm and json.loads(line)["qa_id"].endswith("C10")
    ]
    path = tmp_path / "part.jsonl"
    path.write_text("".join(line for line in lines if line not in dropped))
    capsys.readouterr()
    assert score_submission(Score(score=path, answers=root / "answers.jsonl")) == 0
    said = capsys.readouterr().out
    n_replies = (len(lines) - 1) // 8 - len(dropped)
    assert f"{arm}: {n_replies} replies; {len(dropped)} questions without one count as wrong" in said
    assert len(dropped) == 6
    cells = [line.split("\t") for line in said.splitlines()]
    (primary,) = (row for row in cells if row[:3] == [arm, "subtask:C10", "primary"])
    assert primary[3:] == ["0.0", *primary[4:6], "6", "6"]
    verdicts, _ = read(path, root / "answers.jsonl")
    ended = verdicts.filter(pc.and_(pc.equal(verdicts["arm_id"], arm), pc.equal(verdicts["subtask"], "C10")))
    assert set(ended["parse_status"].to_pylist()) == {"refusal"}
    assert set(ended["correct"].to_pylist()) == {False}


Lines = list[dict[str, Any]]


def _repeat(lines: Lines) -> None:
    lines.append(dict(lines[1]))


HOSTILE: list[tuple[Callable[[Lines], object], str]] = [
    (lambda lines: lines.clear(), "is no line of submission-1"),
    (lambda lines: lines[0].update(arms=lines[0]["arms"] * 2), "an arm stands twice"),
    (lambda lines: lines[0].update(canary="another"), "has another, and the answers have cardiolens canary"),
    (lambda lines: lines[0].update(catalogue_sha256="0" * 64), "another version of the protocol"),
    (lambda lines: lines[1].update(qa_id="PH-0001:C02"), "is no question with a withheld answer"),
    (lambda lines: lines[1].update(arm_id="other"), "arm other is not in the first line"),
    (lambda lines: lines[1].update(option_keys=["A", "A"]), "options that it does not have"),
    (lambda lines: lines[1].update(status="judged"), "status"),
    (lambda lines: lines[1].update(text="\ud800"), "text"),
    (lambda lines: lines[1].update(text="A" * (MOST_TEXT + 1)), "at most 131072 characters"),
    (_repeat, "has a second reply"),
]


@pytest.mark.parametrize(("change", "said"), HOSTILE, ids=[said for _, said in HOSTILE])
def test_a_hostile_submission_gets_a_sentence(
    made: tuple[Path, Run, RunResults], tmp_path: Path, change: Callable[[Lines], object], said: str
) -> None:
    lines = [json.loads(line) for line in (made[0] / "submission.jsonl").read_text().splitlines()]
    change(lines)
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError, match=said) as refusal:
        score_submission(Score(score=path, answers=made[0] / "answers.jsonl"))
    assert len(str(refusal.value)) < 1000


def test_a_run_without_its_release_gives_no_submission(
    made: tuple[Path, Run, RunResults], tmp_path: Path
) -> None:
    root, run, _ = made
    index = root / "release" / "release.json"
    words = Submit(submit=run.root, out=tmp_path / "s.jsonl")
    before = index.read_bytes()
    try:
        index.unlink()
        with pytest.raises(InputError, match="holds no release"):
            submit(words)
    finally:
        index.write_bytes(before)
    assert not words.out.exists()
    assert submit(words) == 0
    assert words.out.read_bytes() == (root / "submission.jsonl").read_bytes()
