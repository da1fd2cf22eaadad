"""Counts of a run for the terminal and an HTML page, without any report's text, name or number."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cardiolens.curation.questions.draft_reasons import meaning_of
from cardiolens.protocol.tasks.catalogue import Catalogue

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;"
    "background:#fff}table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #ccc;"
    "padding:.25rem .6rem;text-align:left}td.n{text-align:right}"
)
_END = "</body></html>\n"
Rows = Sequence[Sequence[object]]


def reasons(rejects: Sequence[Mapping[str, Any]]) -> Rows:
    """Count the rejects by stage and reason, the most frequent first."""
    counted = Counter((int(reject["stage"]), str(reject["reason"])) for reject in rejects)
    return [(stage, code, number, meaning_of(code)) for (stage, code), number in counted.most_common()]


def by_subtask(
    lines: Sequence[Mapping[str, Any]], rejects: Sequence[Mapping[str, Any]], catalogue: Catalogue
) -> Rows:
    """Count the questions of each subtask by review queue, and those left out."""
    queued = Counter((line["subtask"], line["verification"]["queue"]) for line in lines)
    n_rejected = Counter(
        reject["subtask"] for reject in rejects if reject.get("subtask") and reject["stage"] >= 3
    )
    names = [name for name, subtask in catalogue.subtasks.items() if subtask.answer_type != "report"]
    return [
        (name, catalogue[name].question, queued[name, "sampling"], queued[name, "full"], n_rejected[name])
        for name in names
    ]


def page(stages: Mapping[str, int], n_made: Mapping[str, int], reason_rows: Rows, subtask_rows: Rows) -> str:
    """Render the counts as an HTML page; every cell is escaped."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta http-equiv='Content-Security-Policy' ",
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>Draft questions</title><style>{_STYLE}</style></head><body>",
        "<h1>Draft questions</h1><p>Drafts: no person has verified them. Research use only.</p>",
        _table(
            "Stages",
            ("stage", "records", "made now"),
            [(name, stages[name], n_made[name]) for name in stages],
        ),
        _table(
            "Questions", ("subtask", "question", "to sampling", "to full review", "left out"), subtask_rows
        ),
        _table("Left out", ("stage", "reason", "number", "meaning"), reason_rows),
        _END,
    ]
    return "".join(parts)


def _table(title: str, heads: Sequence[str], rows: Rows) -> str:
    head = "".join(f"<th scope='col'>{escape(heading)}</th>" for heading in heads)
    lines = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{lines}</table>"


def _cell(value: object) -> str:
    number = " class='n'" if isinstance(value, int) else ""
    return f"<td{number}>{escape(str(value))}</td>"
