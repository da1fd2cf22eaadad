"""Data of the case viewer: questions and answers."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from cardiolens.show.page.case_viewer.item_sources import CaseKey, CaseRow, Sources
from cardiolens.show.page.case_viewer.pictures import Place
from cardiolens.show.page.case_viewer.study_layout import frames_sent, shown_letter
from cardiolens.show.page.case_viewer.withheld import public_evidence, public_reference, public_reply
from cardiolens.show.page.columns import prompt_words
from cardiolens.storage.schemas import ASKED_BACK


def question_cases(
    sources: Sources, keys: Collection[CaseKey], *, private: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each question with its cases: requests and verdicts by arm; the tables are read once.

    Only `private` ones hold the text of reports.
    """
    by_question: dict[str, list[CaseRow]] = {}
    for row in sources.cases(keys):
        by_question.setdefault(row["qa_id"], []).append(row)
    for question in dict.fromkeys(question for question, _ in keys):
        rows = by_question.get(sources.qa_id(question), [])
        yield question, _cases(sources, question, rows, private=private)


def _cases(sources: Sources, question: int, rows: Sequence[CaseRow], *, private: bool) -> dict[str, Any]:
    """A question with its cases, which refer to texts and lists of frames by their places."""
    (asked,) = sources.questions.slice(question, 1).to_pylist()
    reference = asked["reference"]
    numbers = {study: at for at, study in enumerate(sources.studies)}
    texts: dict[str, int] = {}
    frames: dict[tuple[Place, ...], int] = {}
    cases: dict[int, dict[str, Any]] = {}

    def shown(text: str | None) -> str | None:
        return text if private else public_reply(text, reference)

    def place(text: str | None) -> int | None:
        return None if text is None else texts.setdefault(text, len(texts))

    for row in rows:
        prompt, reply, places = _transcript(row, shown)
        case = {
            "system": place(row["system"]),
            "prompt": place(prompt),
            "reply": place(shown(reply)),
            "frames": frames.setdefault(places, len(frames)),
            "frames_of": numbers.get(row["frames_study_id"]),
            "shown": shown_letter(sources, question, row),
            **{name: row[name] for name in ("flags", "status", "verdicts")},
        }
        cases.setdefault(sources.arms.index(row["arm_id"]), case)
    qa_id = asked["qa_id"]
    question_fields = {
        **{name: asked[name] for name in ("question", "subtask")},
        "options": {option["key"]: option["text"] for option in asked["options"]},
        "reference": reference if private else public_reference(reference),
        "grounds": _grounds(sources.evidence.get(qa_id), private),
    }
    return {
        "questions": {qa_id: question_fields},
        "cases": {qa_id: cases} if cases else {},
        "texts": list(texts),
        "frames": [[list(place) for place in places] for places in frames],
    }


def _transcript(
    row: CaseRow, shown: Callable[[str | None], str | None]
) -> tuple[str, str | None, tuple[Place, ...]]:
    """Prompt, reply and frames of a request; for a chain, all stage prompts with the replies in between."""
    stages, reply = [*row["stages"]], row["reply"]
    if stages and stages[-1]["status"] == ASKED_BACK:
        reply = f"{reply}\n\n[asked back for its letters]\n{stages.pop()['reply']}"
    parts = [] if stages else [row["prompt"]]
    for stage in stages:
        parts.append(shown(stage["prompt"]) or "")
        if stage is not stages[-1]:
            parts.append(f"[reply to request {stage['stage'] + 1}]\n{shown(stage['reply']) or ''}")
    return "\n\n".join(parts), reply, tuple(frames_sent(row, stages))


def _grounds(row: Mapping[str, Any] | None, private: bool) -> dict[str, Any] | None:
    """Evidence for the true answer: origin, quotes, verification, slices."""
    if row is None:
        return None
    evidence = row if private else public_evidence(row)
    return {
        **{name: evidence[name] for name in ("origin", "quotes")},
        "verification": json.loads(evidence["verification"]),
        "slices": row["slices"] or [],
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
        "subtasks": {subtask.id: subtask.field for subtask in sources.header.subtasks.values()},
        "questions": [list(row) for row in zip(sources.study.tolist(), *names, strict=True)],
    }
