"""Items of catalogue questions without studies, and people who decide on them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cardiolens.curation.review.queue import NAME, DecisionRequest, Ledger, Queue
from cardiolens.curation.review.review_items import Item
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.questions import given_questions

CATALOGUE = load_catalogue("openprotocol-1")


def items_of(
    folder: Path,
    studies: int,
    subtasks: Sequence[str] = ("C01",),
    answers: Mapping[str, str] = MappingProxyType({}),
    marks: Sequence[str] = (),
) -> list[Item]:
    """A draft of each subtask in each study, all of one batch; its answer is A unless another is given.

    `marks` say of each study who drafted its questions.
    """
    path = folder / "drafts.jsonl"
    lines = [
        {
            "study": f"S{number:04d}",
            "subtask": subtask,
            "answer": [answers.get(subtask, "A")],
            "origin": "report",
            "verification": {"status": "draft", "stage": 6}
            | ({"drafted_by": marks[number]} if marks else {}),
        }
        for number in range(studies)
        for subtask in subtasks
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [
        Item(
            one.question,
            one.record,
            CATALOGUE[one.question.subtask],
            one.question.study_id,
            "b01",
            one.question.qa_id,
        )
        for one in given_questions(path, CATALOGUE)
    ]


class Table:
    """A queue with people at it; each decides on what they are shown."""

    def __init__(self, folder: Path, items: Sequence[Item], mode: str = "verify") -> None:
        self.ledger = Ledger(folder / NAME)
        self.queue = Queue(items, self.ledger, mode)
        self.pressed = 0

    def shown(self, reader: str) -> str | None:
        item = self.queue.next(reader, role_of(reader))
        return None if item is None else item.qa_id

    def press(
        self, reader: str, verdict: str | None = None, name: str | None = None, **more: Any
    ) -> str | None:
        """Decide on what is shown; None where it was kept, else why not."""
        item = self.queue.next(reader, role_of(reader))
        self.pressed += 1
        told = {} if item is None or more.get("undo") else {"qa_id": item.qa_id, "item": item.digest}
        if verdict == "reject":
            more = {"reason": "not_in_images"} | more
        asked = DecisionRequest.model_validate(
            {"id": name or f"press-{id(self)}-{self.pressed:08d}", "verdict": verdict, **told, **more}
        )
        return self.queue.decide(asked, reader, role_of(reader))

    def everything(self, reader: str, verdict: str = "accept", **more: Any) -> int:
        """Decide alike on all that one is shown; the number of items."""
        number = 0
        while self.shown(reader) is not None:
            assert self.press(reader, verdict, **more) is None
            number += 1
        return number


def role_of(reader: str) -> str:
    return "adjudicator" if reader == "third" else "reader"
