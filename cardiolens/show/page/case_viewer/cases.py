"""Data of the case viewer: questions and answers."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from cardiolens.show.page.case_viewer.item_sources import CaseKey, CaseRow, Rows, Sources
from cardiolens.show.page.case_viewer.pictures import Place
from cardiolens.show.page.case_viewer.study_layout import shown_letter
from cardiolens.show.page.case_viewer.withheld import public_evidence, public_question, public_reply
from cardiolens.show.page.columns import prompt_words
from cardiolens.storage.schemas import ASKED_BACK

_VERDICT_FIELDS = ("channel", "status", "parse_status", "rule", "parsed", "gold", "correct")
_SHORT = {"lv": "LV", "rv": "RV", "av": "AV", "lge": "LGE", "t2": "T2"}


def question_cases(
    sources: Sources, keys: Collection[CaseKey], *, private: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each question with its cases: requests and verdicts by arm; the tables are read once.

    Only `private` ones hold the text of reports.
    """
    rows = sources.rows(keys)
    requests, verdicts = _by_question(rows.requests), _by_question(rows.verdicts)
    for question in dict.fromkeys(question for question, _ in keys):
        qa_id = sources.qa_id(question)
        of_question = Rows(requests.get(qa_id, []), verdicts.get(qa_id, []), rows.replies)
        yield question, _cases(sources, question, of_question, private=private)


def _by_question(rows: Sequence[CaseRow]) -> dict[str, list[CaseRow]]:
    groups: dict[str, list[CaseRow]] = {}
    for row in rows:
        groups.setdefault(row["qa_id"], []).append(row)
    return groups


def _cases(sources: Sources, question: int, rows: Rows, *, private: bool) -> dict[str, Any]:
    """A question with its cases, which refer to texts and lists of frames by their places."""
    (asked,) = sources.questions.slice(question, 1).to_pylist()
    numbers = {study: at for at, study in enumerate(sources.studies)}
    texts: dict[str, int] = {}
    frames: dict[tuple[Place, ...], int] = {}
    cases: dict[int, dict[str, Any]] = {}

    def shown(text: str | None) -> str | None:
        return text if private else public_reply(text, asked)

    def place(text: str | None) -> int | None:
        return None if text is None else texts.setdefault(text, len(texts))

    for row in rows.requests:
        prompt, reply, places = _transcript(row, rows.replies.get(row["request_key"]), shown)
        verdicts = [verdict for verdict in rows.verdicts if verdict["arm_id"] == row["arm_id"]]
        case = {
            "system": place(row["system"]),
            "prompt": place(prompt),
            "reply": place(shown(reply)),
            "frames": frames.setdefault(places, len(frames)),
            "frames_of": numbers.get(row["frames_study_id"]),
            "shown": shown_letter(sources, question, row),
            "flags": row["flags"],
            "status": row["status"],
            "verdicts": [{name: verdict[name] for name in _VERDICT_FIELDS} for verdict in verdicts],
        }
        cases.setdefault(sources.arms.index(row["arm_id"]), case)
    qa_id = asked["qa_id"]
    grounds = _grounds(sources.evidence.get(qa_id), private)
    return {
        "questions": {qa_id: _question(asked if private else public_question(asked), grounds)},
        "cases": {qa_id: cases} if cases else {},
        "texts": list(texts),
        "frames": [[list(place) for place in places] for places in frames],
    }


def _transcript(
    row: CaseRow, reply: str | None, shown: Callable[[str | None], str | None]
) -> tuple[str, str | None, tuple[Place, ...]]:
    """Prompt, reply and frames of a request; for a chain, all stage prompts with the replies in between."""
    stages = [*row["stages"]]
    if stages and stages[-1]["status"] == ASKED_BACK:
        reply = f"{reply}\n\n[asked back for its letters]\n{stages.pop()['reply']}"
    parts = [] if stages else [row["prompt"]]
    frames = [] if stages else row["frames"] or []
    for stage in stages:
        parts.append(shown(stage["prompt"]) or "")
        frames += row["frames"] if stage["frames"] is None else stage["frames"]
        if stage is not stages[-1]:
            parts.append(f"[reply to request {stage['stage'] + 1}]\n{shown(stage['reply']) or ''}")
    return "\n\n".join(parts), reply, tuple((frame["volume_id"], frame["idx"]) for frame in frames)


def _grounds(row: Mapping[str, Any] | None, private: bool) -> dict[str, Any] | None:
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
