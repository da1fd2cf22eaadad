"""Removal of report texts from a page that may leave the machine, also where a reply repeats them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.page.case_viewer.cases import Sources, with_column

WITHHELD = "(withheld: it repeats the report; page.include_images=true shows it)"


def without_reports(sources: Sources) -> Sources:
    """Sources whose references hold only their fields, and without replies that repeat a reference's text."""
    rows = sources.questions.select(["qa_id", "reference"]).to_pylist()
    written = {row["qa_id"]: json.loads(row["reference"]) for row in rows if row["reference"]}
    hidden = np.zeros(sources.replies.num_rows, bool)
    hidden[list(_repeating(sources, written))] = True
    text = pc.if_else(pa.array(hidden), pa.scalar(WITHHELD), sources.replies["text"])
    fields = [_fields(written.get(row["qa_id"])) for row in rows]
    return replace(
        sources,
        questions=with_column(sources.questions, "reference", pa.array(fields, pa.string())),
        replies=with_column(sources.replies, "text", text),
    )


def _fields(reference: Mapping[str, Any] | None) -> str | None:
    return None if reference is None else json.dumps({"fields": reference["fields"]})


def _repeating(sources: Sources, written: Mapping[str, Mapping[str, Any]]) -> Iterator[int]:
    """Yield rows of `replies` that answer a report question with the report's findings or impression."""
    requests = sources.requests.select(["qa_id", "reply"])
    of_reports = pc.is_in(requests["qa_id"], value_set=pa.array(list(written), pa.string()))
    requests = requests.filter(pc.and_(of_reports, pc.is_valid(requests["reply"])))
    texts = sources.replies["text"].take(requests["reply"]).to_pylist()
    for row, text in zip(requests.to_pylist(), texts, strict=True):
        if _repeats(text or "", written[row["qa_id"]]):
            yield row["reply"]


def _repeats(text: str, reference: Mapping[str, Any]) -> bool:
    """Return whether a text contains a report's findings or impression, plain or escaped as in JSON."""
    passages = [reference["findings"], reference["impression"]]
    return any(form in text for passage in passages for form in (passage, json.dumps(passage)[1:-1]))
