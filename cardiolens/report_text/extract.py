"""Clinical entities of report text: its findings, reduced per field (protocol 3.2)."""

from collections.abc import Iterable, Iterator

from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.report_text.entities import Entity
from cardiolens.report_text.findings import Finding, asserted, findings


def extract(text: str, sequence: str, catalogue: Catalogue) -> frozenset[Entity]:
    """Return the entities of a report's findings and impression, for one sequence's fields."""
    statements = list(asserted(findings(text, catalogue.lexicons[sequence])))
    fields = [subtask for subtask in catalogue.subtasks.values() if subtask.sequence == sequence]
    return frozenset(
        (subtask.field, value)
        for subtask in fields
        for value in _settled(
            [statement for statement in statements if statement.field == subtask.field], subtask
        )
    )


def _settled(statements: list[Finding], subtask: Subtask) -> Iterator[str]:
    """Reduce a field's values: the worst of a scale, the first of a single choice, else the abnormal ones."""
    texts = [option.text for option in subtask.options]
    ordinal = subtask.answer_type == "ordinal"
    values = (
        _plain(statements)
        if ordinal
        else list(dict.fromkeys(statement.value for statement in statements if statement.value))
    )
    normal = {option.text for option in subtask.options if option.normal}
    abnormal = [value for value in values if value not in normal] or values
    if ordinal and abnormal:
        yield max(abnormal, key=texts.index)
    elif subtask.answer_type == "single":
        yield from abnormal[:1]
    else:
        yield from abnormal


def _plain(statements: Iterable[Finding]) -> list[str]:
    """Return the values of words, which interpret the numbers beside them; without words, of numbers."""
    words = [statement.value for statement in statements if statement.value and not statement.measured]
    return words or [statement.value for statement in statements if statement.value]
