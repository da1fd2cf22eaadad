"""A language model as second extractor: what it says is believed only with evidence from the report."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from report_folders import lines, write_reports

from cardiolens.config.compose import read_questions_spec
from cardiolens.curation.questions.draft_questions import questions
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.drafts import merged
from cardiolens.curation.questions.extraction_model import Part, parts, read_reply
from cardiolens.curation.questions.model_extraction import extractions_from_completions, model_spec, plan_of
from cardiolens.inference.engine.ask import Ask, FrameWork, Pictures, Reply
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.stream.loader import StudyLoader
from cardiolens.inference.stream.replica import Replica
from cardiolens.phantom.roster import catalogue
from cardiolens.protocol.tasks.legal import constraint_of, read_constraint

CATALOGUE = catalogue()
LGE: Part = next(part for part in parts(CATALOGUE) if part.name == "lge")
TEXT = "History: known scar.\nFindings: No late gadolinium enhancement. LVEF 60 %."


def reply(*findings: dict[str, Any]) -> str:
    return json.dumps({"findings": list(findings)})


def entry(
    quote: str, value: str | None = "Absent", field: str = "L01", certainty: str = "certain"
) -> dict[str, Any]:
    return {"field": field, "value": value, "quote": quote, "certainty": certainty}


def test_a_finding_with_its_evidence_is_believed() -> None:
    ((one,), lost) = read_reply(TEXT, reply(entry("No late gadolinium enhancement")), LGE)
    assert not lost
    assert TEXT[one.start : one.end] == one.quote
    assert (one.subtask, one.value, one.certainty, one.doubt) == ("L01", "Absent", "certain", None)


def test_what_is_not_in_the_report_or_not_asked_for_is_lost_with_its_reason() -> None:
    cases = {
        reply(entry("No LGE")): Reason.NOT_QUOTED,
        reply(entry("no late gadolinium enhancement")): Reason.NOT_QUOTED,
        reply(entry("o late gadolinium enhancemen")): Reason.NOT_QUOTED,
        reply(entry("")): Reason.NOT_QUOTED,
        reply(entry("known scar", "Present")): Reason.SILENT_SECTION,
        reply(entry("LVEF 60 %", "Normal", "C10")): Reason.NO_SUCH_OPTION,
        reply(entry("No late gadolinium enhancement", "None")): Reason.NO_SUCH_OPTION,
        reply(entry("No late gadolinium enhancement", certainty="sure")): Reason.NO_SUCH_OPTION,
        "ANSWER: A": Reason.NO_JSON,
        '{"findings": [': Reason.NO_JSON,
        '{"findings": [], "findings": []}': Reason.NO_JSON,
    }
    for written, reason in cases.items():
        found, lost = read_reply(TEXT, written, LGE)
        assert not found, written
        assert [one.reason for one in lost] == [reason], written
    assert [one.reason for one in read_reply(TEXT, None, LGE)[1]] == [Reason.NO_REPLY]


def test_a_subtask_that_lost_a_finding_has_no_answer_from_the_rest() -> None:
    found, _ = read_reply(TEXT, reply(entry("No late gadolinium enhancement"), entry("made up")), LGE)
    assert [one.doubt for one in found] == [Reason.NOT_QUOTED]


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60))
def test_no_reply_breaks_the_reading(written: str) -> None:
    found, lost = read_reply(TEXT, written, LGE)
    assert lost or not found


def test_the_schema_goes_to_decoding_as_it_is_hashed() -> None:
    constraint = constraint_of("schema", "report", (LGE.schema,), ())
    assert read_constraint(constraint.text) == constraint
    assert json.loads(constraint.schema)["required"] == ["findings"]


def test_agreed_items_are_sampled_disputed_ones_are_no_questions_and_all_others_are_reviewed() -> None:
    def one(**answers: list[str]) -> dict[str, Any]:
        return {"answers": answers, "indeterminate": {}}

    both = {
        "rules": one(C10=["A"], L01=["A"], D01=["C"], T01=["A"]),
        "model": one(C10=["A"], L01=["B"], D01=["C"]),
    }
    items, refused = merged(both, CATALOGUE)
    assert {name: item["queue"] for name, item in items.items()} == {
        "C10": "sampling",
        "D01": "full",
        "T01": "full",
    }
    assert refused == {"L01": Reason.EXTRACTORS_DISAGREE}
    alone, _ = merged({"rules": both["rules"]}, CATALOGUE)
    assert {item["queue"] for item in alone.values()} == {"full"}


class Scripted:
    """An engine whose findings are written here; counts what it is asked."""

    mortal = False

    def __init__(self) -> None:
        self.n_asked = 0

    async def start(self) -> None:
        pass

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self.n_asked += 1
        assert not ask.frame_keys
        assert ask.constraint.schema
        stated = [entry("No late gadolinium enhancement")] if "L01" in ask.text else []
        return Reply(text=reply(*stated), finish_reason="stop")

    def frames(self) -> FrameWork:
        return FrameWork()

    def close(self) -> None:
        pass


def test_reports_go_through_the_stream_and_its_store_once(tmp_path: Path) -> None:
    words = write_reports(tmp_path, {"S1": TEXT, "S2": "Findings: Transmural scar of the apex."})
    spec, engine = read_questions_spec(words), Scripted()
    sweep = model_spec(spec, ["model=uniform"])

    def second(sections: Any, protocol: Any) -> Any:
        planned = plan_of(sweep, sections, protocol)
        ((name, identity),) = planned.identities.items()
        work = missing_of(planned, name).work
        read = StudyLoader(planned.store.root, planned.volumes, Rendering(None), False)
        replica = Replica(lambda: engine, planned.store.completions(identity.model_key), 64, sweep.stream)

        async def run() -> None:
            for row in range(work.num_rows):
                async for _ in replica(pa.concat_tables(read(work.slice(row, 1)))):
                    pass

        asyncio.run(run())
        return extractions_from_completions(planned, sections, protocol)

    assert questions(spec, second) == 0
    asked = engine.n_asked
    assert asked == 2 * len(list(parts(CATALOGUE)))
    made = lines(tmp_path / "out" / "questions.jsonl")
    agreed = [one for one in made if one["verification"]["queue"] == "sampling"]
    assert [(one["study"], one["subtask"], one["answer"]) for one in agreed] == [("S1", "L01", ["A"])]
    lost = lines(tmp_path / "out" / "rejects.jsonl")
    assert [(one["study_id"], one["reason"]) for one in lost if one["stage"] == 2] == [("S2", "not_quoted")]
    assert questions(spec, second) == 0
    assert engine.n_asked == asked, "the store answers"
    assert lines(tmp_path / "out" / "questions.jsonl") == made
