"""Functions of a task of lmms-eval; a task folder holds them in one file with the reader of replies."""

from collections.abc import Mapping, Sequence
from typing import Any

from cardiolens.protocol.replies import read_reply

PLACE = "<image>"  # stands in the prompt where a frame belongs


def visuals(doc: Mapping[str, Any]) -> list[Any]:
    """Return the frames of a row in order (lmms-eval: doc_to_visual)."""
    return [frame.convert("RGB") for frame in doc["frames"]]


def text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: object = None) -> str:
    """Return system message and prompt, with `<image>` in the place of each frame (doc_to_text)."""
    return f"{doc['system']}\n\n{doc['prompt']}"


def messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: object = None) -> list[dict[str, Any]]:
    """Return system and user message with the frames between the words (doc_to_messages)."""
    words = doc["prompt"].split(PLACE)
    frames = visuals(doc)
    if len(words) != len(frames) + 1:
        raise ValueError(f"{doc['qa_id']}: {len(frames)} frames, but {len(words) - 1} places for them")
    content: list[dict[str, Any]] = [{"type": "text", "text": words[0]}]
    for frame, after in zip(frames, words[1:], strict=True):
        content += [{"type": "image", "url": frame}, {"type": "text", "text": after}]
    system = [{"type": "text", "text": doc["system"]}]
    return [{"role": "system", "content": system}, {"role": "user", "content": content}]


def target(doc: Mapping[str, Any]) -> str:
    """Return the right options of a row, e.g. `A, C` (doc_to_target)."""
    return ", ".join(doc["answer"])


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Return the value of each metric for one reply (process_results)."""
    return {"accuracy": float(is_correct(results[0], doc))}


def is_correct(reply: str, row: Mapping[str, Any]) -> bool:
    """Whether a reply names exactly the right options of a row of the table."""
    options = tuple((option["key"], option["text"]) for option in row["options"])
    reading = read_reply(reply, options, several=row["answer_type"] == "multi")
    return set(reading.answers) == set(row["answer"])
