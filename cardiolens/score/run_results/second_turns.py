"""Second turns of a model: what it answered when a reply that could not be read was quoted to it."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.protocol.dialogue.asking_back import DisplayedChoice, SecondTurn
from cardiolens.score.run_results.stored_replies import item_of, of_keys
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.score.verdicts.verdicts import judge
from cardiolens.storage import tables
from cardiolens.storage.schemas import ASKED_BACK, COMPLETIONS, NO_ANSWER, SEEN

_ORDER = [(name, "ascending") for name in ("arm_id", "qa_id", "channel")]


class _Turn(NamedTuple):
    """A verdict that is asked back: its row, its request, and the second turn."""

    row: int
    place: int  # of its request among the block's
    request: Mapping[str, Any]
    turn: SecondTurn
    choice: DisplayedChoice


class SecondTurns:
    """Reads the second turns of a model: its verdicts, block by block, with these in place of the first."""

    def __init__(self, arms: Collection[str], completions: pa.Table, protocol: str) -> None:
        self._arms = pa.array(sorted(arms), pa.string())
        self._completions = completions
        self._protocol = protocol
        self._seen: dict[str, dict[str, object]] = {}  # rows of SEEN by key of the second turn
        self._ends: dict[str, str] = {}  # how each second turn ended

    def read(
        self, verdicts: pa.Table, requests: pa.Table, completions: pa.Table, questions: pa.Table
    ) -> pa.Table:
        """Return the verdicts of a block by the last turn; `completions` has one row for each key."""
        turns = [*self._turns(verdicts, requests, completions, questions)]
        if not turns:
            return verdicts
        keys = pa.array([second.turn.request_key for second in turns])
        replies = {row["request_key"]: row for row in finals(of_keys(self._completions, keys)).to_pylist()}
        answers = {}
        for second in turns:
            key, reply = second.turn.request_key, replies.get(second.turn.request_key)
            self._ends[key] = "open"
            if reply is not None:
                answer = answers[second.row] = _answer(second.choice, reply)
                self._ends[key] = "unread" if answer is None else "answered" if answer else "none"
                self._seen[key] = {
                    "request_key": second.request["request_key"],
                    "stage": second.request["stage"] + 1,
                    "step_key": key,
                    "prompt": second.turn.ending,
                    "reply": reply["text"],
                    "status": ASKED_BACK,
                }
        read = [(second, answers[second.row] or ()) for second in turns if answers.get(second.row)]
        of_answers = self._verdicts(requests, read, questions)
        rows = [row for row, answer in answers.items() if answer is not None]
        changed = [
            old | _second(of_answers.get((old["arm_id"], old["qa_id"])))
            for old in verdicts.take(pa.array(rows, pa.int64())).to_pylist()
        ]
        stands = np.ones(verdicts.num_rows, bool)
        stands[rows] = False
        standing = verdicts.filter(pa.array(stands))
        return pa.concat_tables([standing, pa.Table.from_pylist(changed, schema=standing.schema)]).sort_by(
            _ORDER
        )

    def _turns(
        self, verdicts: pa.Table, requests: pa.Table, completions: pa.Table, questions: pa.Table
    ) -> Iterator[_Turn]:
        """Yield the verdicts of choice questions on replies that are asked back."""
        unread = pc.and_(pc.equal(verdicts["status"], "judged"), pc.not_equal(verdicts["parse_status"], "ok"))
        is_choice = pc.and_(unread, pc.equal(verdicts["channel"], "answer"))
        asks = pc.and_(is_choice, pc.is_in(verdicts["arm_id"], value_set=self._arms))
        rows = pc.indices_nonzero(pc.fill_null(asks, False))
        if not len(rows):
            return
        candidates = verdicts.take(rows)
        place = pc.index_in(item_of(candidates), value_set=item_of(requests).combine_chunks())
        reply = pc.index_in(candidates["request_key"], value_set=completions["request_key"].combine_chunks())
        replies = completions.select(["status", "text", "finish_reason"]).take(reply).to_pylist()
        of_rows = requests.take(place).to_pylist()
        texts = {
            row["qa_id"]: {option["key"]: option["text"] for option in row["options"]}
            for row in questions.select(["qa_id", "options"]).to_pylist()
        }
        for row, at, request, first in zip(
            rows.to_pylist(), place.to_pylist(), of_rows, replies, strict=True
        ):
            if first["status"] == "ok":  # no refusal by the host
                form = request["answer_type"], request["option_keys"], request["exclusive"]
                choice = DisplayedChoice.of(*form, texts[request["qa_id"]])
                words = first["text"] or "", first["finish_reason"] or ""
                if (turn := choice.second_turn(request["request_key"], *words)) is not None:
                    yield _Turn(row, at, request, turn, choice)

    def _verdicts(
        self, requests: pa.Table, read: list[tuple[_Turn, tuple[str, ...]]], questions: pa.Table
    ) -> dict[tuple[str, str], dict[str, object]]:
        """The verdicts on answers of second turns, by arm and question."""
        of_rows = requests.take(pa.array([second.place for second, _ in read], pa.int64()))
        replies = [
            {"request_key": second.request["request_key"], "status": "ok", "finish_reason": "stop"}
            | {"text": f"ANSWER: {', '.join(answer)}"}
            for second, answer in read
        ]
        of_read = questions.filter(pc.is_in(questions["qa_id"], value_set=pc.unique(of_rows["qa_id"])))
        rows = judge(of_rows, tables.from_rows(replies, COMPLETIONS), of_read, self._protocol).to_pylist()
        return {(row["arm_id"], row["qa_id"]): row for row in rows}

    @property
    def seen(self) -> pa.Table:
        """The second turns that were answered, as rows of the transcripts of a run."""
        return tables.from_rows(list(self._seen.values()), SEEN)

    @property
    def counts(self) -> Counter[str]:
        """The second turns by how they ended."""
        return Counter(self._ends.values())

    @property
    def n_completions(self) -> int:
        """Number of completions of second turns."""
        return len(of_keys(self._completions, pa.array(list(self._ends), pa.string())))


def _second(verdict: dict[str, object] | None) -> dict[str, object]:
    """What a second turn changes of a verdict: `verdict` is that on its answer, None without one."""
    if verdict is None:
        return {"parse_status": NO_ANSWER, "rule": ASKED_BACK}
    parse_status = ASKED_BACK if verdict["parse_status"] == "ok" else verdict["parse_status"]
    return verdict | {"parse_status": parse_status, "rule": ASKED_BACK}


def _answer(choice: DisplayedChoice, completion: Mapping[str, str]) -> tuple[str, ...] | None:
    if completion["status"] != "ok":
        return None
    return choice.answer((completion["text"] or "").strip(), completion["finish_reason"] or "")
