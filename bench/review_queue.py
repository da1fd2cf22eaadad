"""Time from a key to the next item in a long queue of review: `python bench/review_queue.py`.

Decides on a stretch at the start, in the middle and at the end of 10,000 items, as reader and as adjudicator.
Tells the time of the processor too, for machines that others use.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from cardiolens.curation.review.desk import Desk
from cardiolens.curation.review.people import Person, Role
from cardiolens.curation.review.queue import NAME, DecisionRequest, Ledger, Line, Queue, now
from cardiolens.curation.review.review_items import Item
from cardiolens.curation.review.review_pictures import Pictures
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.questions import given_questions

STRETCH = 100


def items_of(folder: Path, number: int) -> tuple[Item, ...]:
    """Copies of one draft, 30 a study."""
    catalogue, path = load_catalogue("openprotocol-1"), folder / "draft.jsonl"
    path.write_text(json.dumps({"study": "S", "subtask": "C01", "answer": "A", "origin": "report"}) + "\n")
    (given,) = given_questions(path, catalogue)
    return tuple(
        Item(
            given.question.model_copy(update={"qa_id": f"Q{place}", "study_id": f"S{place // 30}"}),
            given.record,
            catalogue["C01"],
            f"S{place // 30}",
            f"b{place // 200}",
            f"{place:032x}",
        )
        for place in range(number)
    )


def decided(item: Item, reader: str, verdict: str) -> Line:
    """A decision that was made before."""
    told = {"event": "decided", "mode": "verify", "reader": reader, "verdict": verdict}
    return Line.model_validate(
        {"id": f"{reader}-{item.qa_id:>12}", "at": now(), "qa_id": item.qa_id, "item": item.digest, **told}
    )


def measure(folder: Path, items: tuple[Item, ...], before: int, role: Role) -> list[tuple[float, float]]:
    """Time of each key after so many items were decided on: by the clock, and of the processor."""
    folder.mkdir()
    ledger = Ledger(folder / NAME)
    disputed = items if role == "adjudicator" else ()
    for item in disputed:
        ledger.reviews.add(decided(item, "anna", "accept"))
        ledger.reviews.add(decided(item, "berta", "cannot_tell"))
    for item in items[:before]:
        ledger.reviews.add(decided(item, "me", "accept").model_copy(update={"third": bool(disputed)}))
    desk = Desk(Queue(items, ledger, "verify"), Pictures({}))
    person = Person("me", role)
    state, taken = desk.state(person), []
    for key in range(min(STRETCH, len(items) - before)):
        item = state["item"]
        began, used = time.perf_counter(), time.process_time()
        asked = DecisionRequest(
            id=f"key-{key:020d}", qa_id=item["qa_id"], item=item["item"], verdict="accept"
        )
        state = desk.decide(asked, person)
        json.dumps(state)
        taken.append((1000 * (time.perf_counter() - began), 1000 * (time.process_time() - used)))
        assert "error" not in state
    ledger.close()
    return taken


def main(number: int) -> None:
    """Print median and worst of each stretch."""
    roles: tuple[Role, ...] = ("reader", "adjudicator")
    with tempfile.TemporaryDirectory() as root:
        items = items_of(Path(root), number)
        for role in roles:
            for before in (0, number // 2, number - STRETCH):
                taken = measure(Path(root) / f"{role}-{before}", items, before, role)
                for kind, times in zip(
                    ("clock", "processor"), map(sorted, zip(*taken, strict=True)), strict=True
                ):
                    middle, worst = times[len(times) // 2], times[-1]
                    place = f"{role}, {before} of {number}, {kind}"
                    print(f"{place}: median {middle:.1f} ms, worst {worst:.1f} ms", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000)
