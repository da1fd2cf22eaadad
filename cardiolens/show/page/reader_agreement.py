"""Agreement between human readers, from the export of their review."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.show.page.elements import Column, Table
from cardiolens.show.page.page_data import Facts

CEILING = "ceiling.jsonl"  # in the folder of a review, whose `readings/` has the files of people
_ROW = "human-agreement-1"
_COLUMNS = (
    *(Column("subtask", "subtask"), Column("readers", "people")),
    *(Column("n_pairs", "pairs of answers", "count"), Column("n_patients", "patients", "count")),
    *(Column("same", "same answer, percent", "score"), Column("same_low", "95 % from", "score")),
    *(Column("same_high", "to", "score"), Column("kappa", "kappa", "number")),
    *(Column("kappa_low", "95 % from", "number"), Column("kappa_high", "to", "number")),
    *(Column("ac1", "AC1", "number"), Column("ac1_low", "95 % from", "number")),
    Column("ac1_high", "to", "number"),
)


def ceiling(facts: Facts) -> tuple[Table, ...]:
    """How far people agree: a table for a run with people whose review was exported, else none.

    It is what a model can be expected to reach at most where the measure is the same exact answer.
    """
    sources = {
        Path(model.source) for spec in facts.specs for model in spec.model if model.answers_from == "readings"
    }
    files = sorted({source.parent.parent / CEILING for source in sources})
    records = [_record(line) for file in files for line in _lines(file)]
    title = "Agreement between people who read (ceiling)"
    return (Table.of("ceiling", title, _COLUMNS, records),) if records else ()


def _lines(file: Path) -> Iterator[Mapping[str, Any]]:
    """Agreement rows of a file; none if it is missing or no export of a review."""
    try:
        rows = [parse_json(line) for line in read_text(file).splitlines()]
    except (OSError, ValueError):
        return
    yield from (line for line in rows if isinstance(line, dict) and line.get("schema") == _ROW)


def _record(line: Mapping[str, Any]) -> dict[str, object]:
    record: dict[str, object] = {name: line.get(name) for name in ("subtask", "n_pairs", "n_patients")}
    record["readers"] = ", ".join(map(str, line.get("readers") or ()))
    for name, scale in (("same", 100), ("kappa", 1), ("ac1", 1)):
        value = line.get(name)
        interval = value if isinstance(value, dict) else {}
        for part, field in (("value", name), ("low", f"{name}_low"), ("high", f"{name}_high")):
            number = interval.get(part)
            record[field] = number * scale if isinstance(number, int | float) else None
    return record
