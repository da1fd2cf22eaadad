"""What a model said about cases beside its letters: the rationale and the steps of a submission."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from cardiolens.protocol.dialogue.chain import Steps, read_chains, walk
from cardiolens.protocol.dialogue.samples import SAMPLED
from cardiolens.protocol.medthinkvqa.submission import Said
from cardiolens.storage import tables
from cardiolens.storage.tables import COMPLETIONS, REQUESTS

_HEADING = re.compile(r"^[ \t>*#-]*image[ \t]+#?(\d+)[ \t*]*[:.)–-][ \t*]*", re.IGNORECASE | re.MULTILINE)
_BARE_LETTER = re.compile(r"\W*(?:(?:final )?answer(?: is)?\b)?\W*[A-E]\W*", re.IGNORECASE)


def said_by_case(requests: Path, completions: Path, arm_id: str) -> dict[str, Said]:
    """What one arm said, by study; a case without a reply has no entry.

    Its steps are those of a chain whose first two replies describe images and sum up.
    """
    asked = tables.read(requests, REQUESTS, ("arm_id", "study_id", "frames", "request_key"))
    rows = asked.filter(pc.equal(asked["arm_id"], arm_id)).to_pylist()
    keys = {row["request_key"] for row in rows}
    columns = ("request_key", "text", "finish_reason", "status")
    replies = {
        row["request_key"]: row
        for row in tables.read(completions, COMPLETIONS, columns).to_pylist()
        if row["request_key"] in keys and row["status"] == "ok"
    }
    chains = {key: chain for key, chain in read_chains(requests).items() if key in keys}
    before: dict[str, list[str]] = {}
    for step in walk({key: chain for key, chain in chains.items() if isinstance(chain, Steps)}, completions):
        if step.completion is not None and step.completion["status"] == "ok":
            before.setdefault(step.chain, []).append(str(step.completion["text"] or ""))
    return {
        row["study_id"]: _said(row["frames"], replies[row["request_key"]], before.get(row["request_key"], []))
        for row in rows
        if row["request_key"] in replies
    }


def _said(frames: Sequence[Mapping[str, Any]], reply: Mapping[str, Any], stages: Sequence[str]) -> Said:
    words = "" if reply["finish_reason"] == SAMPLED else beside_letter(reply["text"] or "")
    if len(stages) != 3:  # images, summary, answer
        return Said(words)
    told = by_image(stages[0], len(frames))
    slots = [frame["idx"] + 1 for frame in frames]
    return Said(words, None if told is None else dict(zip(slots, told, strict=True)), stages[1])


def by_image(text: str, n_images: int) -> list[str] | None:
    """A description for each image shown, from lines that begin with `Image 1:`; None if it is not that.

    Lines without a number go on with the image before. A single image needs no number.
    """
    found = list(_HEADING.finditer(text))
    if n_images == 1 and not found:
        return [text.strip()] if text.strip() else None
    if [int(one[1]) for one in found] != list(range(1, n_images + 1)):
        return None
    ends = [*(one.start() for one in found[1:]), len(text)]
    return [text[one.end() : end].strip() for one, end in zip(found, ends, strict=True)]


def beside_letter(text: str) -> str:
    """The words of a reply: its `explanation` where it is JSON, nothing where it is a bare letter."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and "answer" in parsed:
        return str(parsed.get("explanation") or "")
    return "" if _BARE_LETTER.fullmatch(text) else text.strip()
