"""Rationales and intermediate steps of a model's replies to cases, for a submission."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from cardiolens.benchmarks.medthinkvqa import CaseResponse
from cardiolens.protocol.dialogue.chain import SAMPLED, Steps
from cardiolens.protocol.dialogue.chain_tables import read_chains, walk
from cardiolens.storage import tables
from cardiolens.storage.schemas import COMPLETIONS, REQUESTS

_HEADING = re.compile(r"^[ \t>*#-]*image[ \t]+#?(\d+)[ \t*]*[:.)–-][ \t*]*", re.IGNORECASE | re.MULTILINE)
_BARE_LETTER = re.compile(r"\W*(?:(?:final )?answer(?: is)?\b)?\W*[A-E]\W*", re.IGNORECASE)


def responses_by_case(requests: Path, completions: Path, arm_id: str) -> dict[str, CaseResponse]:
    """Return the responses of one arm by study; a case without a reply has no entry.

    The steps come from chains whose first two replies describe the images and summarise them.
    """
    request_rows = tables.read(requests, REQUESTS, ("arm_id", "study_id", "frames", "request_key"))
    rows = request_rows.filter(pc.equal(request_rows["arm_id"], arm_id)).to_pylist()
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
        row["study_id"]: _response(
            row["frames"], replies[row["request_key"]], before.get(row["request_key"], [])
        )
        for row in rows
        if row["request_key"] in replies
    }


def _response(
    frames: Sequence[Mapping[str, Any]], reply: Mapping[str, Any], stages: Sequence[str]
) -> CaseResponse:
    words = "" if reply["finish_reason"] == SAMPLED else explanation_of(reply["text"] or "")
    if len(stages) != 3:  # images, summary, answer
        return CaseResponse(words)
    descriptions = by_image(stages[0], len(frames))
    slots = [frame["idx"] + 1 for frame in frames]
    return CaseResponse(
        words, None if descriptions is None else dict(zip(slots, descriptions, strict=True)), stages[1]
    )


def by_image(text: str, n_images: int) -> list[str] | None:
    """Split a text at its `Image 1:` headings into one description per image; None if they do not match.

    Lines without a heading belong to the image before. A single image needs no heading.
    """
    headings = list(_HEADING.finditer(text))
    if n_images == 1 and not headings:
        return [text.strip()] if text.strip() else None
    if [int(heading[1]) for heading in headings] != list(range(1, n_images + 1)):
        return None
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    return [text[heading.end() : end].strip() for heading, end in zip(headings, ends, strict=True)]


def explanation_of(text: str) -> str:
    """Return the explanation in a reply: of JSON its `explanation`, of a bare letter the empty string."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and "answer" in parsed:
        return str(parsed.get("explanation") or "")
    return "" if _BARE_LETTER.fullmatch(text) else text.strip()
