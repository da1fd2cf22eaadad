"""Join requests, completions and questions by key and judge them to verdicts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.protocol.dialogue.chain import SAMPLED, samples_of
from cardiolens.score.verdicts.case_verdict import (
    Case,
    CaseReply,
    Judgement,
    case_of,
    elect_reply,
    judge_choice,
    judge_number,
    judge_ranking,
)
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.score.verdicts.report_verdict import judge_fields, judge_text, texts
from cardiolens.score.verdicts.text_metrics import TextMetric
from cardiolens.storage.schemas import ILLEGAL_SELECTION, VERDICTS

Judge = Callable[[Case, CaseReply], Judgement]

CHANNELS: dict[str, dict[str, Judge]] = {
    "single": {"answer": judge_choice},
    "ordinal": {"answer": judge_choice},
    "multi": {"answer": judge_choice},
    "report": {"fields": judge_fields, "text": judge_text},
    "number": {"number": judge_number},
    "ranking": {"ranking": judge_ranking},
}

_FROM_QUESTION = ("study_id", "patient_id", "tier", "sequence", "subtask", "answer_type")
_JUDGEMENT_SCHEMA = pa.schema(
    [VERDICTS.field(name) for name in ("parse_status", "rule", "parsed", "gold", "correct", "counts")]
)
_BLANK = CaseReply("", refused=False, cut=False, displayed_keys=())
_REPLY = ("text", "refused", "cut", "sampled", "shown")
_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class _Sheet:
    """Requests and replies row by row, and the questions that the rows refer to."""

    requests: pa.Table
    replies: pa.Table
    question: np.ndarray  # row of `questions` and entry of `cases`
    questions: pa.Table
    cases: list[Case]

    def with_channel(self, channel: str) -> "_Sheet":
        """The rows with an answer type that has the channel."""
        has_channel = np.array([channel in CHANNELS[case.answer_type] for case in self.cases])
        rows = np.flatnonzero(has_channel[self.question])
        return replace(
            self,
            requests=self.requests.take(rows),
            replies=self.replies.take(rows),
            question=self.question[rows],
        )


def judge(
    requests: pa.Table,
    completions: pa.Table,
    questions: pa.Table,
    protocol: str | None = None,
    metrics: Sequence[TextMetric] = (),
) -> pa.Table:
    """Return one verdict per (arm_id, qa_id, channel), in that order.

    `protocol` is the folder of the questions' data files, where they are not a shipped protocol's; `metrics`
    add to the counts of report texts.

    Completions without a request are ignored; of several for one key the earliest final one counts. A request
    with an unknown question, or one that has other options by now, is an InputError.
    """
    sorted_requests = requests.sort_by([("arm_id", "ascending"), ("qa_id", "ascending")])
    question = _question_rows(sorted_requests["qa_id"], questions)
    cases = [case_of(row, protocol) for row in questions.to_pylist()]
    sheet = _Sheet(sorted_requests, _reply_rows(sorted_requests, completions), question, questions, cases)
    channels = sorted({channel for case in cases for channel in CHANNELS[case.answer_type]})
    tables = [_verdicts(channel, sheet.with_channel(channel), metrics) for channel in channels]
    verdicts = pa.concat_tables(tables) if tables else VERDICTS.empty_table()
    return verdicts.sort_by([(name, "ascending") for name in ("arm_id", "qa_id", "channel")])


def _question_rows(qa_ids: pa.ChunkedArray, questions: pa.Table) -> np.ndarray:
    """The row of `questions` of each request."""
    known_ids = questions["qa_id"]
    if len(pc.unique(known_ids)) != len(known_ids):
        repeated = next(
            entry["values"] for entry in pc.value_counts(known_ids).to_pylist() if entry["counts"] > 1
        )
        raise InputError(f"question {repeated}: its qa_id stands twice; give every question its own")
    rows = pc.index_in(qa_ids, value_set=known_ids.combine_chunks())
    if rows.null_count:
        unknown = qa_ids.filter(pc.is_null(rows))[0].as_py()
        raise InputError(
            f"request for question {unknown}: no such question; judge with the questions file of the run, "
            "or run the sweep again"
        )
    return np.asarray(rows)


def _reply_rows(requests: pa.Table, completions: pa.Table) -> pa.Table:
    """Status, text and ending of the reply of each request; text is null unless a reply is final."""
    final = finals(completions)
    row = pc.index_in(requests["request_key"], value_set=final["request_key"].combine_chunks())
    replied = pc.and_(pc.equal(requests["status"], "planned"), pc.is_valid(row))
    reply = final.select(["text", "status", "finish_reason"]).take(row)
    failed = pc.is_in(requests["request_key"], value_set=completions["request_key"].combine_chunks())
    unanswered = pc.if_else(failed, "engine_error", "missing")
    status = pc.if_else(pc.equal(requests["status"], "planned"), unanswered, requests["status"])
    return pa.table(
        {
            "status": pc.if_else(replied, "judged", status),
            "text": pc.if_else(replied, pc.fill_null(reply["text"], ""), pa.scalar(None, pa.string())),
            "refused": pc.fill_null(pc.equal(reply["status"], "refused"), False),
            "cut": pc.fill_null(pc.equal(reply["finish_reason"], "length"), False),
            "sampled": pc.fill_null(pc.equal(reply["finish_reason"], SAMPLED), False),
            "unselected": pc.fill_null(pc.equal(reply["status"], ILLEGAL_SELECTION), False),
            "shown": pc.fill_null(pc.binary_join(requests["option_keys"], _SEPARATOR), ""),
        }
    )


def _verdicts(channel: str, sheet: _Sheet, metrics: Sequence[TextMetric]) -> pa.Table:
    judgements = _judgement_rows(channel, sheet, metrics if channel == "text" else ())
    columns = {name: sheet.questions[name].take(sheet.question) for name in _FROM_QUESTION}
    columns |= {name: sheet.requests[name] for name in ("arm_id", "qa_id", "request_key")}
    columns |= {"channel": pa.repeat(channel, judgements.num_rows), "status": sheet.replies["status"]}
    columns |= {name: judgements[name] for name in _JUDGEMENT_SCHEMA.names}
    for name in ("parse_status", "rule"):  # the last reply answers a request for frames, not the question
        columns[name] = pc.if_else(sheet.replies["unselected"], ILLEGAL_SELECTION, judgements[name])
    return pa.table([columns[name] for name in VERDICTS.names], schema=VERDICTS)


def _judgement_rows(channel: str, sheet: _Sheet, metrics: Sequence[TextMetric]) -> pa.Table:
    """Judge each distinct (question content, reply) once and spread the judgements over the rows."""
    distinct_cases = list(dict.fromkeys(sheet.cases))
    number = {case: position for position, case in enumerate(distinct_cases)}
    case_of_row = np.array([number[case] for case in sheet.cases], dtype=np.int64)[sheet.question]
    first, spread = _distinct([case_of_row, *(_codes(sheet.replies[name]) for name in _REPLY)])
    cases = [distinct_cases[at] for at in case_of_row[first]]
    reply_rows = sheet.replies.take(first).to_pylist()
    replies = [_reply(case, row) for case, row in zip(cases, reply_rows, strict=True)]
    judgements = [
        CHANNELS[case.answer_type][channel](case, reply or _BLANK)
        for case, reply in zip(cases, replies, strict=True)
    ]
    if metrics:
        pairs = [texts(case, reply or _BLANK) for case, reply in zip(cases, replies, strict=True)]
        for metric in metrics:
            for judgement, values in zip(judgements, metric(pairs), strict=True):
                judgement.counts.update(values)
    rows = [
        _row(judgement, reply) | _counts(case, judgement if reply else None)
        for case, judgement, reply in zip(cases, judgements, replies, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=_JUDGEMENT_SCHEMA).take(spread)


def _reply(case: Case, row: dict[str, object]) -> CaseReply | None:
    """The reply to judge, of several samples the elected one; None if no completion is final."""
    if row["text"] is None:
        return None
    displayed_keys = tuple(str(row["shown"]).split(_SEPARATOR)) if row["shown"] else ()
    samples = samples_of(str(row["text"])) if row["sampled"] else ()
    if samples:
        replies = [
            CaseReply(sample.text, refused=sample.refused, cut=sample.cut, displayed_keys=displayed_keys)
            for sample in samples
        ]
        return elect_reply(case, replies)
    return CaseReply(
        str(row["text"]), refused=bool(row["refused"]), cut=bool(row["cut"]), displayed_keys=displayed_keys
    )


def _row(judgement: Judgement, reply: CaseReply | None) -> dict[str, object]:
    """Convert a judgement to columns of verdicts; without a reply only to the gold answer."""
    if reply is None:
        return {"gold": list(judgement.gold)}
    return {
        "parse_status": judgement.parse_status,
        "rule": judgement.rule,
        "parsed": list(judgement.parsed),
        "gold": list(judgement.gold),
        "correct": judgement.correct,
    }


def _counts(case: Case, judgement: Judgement | None) -> dict[str, object]:
    """The column `counts`; letters with gaps, such as a Z for None, are among them as bits."""
    counts = {} if judgement is None else dict(judgement.counts)
    if case.keys != tuple(ascii_uppercase[: len(case.keys)]):
        counts["letters"] = float(sum(1 << ascii_uppercase.index(key) for key in case.keys))
    return {"counts": list(counts.items())} if counts else {}


def _codes(column: pa.ChunkedArray) -> np.ndarray:
    encoded = column.combine_chunks().dictionary_encode()
    return np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64) + 1


def _distinct(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each distinct combination, and the combination of each row."""
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, combined = np.unique(combined, return_inverse=True)
        combined = combined * (int(column.max(initial=0)) + 1) + column
    _, first, spread = np.unique(combined, return_index=True, return_inverse=True)
    return first, spread
