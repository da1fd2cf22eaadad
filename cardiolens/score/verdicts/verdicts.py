"""Join requests, completions and questions by key and judge them to verdicts."""

from collections.abc import Callable, Sequence
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
    question = _question_rows(requests["qa_id"], questions)
    cases = [case_of(row, protocol) for row in questions.to_pylist()]
    replies = _reply_rows(requests, completions)
    tables = [VERDICTS.empty_table()]
    for channel in sorted({channel for case in cases for channel in CHANNELS[case.answer_type]}):
        has_channel = np.array([channel in CHANNELS[case.answer_type] for case in cases])
        rows = np.flatnonzero(has_channel[question])
        of_rows = replies.take(rows), question[rows]
        judgements = _judgement_rows(channel, *of_rows, cases, metrics if channel == "text" else ())
        tables.append(_verdicts(channel, *of_rows, questions, judgements))
    in_order = [(name, "ascending") for name in ("arm_id", "qa_id", "channel")]
    return pa.concat_tables(tables).sort_by(in_order)


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
    """Names, status, text and ending of the reply of each request; text is null unless a reply is final."""
    final = finals(completions)
    row = pc.index_in(requests["request_key"], value_set=final["request_key"].combine_chunks())
    replied = pc.and_(pc.equal(requests["status"], "planned"), pc.is_valid(row))
    reply = final.select(["text", "status", "finish_reason"]).take(row)
    failed = pc.is_in(requests["request_key"], value_set=completions["request_key"].combine_chunks())
    unanswered = pc.if_else(failed, "engine_error", "missing")
    status = pc.if_else(pc.equal(requests["status"], "planned"), unanswered, requests["status"])
    return pa.table(
        {
            **{name: requests[name] for name in ("arm_id", "qa_id", "request_key")},
            "status": pc.if_else(replied, "judged", status),
            "text": pc.if_else(replied, pc.fill_null(reply["text"], ""), pa.scalar(None, pa.string())),
            "refused": pc.fill_null(pc.equal(reply["status"], "refused"), False),
            "cut": pc.fill_null(pc.equal(reply["finish_reason"], "length"), False),
            "sampled": pc.fill_null(pc.equal(reply["finish_reason"], SAMPLED), False),
            "unselected": pc.fill_null(pc.equal(reply["status"], ILLEGAL_SELECTION), False),
            "shown": pc.fill_null(pc.binary_join(requests["option_keys"], _SEPARATOR), ""),
        }
    )


def _verdicts(
    channel: str, replies: pa.Table, question: np.ndarray, questions: pa.Table, judgements: pa.Table
) -> pa.Table:
    """The rows of VERDICTS of one channel; `question` is the row of `questions` of each reply."""
    columns = {name: questions[name].take(question) for name in _FROM_QUESTION}
    columns |= {name: replies[name] for name in ("arm_id", "qa_id", "request_key", "status")}
    columns |= {"channel": pa.repeat(channel, replies.num_rows)}
    columns |= {name: judgements[name] for name in _JUDGEMENT_SCHEMA.names}
    for name in ("parse_status", "rule"):  # the last reply answers a request for frames, not the question
        columns[name] = pc.if_else(replies["unselected"], ILLEGAL_SELECTION, judgements[name])
    return pa.table([columns[name] for name in VERDICTS.names], schema=VERDICTS)


def _judgement_rows(
    channel: str,
    replies: pa.Table,
    question: np.ndarray,
    cases: Sequence[Case],
    metrics: Sequence[TextMetric],
) -> pa.Table:
    """Judge each distinct (question content, reply) once and spread the judgements over the rows."""
    distinct_cases = list(dict.fromkeys(cases))
    number = {case: position for position, case in enumerate(distinct_cases)}
    case_of_row = np.array([number[case] for case in cases], dtype=np.int64)[question]
    first, spread = _distinct([case_of_row, *(_codes(replies[name]) for name in _REPLY)])
    pairs = [
        (distinct_cases[at], _reply(distinct_cases[at], row))
        for at, row in zip(case_of_row[first], replies.take(first).to_pylist(), strict=True)
    ]
    judgements = [CHANNELS[case.answer_type][channel](case, reply or _BLANK) for case, reply in pairs]
    for metric in metrics:
        values_of = metric([texts(case, reply or _BLANK) for case, reply in pairs])
        for judgement, values in zip(judgements, values_of, strict=True):
            judgement.counts.update(values)
    rows = [_row(*pair, judgement) for pair, judgement in zip(pairs, judgements, strict=True)]
    return pa.Table.from_pylist(rows, schema=_JUDGEMENT_SCHEMA).take(spread)


def _reply(case: Case, row: dict[str, object]) -> CaseReply | None:
    """The reply to judge, of several samples the elected one; None if no completion is final."""
    if row["text"] is None:
        return None
    displayed_keys = tuple(str(row["shown"]).split(_SEPARATOR)) if row["shown"] else ()
    if row["sampled"] and (samples := samples_of(str(row["text"]))):
        replies = [CaseReply(sample.text, sample.refused, sample.cut, displayed_keys) for sample in samples]
        return elect_reply(case, replies)
    return CaseReply(str(row["text"]), bool(row["refused"]), bool(row["cut"]), displayed_keys)


def _row(case: Case, reply: CaseReply | None, judgement: Judgement) -> dict[str, object]:
    """Columns of verdicts; without a reply only the gold answer.

    Letters with gaps, such as a Z for None, are among the counts as bits.
    """
    row: dict[str, object] = {"gold": list(judgement.gold)}
    counts = {} if reply is None else dict(judgement.counts)
    if case.keys != tuple(ascii_uppercase[: len(case.keys)]):
        counts["letters"] = float(sum(1 << ascii_uppercase.index(key) for key in case.keys))
    if counts:
        row["counts"] = list(counts.items())
    if reply is None:
        return row
    names = ("parse_status", "rule", "correct")
    return row | {name: getattr(judgement, name) for name in names} | {"parsed": list(judgement.parsed)}


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
