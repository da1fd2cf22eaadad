"""Questions as lmms-eval asks them: the system message, the frames, each below its caption, the question.

This file needs nothing but Python.
"""

from collections.abc import Mapping
from typing import Any

PLACE = "<image>"  # stands in the prompt where a frame belongs


def visuals(doc: Mapping[str, Any]) -> list[Any]:
    """Return the frames of a row in order (doc_to_visual)."""
    return [frame.convert("RGB") for frame in doc["frames"]]


def text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: object = None) -> str:
    """Return the words, with `<image>` in the place of each frame (doc_to_text)."""
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
    told = [{"type": "text", "text": doc["system"]}]
    return [{"role": "system", "content": told}, {"role": "user", "content": content}]
