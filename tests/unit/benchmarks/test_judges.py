"""A model as judge of steps: what a file may hold, what it is shown, what is believed."""

import asyncio
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.judges import (
    ERRORS,
    Reasoning,
    StepVerdict,
    judged_line,
    read_reasoning,
    read_verdicts,
    requests,
)
from cardiolens.benchmarks.medthinkvqa import records, source_of
from cardiolens.curation.asking.ask_texts import asking_spec, plan_texts, replies_of
from cardiolens.inference.engine.ask import Ask, Engine, Pictures, Reply
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.stream.loader import StudyLoader
from cardiolens.inference.stream.replica import Replica
from cardiolens.protocol.tasks.legal import constraint_of
from jobs import medthinkvqa
from jobs.medthinkvqa import agreement
from tests.support.cases.example_cases import make_cases

SEEN = {"is_factual": True, "is_critical": True, "explanation": "Seen.", "error_types": None}
UNSEEN = {
    "is_factual": False,
    "is_critical": False,
    "explanation": "No disc.",
    "error_types": ["Image Understanding Err", "Reasoning Err"],
}
UNNAMED = {**SEEN, "is_factual": False}
MISSING = {**UNNAMED, "explanation": "Missing verdict; treated as unsupported."}
STEPS = ["There is a disc.", "So it is dyslumia.", "Nothing else fits."]
RIGHT, WRONG = StepVerdict(True, True, ()), StepVerdict(False, False, (ERRORS[0], ERRORS[1]))
LINE = {"case": 1, "steps": STEPS[:2], "people": [SEEN, SEEN]}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Three generated cases."""
    folder = tmp_path_factory.mktemp("cases")
    make_cases(folder, 3, 1)
    return source_of(folder)


def judged(source: Source, number: int, **fields: Any) -> dict[str, Any]:
    """The record of a case as the makers' scripts leave it."""
    return dict(records(source))[number] | {"explanation_steps": STEPS} | fields


def lines(folder: Path, *entries: Any) -> Path:
    path = folder / "told.jsonl"
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in entries))
    return path


def whole(folder: Path, content: Any) -> Path:
    path = folder / "judged.json"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("form", ["list", "data", "lines"])
def test_the_makers_files_are_read_in_each_layout(tmp_path: Path, source: Source, form: str) -> None:
    record = judged(source, 1)
    record["title"] = f"  {record['title'].upper()}\n"
    record["clinical_history"] = record.pop("CLINICAL_HISTORY")
    entries = [
        judged(source, 2, explanation_steps_checks=[SEEN, MISSING, UNNAMED]),
        judged(source, 3, explanation_steps=[], explanation_steps_checks=[]),
        record,
    ]
    path = lines(tmp_path, *entries) if form == "lines" else None
    told = read_reasoning(path or whole(tmp_path, {"data": entries} if form == "data" else entries), source)
    given = (RIGHT, None, StepVerdict(False, True, None))
    assert told == [
        Reasoning(1, 2, tuple(STEPS), given, "their judge"),
        Reasoning(3, 1, tuple(STEPS), None, "their judge"),
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"title": "Case 99"}, "title 'Case 99' with its CLINICAL_HISTORY is that of no case of the data"),
        ({"explanation_steps_checks": [SEEN]}, "no list of one verdict for each of the 3 steps"),
        (
            {"explanation_steps_checks": [SEEN, SEEN, UNSEEN | {"error_types": ["Reasoning"]}]},
            "explanation_steps_checks, step 3: error_types.0: Input should be 'Reasoning Err'",
        ),
    ],
)
def test_another_form_is_refused_with_its_value(
    tmp_path: Path, source: Source, fields: Any, said: str
) -> None:
    path = whole(tmp_path, [judged(source, 1), judged(source, 2, **fields)])
    with pytest.raises(InputError, match=re.escape(said)) as raised:
        read_reasoning(path, source)
    assert str(raised.value).startswith(f"{path}, record 2: ")


