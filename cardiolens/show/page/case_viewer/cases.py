"""Data of the case viewer: questions and answers."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cardiolens.show.page.case_viewer.item_sources import CaseKey, Rows, Sources
from cardiolens.show.page.case_viewer.study_layout import EvidenceIndex, sent_of
from cardiolens.show.page.case_viewer.withheld import public_evidence, public_question, public_reply
from cardiolens.show.page.columns import prompt_words
from cardiolens.storage.schemas import ASKED_BACK

_VERDICT_FIELDS = ("channel", "status", "parse_status", "rule", "parsed", "gold", "correct")
_SHORT = {"lv": "LV", "rv": "RV", "av": "AV", "lge": "LGE", "t2": "T2"}
CaseRow = Mapping[str, Any]


@dataclass(slots=True)
class Texts:
    """Deduplicated texts; requests refer to a text by its index."""

    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str | None) -> int | None:
        return None if text is None else self.places.setdefault(text, len(self.places))


def question_cases(
    sources: Sources, keys: Collection[CaseKey], evidence: EvidenceIndex, *, private: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each question with its cases: requests and verdicts by arm; the tables are read once.

    Only `private` ones hold the text of reports.
    """
    rows = sources.rows(keys)
    requests, verdicts = _by_question(rows.requests), _by_question(rows.verdicts)
    for question in dict.fromkeys(question for question, _ in keys):
        qa_id = sources.qa_id(question)
        of_question = Rows(requests.get(qa_id, ()), verdicts.get(qa_id, ()), rows.replies, rows.stages)
        yield question, _cases(sources, evidence, question, of_question, private=private)


def _by_question(rows: Sequence[CaseRow]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["qa_id"], []).append(dict(row))
    return groups


def _cases(
    sources: Sources, evidence: EvidenceIndex, question: int, rows: Rows, *, private: bool
) -> dict[str, Any]:
    texts, frames = Texts(), Texts()
    place = {arm: at for at, arm in enumerate(sources.arms)}
    number = {study: at for at, study in enumerate(sources.studies)}
    (asked,) = sources.questions.slice(question, 1).to_pylist()
    verdicts: dict[str, list[dict[str, Any]]] = {}
    for row in rows.verdicts:
        verdicts.setdefault(row["arm_id"], []).append({name: row[name] for name in _VERDICT_FIELDS})
    cases: dict[int, dict[str, Any]] = {}
    for row in rows.requests:
        stages = [*rows.stages.get(row["request_key"], ())]
        reply = rows.replies.get(row["request_key"])
        if stages and stages[-1]["status"] == ASKED_BACK:
            reply = f"{reply}\n\n[asked back for its letters]\n{stages.pop()['reply']}"
        if not private:
            reply = public_reply(reply, asked)
        prompt, case_frames = _transcript(row, stages, asked, private=private)
        case = {
            "system": texts.place(row["system"]),
            "prompt": texts.place(prompt),
            "reply": texts.place(reply),
            "frames": frames.place(_as_json(case_frames)),
            "frames_of": number.get(row["frames_study_id"]),
            "shown": evidence.letter(sources, question, sent_of(row, stages)),
            "flags": row["flags"],
            "status": row["status"],
            "verdicts": verdicts.get(row["arm_id"], []),
        }
        cases.setdefault(place[row["arm_id"]], case)
    qa_id = asked["qa_id"]
    grounds = _grounds(sources.evidence.get(qa_id), private)
    return {
        "questions": {qa_id: _question(asked if private else public_question(asked), grounds)},
        "cases": {qa_id: cases} if cases else {},
        "texts": list(texts.places),
        "frames": [json.loads(text) for text in frames.places],
    }


def _transcript(
    row: CaseRow, stages: Sequence[CaseRow], question: CaseRow, *, private: bool
) -> tuple[str, Sequence[CaseRow]]:
    """Prompt and frames of a request; for a chain, all stage prompts with the replies in between."""
    if not stages:
        return row["prompt"], row["frames"] or ()
    parts, frames = [], []
    for stage in stages:
        parts.append(stage["prompt"] if private else public_reply(stage["prompt"], question) or "")
        frames += row["frames"] if stage["frames"] is None else stage["frames"]
        if stage is not stages[-1]:
            reply = stage["reply"] if private else public_reply(stage["reply"], question)
            parts.append(f"[reply to request {stage['stage'] + 1}]\n{reply or ''}")
    return "\n\n".join(parts), frames


def _as_json(frames: Sequence[CaseRow] | None) -> str:
    return json.dumps([[frame["volume_id"], frame["idx"]] for frame in frames or ()])


def _grounds(row: CaseRow | None, private: bool) -> dict[str, Any] | None:
    """Evidence for the true answer: origin, quotes, verification."""
    if row is None:
        return None
    evidence = row if private else public_evidence(row)
    verification = json.loads(evidence["verification"])
    return {
        "origin": row["origin"],
        "quotes": evidence["quotes"],
        "verification": verification,
        "slices": row["slices"] or [],
    }


def _question(row: CaseRow, grounds: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "question": row["question"],
        "subtask": row["subtask"],
        "options": {option["key"]: option["text"] for option in row["options"]},
        "reference": row["reference"],
        "grounds": grounds,
    }


def index_of(sources: Sources) -> dict[str, Any]:
    """Data of the list of cases: arms, studies, and questions as study, subtask and id."""
    names = (sources.questions[name].to_pylist() for name in ("subtask", "qa_id"))
    return {
        "arms": [
            [arm.model, arm.selector, arm.budget, prompt_words(arm), arm.control]
            for arm in sources.header.arms
        ],
        "studies": sources.studies,
        "subtasks": {subtask.id: field_words(subtask.field) for subtask in sources.header.subtasks.values()},
        "questions": [list(row) for row in zip(sources.study.tolist(), *names, strict=True)],
    }


def field_words(field: str) -> str:
    """The field of a report in words, e.g. LV wall levels."""
    return " ".join(_SHORT.get(word, word) for word in field.split("_"))
