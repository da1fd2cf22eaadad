"""Removal of report texts from a page that may leave the machine, also where a reply repeats them."""

import json
from collections.abc import Mapping
from typing import Any

WITHHELD = "(withheld: it repeats the report; page.include_images=true shows it)"


def public_reference(reference: str | None) -> str | None:
    """The reference of a question with only its fields."""
    return reference and json.dumps({"fields": json.loads(reference)["fields"]})


def public_evidence(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `evidence` without quotes; of the verification only status and verdict."""
    verification = json.loads(row["verification"])
    outcome = {name: verification[name] for name in ("status", "verdict") if name in verification}
    return {**row, "quotes": [], "verification": json.dumps(outcome)}


def public_reply(text: str | None, reference: str | None) -> str | None:
    """A reply, unless it repeats the findings or impression of its question's report."""
    if not reference or not text:
        return text
    report = json.loads(reference)
    passages = [report["findings"], report["impression"]]  # plain or escaped as in JSON
    repeats = any(form in text for passage in passages for form in (passage, json.dumps(passage)[1:-1]))
    return WITHHELD if repeats else text
