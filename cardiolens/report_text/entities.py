"""Clinical entities of structured report fields, and the counts that compare two sets (protocol 3.3)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask

Entity = tuple[str, str]  # report field, option text


@dataclass(frozen=True, slots=True)
class ReportForm:
    """The fields of one sequence's report, with their options."""

    fields: Mapping[str, Subtask]  # by field name

    @staticmethod
    def of(catalogue: Catalogue, subtask: str) -> "ReportForm":
        """Return the form of a report subtask."""
        filled = catalogue.report_fields(catalogue[subtask])
        return ReportForm({entry.field: entry for entry in filled})

    def entities(self, values: Mapping[str, object]) -> frozenset[Entity]:
        """Return one entity per value; an empty list or a word for none is the normal value.

        Unassessable fields, missing keys and unknown keys give no entity, so `{}` states nothing. A value
        outside the options is an entity that is in no gold set.
        """
        return frozenset(
            (field, value)
            for field in self.fields
            if field in values
            for value in self._said(field, values[field])
        )

    def abnormal(self, entities: frozenset[Entity]) -> frozenset[Entity]:
        """Return the entities with a value that is not normal in their field."""
        return frozenset((field, value) for field, value in entities if value not in self._normal(field))

    def polarity(self, entities: frozenset[Entity], field: str) -> bool | None:
        """Return whether a gate field is abnormal; None if no entity has it."""
        values = {value for name, value in entities if name == field}
        return bool(values - self._normal(field)) if values else None

    @property
    def gates(self) -> list[str]:
        """Return the fields that decide whether others apply, i.e. parents of other fields."""
        parents = {subtask.parent for subtask in self.fields.values()}
        return [field for field, subtask in self.fields.items() if subtask.id in parents]

    def _said(self, field: str, given: object) -> Iterable[str]:
        if _is_absent(given):
            return self._normal(field)
        wordings = {_folded(option.text): option.text for option in self.fields[field].options}
        texts = [value for value in _values(given) if _folded(value) not in _ABSENT | _SILENT]
        return [wordings.get(_folded(value), value) for value in texts]

    def _normal(self, field: str) -> frozenset[str]:
        return frozenset(option.text for option in self.fields[field].options if option.normal)


def report_forms(catalogue: Catalogue) -> dict[str, Mapping[str, Subtask]]:
    """Return the fields of every report subtask of a protocol."""
    reports = [entry.id for entry in catalogue.subtasks.values() if entry.answer_type == "report"]
    return {subtask: ReportForm.of(catalogue, subtask).fields for subtask in reports}


def entity_counts(
    form: ReportForm, gold: frozenset[Entity], predicted: frozenset[Entity]
) -> dict[str, float]:
    """Count what precision, recall, F1, their abnormal-only variants and contradiction sum up."""
    ill, called = form.abnormal(gold), form.abnormal(predicted)
    truth = {gate: form.polarity(gold, gate) for gate in form.gates}
    against = [
        form.polarity(predicted, gate) == (not value) for gate, value in truth.items() if value is not None
    ]
    return {
        "tp": len(gold & predicted),
        "fp": len(predicted - gold),
        "fn": len(gold - predicted),
        "abnormal_tp": len(ill & called),
        "abnormal_fp": len(called - ill),
        "abnormal_fn": len(ill - called),
        "gates": len(against),
        "contradicted": sum(against),
    }


def fields_equal(form: ReportForm, gold: frozenset[Entity], predicted: frozenset[Entity]) -> int:
    """Count the fields with exactly the gold values."""
    return sum(_of_field(gold, field) == _of_field(predicted, field) for field in form.fields)


_ABSENT = frozenset({"", "none", "absent"})
_SILENT = frozenset({"not assessable", "n/a"})


def _of_field(entities: frozenset[Entity], field: str) -> set[str]:
    return {value for name, value in entities if name == field}


def _is_absent(value: object) -> bool:
    """Return whether a field holds null, an empty list or nothing but words for none."""
    entries = value if isinstance(value, list) else [value]
    return all(entry is None or (isinstance(entry, str) and _folded(entry) in _ABSENT) for entry in entries)


def _values(value: object) -> list[str]:
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, str)]


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".")
