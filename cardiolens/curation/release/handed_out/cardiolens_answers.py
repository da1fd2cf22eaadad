"""Score replies to choice questions: the options that a reply names, against the right ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from cardiolens.protocol.replies import read_reply


def is_correct(reply: str, row: Mapping[str, Any]) -> bool:
    """Whether a reply names exactly the right options of a row of the table."""
    options = tuple((option["key"], option["text"]) for option in row["options"])
    reading = read_reply(reply, options, several=row["answer_type"] == "multi")
    return set(reading.answers) == set(row["answer"])


def target(doc: Mapping[str, Any]) -> str:
    """Return the right options of a row, e.g. `A, C` (lmms-eval: doc_to_target)."""
    return ", ".join(doc["answer"])


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Return the value of each metric for one reply (lmms-eval: process_results)."""
    return {"accuracy": float(is_correct(results[0], doc))}
