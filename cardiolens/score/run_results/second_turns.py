"""Second turns of a model: what it answered when a reply that could not be read was quoted to it."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.protocol.dialogue.asking_back import DisplayedChoice, SecondTurn
from cardiolens.score.run_results.reply_scores import item_of
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.score.verdicts.verdicts import judge
from cardiolens.storage import tables
from cardiolens.storage.schemas import ASKED_BACK, COMPLETIONS, NO_ANSWER, SEEN

_COLUMNS = ("request_key", "status", "text", "finish_reason", "written_at")


@dataclass(frozen=True, slots=True)
class _Block:
    """Verdicts of one block that wait for second turns, with their requests and questions, row by row."""

    verdicts: pa.Table
    requests: pa.Table
    questions: pa.Table
    turns: list[tuple[SecondTurn, DisplayedChoice]]


class SecondTurns:
    """Holds back the verdicts on replies that are asked back, until all first replies are judged."""

    def __init__(self, arms: Collection[str], completions: Path, protocol: str) -> None:
        self._arms = pa.array(sorted(arms), pa.string())
        self._completions = completions
        self._protocol = protocol
        self._blocks: list[_Block] = []
        self._seen: dict[str, dict[str, object]] = {}  # rows of SEEN by key of the second turn
        self.counts: Counter[str] = Counter()

    def hold(
        self, verdicts: pa.Table, requests: pa.Table, completions: pa.Table, questions: pa.Table
    ) -> pa.Table:
        """Return the verdicts that stand, and hold the others; `completions` has one row per key."""
        unread = pc.and_(pc.equal(verdicts["status"], "judged"), pc.not_equal(verdicts["parse_status"], "ok"))
        is_choice = pc.and_(unread, pc.equal(verdicts["channel"], "answer"))
        asks = pc.and_(is_choice, pc.is_in(verdicts["arm_id"], value_set=self._arms))
        rows = pc.indices_nonzero(pc.fill_null(asks, False)).to_pylist()
        if not rows:
            return verdicts
        candidates = verdicts.take(rows)
        of_rows = requests.take(
            pc.index_in(item_of(candidates), value_set=item_of(requests).combine_chunks())
        )
        reply = pc.index_in(candidates["request_key"], value_set=completions["request_key"].combine_chunks())
        replies = completions.select(["status", "text", "finish_reason"]).take(reply)
        texts = {
            row["qa_id"]: {option["key"]: option["text"] for option in row["options"]}
            for row in questions.select(["qa_id", "options"]).to_pylist()
        }
        turns: dict[int, tuple[SecondTurn, DisplayedChoice]] = {}
        for number, (request, completion) in enumerate(
            zip(of_rows.to_pylist(), replies.to_pylist(), strict=True)
        ):
            if completion["status"] != "ok":  # a refusal by the host
                continue
            form = request["answer_type"], request["option_keys"], request["exclusive"]
            choice = DisplayedChoice.of(*form, texts[request["qa_id"]])
            words = completion["text"] or "", completion["finish_reason"] or ""
            if (turn := choice.second_turn(request["request_key"], *words)) is not None:
                turns[number] = turn, choice
        places = np.array(list(turns), np.int64)
        of_block = questions.filter(pc.is_in(questions["qa_id"], value_set=pc.unique(candidates["qa_id"])))
        self._blocks.append(
            _Block(candidates.take(places), of_rows.take(places), of_block, list(turns.values()))
        )
        stands = np.ones(verdicts.num_rows, bool)
        stands[np.array(rows)[places]] = False
        return verdicts.filter(pa.array(stands))

    def judged(self) -> Iterator[pa.Table]:
        """Yield the verdicts that were held back, and count the second turns."""
        if not self._blocks:
            return
        keys = {turn.request_key for block in self._blocks for turn, _ in block.turns}
        of_keys = partial(_with_keys, keys=pa.array(sorted(keys), pa.string()))
        rows = tables.from_parts(self._completions, COMPLETIONS, _COLUMNS, of_keys)
        replies = {row["request_key"]: row for row in finals(rows).to_pylist()}
        self.counts["rows"] = rows.num_rows
        ends: dict[str, str] = {}  # how each second turn ended
        for block in self._blocks:
            answers = [_answer(choice, replies.get(turn.request_key)) for turn, choice in block.turns]
            for (turn, _), answer in zip(block.turns, answers, strict=True):
                ends[turn.request_key] = "unread" if answer is None else "answered" if answer else "none"
            self._note(block, replies)
            yield self._of_block(block, answers)
        self.counts.update(ends[key] if key in replies else "open" for key in keys)

    @property
    def seen(self) -> pa.Table:
        """The second turns that were answered, as rows of the transcripts of a run."""
        return tables.from_rows(list(self._seen.values()), SEEN)

    def _note(self, block: _Block, replies: Mapping[str, Mapping[str, str]]) -> None:
        for request, (turn, _) in zip(block.requests.to_pylist(), block.turns, strict=True):
            if turn.request_key in replies:
                self._seen[turn.request_key] = {
                    "request_key": request["request_key"],
                    "stage": request["stage"] + 1,
                    "step_key": turn.request_key,
                    "prompt": turn.ending,
                    "reply": replies[turn.request_key]["text"],
                    "status": ASKED_BACK,
                }

    def _of_block(self, block: _Block, answers: list[tuple[str, ...] | None]) -> pa.Table:
        """The verdicts of one block, in the order in which they were held."""
        answered = [number for number, answer in enumerate(answers) if answer]
        requests = block.requests.take(np.array(answered, np.int64))
        texts = [f"ANSWER: {', '.join(answers[number] or ())}" for number in answered]
        replies = [
            {"request_key": key, "status": "ok", "text": text, "finish_reason": "stop"}
            for key, text in zip(requests["request_key"].to_pylist(), texts, strict=True)
        ]
        verdicts = judge(
            requests, tables.from_rows(replies, COMPLETIONS), block.questions, self._protocol
        ).to_pylist()
        by_item = {(row["arm_id"], row["qa_id"]): row for row in verdicts}
        rows = [
            row if answer is None else row | _second(by_item.get((row["arm_id"], row["qa_id"])))
            for row, answer in zip(block.verdicts.to_pylist(), answers, strict=True)
        ]
        return pa.Table.from_pylist(rows, schema=block.verdicts.schema)


def _second(verdict: dict[str, object] | None) -> dict[str, object]:
    """What a second turn changes of a verdict: `verdict` is that on its answer, None without one."""
    if verdict is None:
        return {"parse_status": NO_ANSWER, "rule": ASKED_BACK}
    parse_status = ASKED_BACK if verdict["parse_status"] == "ok" else verdict["parse_status"]
    return verdict | {"parse_status": parse_status, "rule": ASKED_BACK}


def _answer(choice: DisplayedChoice, completion: dict[str, str] | None) -> tuple[str, ...] | None:
    if completion is None or completion["status"] != "ok":
        return None
    return choice.answer((completion["text"] or "").strip(), completion["finish_reason"] or "")


def _with_keys(parts: Iterator[pa.Table], keys: pa.Array) -> pa.Table:
    rows = [part.filter(pc.is_in(part["request_key"], value_set=keys)) for part in parts]
    return tables.concat(rows, pa.schema([COMPLETIONS.field(name) for name in _COLUMNS]))
