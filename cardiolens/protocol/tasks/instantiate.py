"""Questions from findings: the subtasks asked of a study, and their `qa-1` records."""

from collections.abc import Collection, Mapping
from typing import Any

from cardiolens.protocol.tasks.catalogue import OPEN, Catalogue, Subtask
from cardiolens.protocol.tasks.questions import options_of, record_of

Findings = Mapping[str, tuple[str, ...]]
Reports = Mapping[str, Mapping[str, Any]]  # sequence -> {fields, findings, impression}


def answer(subtask: Subtask, findings: Findings) -> tuple[str, ...]:
    """Return the correct option keys for the findings, in catalogue order; empty if the finding is void.

    An option `none` is right where the truth knows the finding and there is nothing of it.
    """
    values = findings.get(subtask.finding)
    if subtask.answer_type in OPEN:
        return values or ()
    return tuple(
        option.key
        for option in subtask.options
        if (option.none and values == ()) or set(values or ()) & set(option.values)
    )


def answerable_subtasks(
    catalogue: Catalogue, findings: Findings, sequences: Collection[str]
) -> tuple[Subtask, ...]:
    """Return the subtasks asked of a study with these findings and sequences, in catalogue order.

    A conditional subtask is asked if the true answer of its parent is one of `parent_answers` and the
    subtask itself has an answer: if only the apical cap is abnormal, no question about walls is asked.
    """
    return tuple(
        subtask
        for subtask in catalogue.subtasks.values()
        if _is_asked(subtask, catalogue, findings, sequences)
    )


def _is_asked(subtask: Subtask, catalogue: Catalogue, findings: Findings, sequences: Collection[str]) -> bool:
    if subtask.sequence != "multi" and subtask.sequence not in sequences:
        return False
    if subtask.answer_type == "report":
        return True
    if subtask.parent and not set(answer(catalogue[subtask.parent], findings)) & set(subtask.parent_answers):
        return False
    return bool(answer(subtask, findings))


def records(
    study_id: str,
    catalogue: Catalogue,
    findings: Findings,
    *,
    sequences: Collection[str],
    reports: Reports,
) -> list[dict[str, Any]]:
    """Return the `qa-1` records of one phantom study; its patient_id is its study_id.

    Reports without a text have no record.
    """
    return [
        record_of(
            subtask,
            catalogue,
            study_id,
            **_body(subtask, findings, reports),
            parent=subtask.parent,
            origin="phantom",
            evidence=[],
            verification={"status": "verified", "stage": 7, "kappa_batch": None},
        )
        for subtask in answerable_subtasks(catalogue, findings, sequences)
        if subtask.answer_type != "report" or subtask.sequence in reports
    ]


def _body(subtask: Subtask, findings: Findings, reports: Reports) -> dict[str, Any]:
    if subtask.answer_type == "report":
        return {"reference": reports[subtask.sequence]}
    right = list(answer(subtask, findings))
    return {"options": options_of(subtask), "exclusive": list(subtask.exclusive), "answer": right}
