"""Removal of report texts from a page that may leave the machine, also where a reply repeats them."""

import json
from collections.abc import Mapping
from typing import Any

WITHHELD = "(withheld: it repeats the report; page.include_images=true shows it)"


def public_question(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `questions` with only the fields in its reference."""
    reference = row["reference"] and json.dumps({"fields": json.loads(row["reference"])["fields"]})
    return {**row, "reference": reference}


def public_evidence(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `evidence` without quotes; of the verification only status and verdict."""
    verification = json.loads(row["verification"])
    outcome = {name: verification[name] for name in ("status", "verdict") if name in verification}
    return {**row, "quotes": [], "verification": json.dumps(outcome)}


def public_reply(text: str | None, question: Mapping[str, Any]) -> str | None:
    """A reply, unless it repeats the findings or impression of its question's report."""
    if not question["reference"] or not text:
        return text
    return WITHHELD if _repeats(text, json.loads(question["reference"])) else text


def _repeats(text: str, reference: Mapping[str, Any]) -> bool:
    """Return whether a text contains a report's findings or impression, plain or escaped as in JSON."""
    passages = [reference["findings"], reference["impression"]]
    return any(form in text for passage in passages for form in (passage, json.dumps(passage)[1:-1]))