def test_two_cases_of_one_title_and_history_are_not_told_apart(tmp_path: Path) -> None:
    make_cases(tmp_path, 2, 1)
    path = tmp_path / "test.jsonl"
    (one, two) = map(json.loads, path.read_text().splitlines())
    two |= {name: one[name] for name in ("title", "CLINICAL_HISTORY")}
    path.write_text(f"{json.dumps(one)}\n{json.dumps(two)}\n")
    source = source_of(tmp_path)
    file = whole(tmp_path, [judged(source, 1)])
    with pytest.raises(InputError, match="is that of lines 1, 2 of the data; expected that of one case"):
        read_reasoning(file, source)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"case": 4}, "case is 4; expected the line of a case, 1 to 3"),
        ({"steps": ["x"] * 16}, "steps is no list of 1 to 15 texts"),
        ({"people": [SEEN, SEEN | {"is_factual": 1}]}, "people, step 2: is_factual: Input should be a valid"),
        ({"answer": "A"}, "answer is unknown; legal are case, steps and people"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_with_its_field(
    tmp_path: Path, source: Source, change: Any, said: str
) -> None:
    path = lines(tmp_path, LINE, LINE | change)
    with pytest.raises(InputError, match=re.escape(said)) as raised:
        read_reasoning(path, source)
    assert f"{path}:2: " in str(raised.value)


def test_the_judge_is_shown_case_and_steps_and_never_what_people_said(tmp_path: Path, source: Source) -> None:
    told = read_reasoning(lines(tmp_path, LINE | {"case": 2}), source)
    (asked,) = requests(source, told)
    (without,) = requests(source, [replace(told[0], given=None)])
    assert asked == without
    record = dict(records(source))[2]
    for name in ("discussion", "IMAGING_FINDINGS", "CLINICAL_HISTORY"):
        assert record[name] in asked.prompt
    assert "1. There is a disc.\n2. So it is dyslumia." in asked.prompt
    assert constraint_of("schema", "report", (asked.schema,), ()).schema == asked.schema
    assert json.loads(asked.schema)["properties"]["verdicts"]["minItems"] == 2


@pytest.mark.parametrize(
    "reply",
    [
        None,
        {"verdicts": [SEEN]},
        {"verdicts": [SEEN, {name: SEEN[name] for name in ("is_factual", "is_critical")}]},
        {"verdicts": [SEEN, UNSEEN | {"error_types": ["Reasoning"]}]},
        json.dumps({"verdicts": [SEEN, SEEN]})[:-1],
    ],
)
def test_verdicts_are_believed_whole_or_not_at_all(reply: Any) -> None:
    text = reply if reply is None or isinstance(reply, str) else json.dumps(reply)
    assert read_verdicts(text, 2) is None
    good = [SEEN | {"error_types": ["Reasoning Err"]}, UNSEEN]  # types of a factual step do not count
    assert read_verdicts(json.dumps({"verdicts": good}), 2) == (RIGHT, WRONG)


def test_agreement_is_that_of_the_steps_that_both_judged() -> None:
    wrong = StepVerdict(False, True, (ERRORS[1],))
    people = [[RIGHT, wrong, RIGHT], [wrong], [RIGHT, RIGHT, wrong, wrong], [RIGHT, None]]
    judge = [[RIGHT, RIGHT, RIGHT], [wrong], [wrong, RIGHT, wrong, RIGHT], None]
    told = [Reasoning(at, at, ("x",) * len(said), tuple(said)) for at, said in enumerate(people, start=1)]
    found = {one.label: one for one in agreement(told, [said and tuple(said) for said in judge])}
    factual = found["is_factual"]
    assert (factual.n_steps, factual.n_cases, factual.n_given, factual.n_judge) == (8, 3, 4, 5)
    assert factual.mcc.value == pytest.approx((3 * 2 - 1 * 2) / (4 * 4 * 5 * 3) ** 0.5)
    assert found["is_critical"].kappa.value != found["is_critical"].kappa.value, "undefined without a no"
    unnamed = [Reasoning(1, 1, ("x",), (StepVerdict(False, True, None),))]
    labels = {one.label: one for one in agreement(unnamed, [(wrong,)])}
    assert (labels["is_factual"].n_steps, labels[f"error: {ERRORS[1]}"].n_steps) == (1, 0)


def test_the_command_names_the_judge_and_counts_what_it_left_out(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    about = [f"root={source.root}", f"out={tmp_path / 'out'}", "model=uniform"]
    reply = json.dumps({"verdicts": [SEEN, UNSEEN, UNSEEN]})
    monkeypatch.setattr(medthinkvqa, "ask", lambda sweep, asked: [reply] * len(asked))
    path = whole(tmp_path, [judged(source, 1, explanation_steps_checks=[SEEN, MISSING, UNSEEN])])
    assert medthinkvqa.main(["judge", f"steps={path}", *about]) == 0
    said = capsys.readouterr().out
    assert "no verdict: 1 of 3 steps, which their judge left out" in said
    assert "\tby their judge\tby judge\t" in said


class Judge(Engine):
    """Engine that finds fault with every second step."""

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        assert ask.constraint.schema
        count = json.loads(ask.constraint.schema)["properties"]["verdicts"]["minItems"]
        verdicts = [UNSEEN if place % 2 else SEEN for place in range(count)]
        return Reply(text=json.dumps({"verdicts": verdicts}), finish_reason="stop")


def test_each_line_is_asked_once_through_the_stream(tmp_path: Path, source: Source) -> None:
    told = read_reasoning(lines(tmp_path, LINE, {"case": 2, "steps": STEPS}), source)
    asked = requests(source, told)
    sweep = asking_spec(tmp_path / "store", tmp_path / "judge", "openprotocol-1", ["model=uniform"])
    for expected in (2, 0):
        planned = plan_texts(sweep, asked)
        ((name, identity),) = planned.identities.items()
        left = missing_of(planned, name)
        assert left.left == expected
        read = StudyLoader(planned.store.root, planned.volumes, Rendering(None))
        replica = Replica(Judge, planned.store.completions(identity.model_key), 64, sweep.stream)
        asyncio.run(run_all(replica, read, left.work))
    found = [
        read_verdicts(reply, len(one.steps))
        for one, reply in zip(told, replies_of(planned, asked), strict=True)
    ]
    assert found == [(RIGHT, WRONG), (RIGHT, WRONG, RIGHT)]
    kept = json.loads(judged_line(told[0], found[0]))
    assert (kept["line"], kept["case"]) == (1, 1)
    assert kept["judge"] == [json.loads(json.dumps(asdict(one))) for one in (RIGHT, WRONG)]


async def run_all(replica: Replica, read: StudyLoader, work: pa.Table) -> None:
    for row in range(work.num_rows):
        async for _ in replica(pa.concat_tables(read(work.slice(row, 1)))):
            pass
