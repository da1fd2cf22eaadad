"""Steps of reasoning judged by a model: what a file may hold, what is believed, agreement with people."""

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
from cardiolens.benchmarks.judges.reasoning import (
    ERRORS,
    PUBLISHED_ERRORS,
    Reasoning,
    StepVerdict,
    read_reasoning,
)
from cardiolens.benchmarks.judges.reasoning_judge import judged_line, read_verdicts, requests
from cardiolens.benchmarks.medthinkvqa import source_of
from cardiolens.curation.asking.ask_texts import asking_spec, plan_texts, replies_of
from cardiolens.inference.engine.ask import Ask, Pictures, Reply
from cardiolens.inference.engine.readers import Reader
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.stream.loader import StudyLoader
from cardiolens.inference.stream.replica import Replica
from cardiolens.protocol.tasks.legal import constraint_of
from jobs.medthinkvqa import agreement
from tests.support.cases.example_cases import make_cases

STEP = {"is_factual": True, "is_critical": False, "explanation": "Seen.", "error_types": None}
LINE = {"case": 1, "steps": ["There is a disc.", "So it is dyslumia."], "people": [STEP, STEP]}
RIGHT, WRONG = StepVerdict(True, True, ()), StepVerdict(False, True, (ERRORS[1],))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Three generated cases."""
    folder = tmp_path_factory.mktemp("cases")
    make_cases(folder, 3, 1)
    return source_of(folder)


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "steps.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"case": 4}, "case is 4; expected the line of a case, 1 to 3"),
        ({"case": True}, "case is True"),
        ({"steps": []}, "steps is no list of 1 to 15 texts"),
        ({"steps": ["x"] * 16}, "steps is no list of 1 to 15 texts"),
        ({"steps": ["x", " "]}, "steps is no list of 1 to 15 texts"),
        ({"people": [STEP]}, "people is no list of one verdict for each of the 2 steps"),
        (
            {"people": [STEP, STEP | {"error_types": ["Typing"]}]},
            'people, step 2: error_types is "Typing"; expected a list of Reasoning Err, Image Unders',
        ),
        ({"people": [STEP, STEP | {"is_factual": 1}]}, "people, step 2: is_factual is 1; expected true"),
        ({"people": ["yes", STEP]}, 'people, step 1: the verdict is "yes"; expected an object'),
        ({"people": [STEP, STEP | {"why": "x"}]}, "people, step 2: why is unknown; legal are is_factual"),
        ({"answer": "A"}, "answer is unknown; legal are case, steps and people"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_with_its_field(
    tmp_path: Path, source: Source, change: Any, said: str
) -> None:
    path = written(tmp_path, LINE, LINE | change)
    with pytest.raises(InputError, match=re.escape(said)) as raised:
        read_reasoning(path, source)
    assert f"{path}:2: " in str(raised.value)


@pytest.mark.parametrize("line", ["{", "[1]", ""])
def test_what_is_no_object_is_named_too(tmp_path: Path, source: Source, line: str) -> None:
    with pytest.raises(InputError, match=r"steps\.jsonl:2: "):
        read_reasoning(written(tmp_path, LINE, line, LINE), source)


def test_the_judge_is_told_answer_and_steps_and_never_what_people_said(
    tmp_path: Path, source: Source
) -> None:
    people = [STEP | {"error_types": [PUBLISHED_ERRORS[3]]}, STEP]
    told = read_reasoning(written(tmp_path, LINE | {"case": 2, "people": people}), source)
    (asked,) = requests(source, told)
    (without,) = requests(source, [replace(told[0], given=None)])
    assert asked == without
    for text in ("1. There is a disc.\n2. So it is dyslumia.", "is the sign of"):
        assert text in asked.prompt
    assert constraint_of("schema", "report", (asked.schema,), ()).schema == asked.schema
    assert json.loads(asked.schema)["properties"]["verdicts"]["minItems"] == 2


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "",
        "true",
        json.dumps({"verdicts": [STEP]}),
        json.dumps({"verdicts": [STEP, STEP, STEP]}),
        json.dumps({"verdicts": [STEP, STEP | {"why": "x"}]}),
        json.dumps({"verdicts": [STEP, STEP], "why": "x"}),
        json.dumps({"verdicts": [STEP, STEP]})[:-1],
    ],
)
def test_a_reply_is_believed_whole_or_not_at_all(reply: str | None) -> None:
    assert read_verdicts(reply, 2) is None
    assert read_verdicts(json.dumps({"verdicts": [STEP, STEP]}), 2) == (StepVerdict(True, False, ()),) * 2


def test_agreement_is_that_of_the_steps_that_both_judged() -> None:
    people = [[RIGHT, WRONG, RIGHT], [WRONG], [RIGHT, RIGHT, WRONG, WRONG], [RIGHT]]
    judge = [[RIGHT, RIGHT, RIGHT], [WRONG], [WRONG, RIGHT, WRONG, RIGHT], None]
    told = [Reasoning(at, at, ("x",) * len(said), tuple(said)) for at, said in enumerate(people, start=1)] + [
        Reasoning(5, 4, ("x",), None)
    ]
    found = {one.label: one for one in agreement(told, [*(said and tuple(said) for said in judge), (RIGHT,)])}
    factual = found["is_factual"]
    assert (factual.n_steps, factual.n_cases, factual.n_given, factual.n_judge) == (8, 3, 4, 5)
    # 3 steps that both hold true, 2 that both hold false, 1 and 2 that they differ on
    assert factual.accuracy.value == pytest.approx(5 / 8)
    assert factual.kappa.value == pytest.approx((5 / 8 - 1 / 2) / (1 - 1 / 2))
    assert factual.mcc.value == pytest.approx((3 * 2 - 1 * 2) / (4 * 4 * 5 * 3) ** 0.5)
    assert factual.kappa.low < factual.kappa.value < factual.kappa.high
    assert found[f"error: {ERRORS[1]}"].kappa.value == pytest.approx(factual.kappa.value)
    critical = found["is_critical"]
    assert critical.accuracy.value == 1
    assert critical.kappa.value != critical.kappa.value, "undefined where nobody says anything else"


def test_without_labels_there_is_no_agreement() -> None:
    (first, *_) = agreement([Reasoning(1, 1, ("x",), None)], [(RIGHT,)])
    assert first.n_steps == 0
    assert first.accuracy.value != first.accuracy.value


class Judge(Reader):
    """Engine that finds fault with every second step."""

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        assert ask.constraint.schema
        count = json.loads(ask.constraint.schema)["properties"]["verdicts"]["minItems"]
        wrong = STEP | {"is_factual": False, "is_critical": True, "error_types": [PUBLISHED_ERRORS[1]]}
        right = STEP | {"is_critical": True}
        verdicts = [wrong if place % 2 else right for place in range(count)]
        return Reply(text=json.dumps({"verdicts": verdicts}), finish_reason="stop")


def test_each_line_is_asked_once_through_the_stream(tmp_path: Path, source: Source) -> None:
    path = written(tmp_path, LINE, LINE | {"case": 2, "steps": ["One.", "Two.", "Three."], "people": None})
    told = read_reasoning(path, source)
    asked = requests(source, told)
    sweep = asking_spec(tmp_path / "store", tmp_path / "judge", "openprotocol-1", ["model=uniform"])
    for expected in (2, 0):
        planned = plan_texts(sweep, [[one] for one in asked])
        ((name, identity),) = planned.identities.items()
        left = missing_of(planned, name)
        assert left.left == expected
        read = StudyLoader(planned.store.root, planned.volumes, Rendering(None))
        replica = Replica(Judge, planned.store.completions(identity.model_key), 64, sweep.stream)
        asyncio.run(run_all(replica, read, left.work))
    judged = [
        read_verdicts(reply, len(one.steps))
        for one, reply in zip(told, replies_of(planned, asked), strict=True)
    ]
    assert judged == [(RIGHT, WRONG), (RIGHT, WRONG, RIGHT)]
    kept = json.loads(judged_line(told[0], judged[0]))
    assert (kept["line"], kept["case"]) == (1, 1)
    assert kept["judge"] == [json.loads(json.dumps(asdict(one))) for one in (RIGHT, WRONG)]


async def run_all(replica: Replica, read: StudyLoader, work: pa.Table) -> None:
    for row in range(work.num_rows):
        async for _ in replica(pa.concat_tables(read(work.slice(row, 1)))):
            pass
