"""Errors that a judge named in the reports of a run: by arm, and agreement with itself, rules and people."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.judges import lines_of
from cardiolens.curation.report_judge.report_errors import (
    OTHER_FINDING,
    TYPES,
    WEIGHTS,
    Errors,
    JudgedReport,
    ReportError,
    ReportPair,
    fault_of,
)
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.report_text.entities import ReportForm
from cardiolens.score.statistics.hypothesis_tests import kendall
from cardiolens.score.verdicts.case_verdict import CaseReply, case_of
from cardiolens.score.verdicts.report_verdict import texts
from cardiolens.show.notebook.run import FinishedRun
from cardiolens.storage.places import Run

SCHEMA = "report-errors-1"
Place = tuple[str, str]  # arm_id, qa_id
ErrorNames = frozenset[tuple[str, str]]  # finding and type of errors


@dataclass(frozen=True, slots=True)
class RunReport:
    """One judged report of a run: its place, its texts, and F1 of its entities by the rules."""

    place: Place
    pair: ReportPair
    entity_f1: float  # NaN where neither text has an entity


def run_reports(run: Run, catalogue: Catalogue) -> list[RunReport]:
    """The judged reports of a run that have a text, with their references."""
    finished = FinishedRun(run.root, run.given_store)
    is_report = pc.and_(
        pc.equal(finished.verdicts["channel"], "text"), pc.equal(finished.verdicts["status"], "judged")
    )
    rows = finished.verdicts.filter(is_report)
    questions = finished.questions.filter(pc.is_in(finished.questions["qa_id"], pc.unique(rows["qa_id"])))
    cases = {row["qa_id"]: case_of(row, catalogue.protocol) for row in questions.to_pylist()}
    is_judged = pc.is_in(finished.completions["request_key"], pc.unique(rows["request_key"]))
    replies = {row["request_key"]: row for row in finished.completions.filter(is_judged).to_pylist()}
    reports = []
    for row in rows.to_pylist():
        reply, case = replies.get(row["request_key"]), cases.get(row["qa_id"])
        if reply is None or case is None:
            continue
        refused, is_truncated = reply["status"] == "refused", reply["finish_reason"] == "length"
        reference, text = texts(case, CaseReply(reply["text"] or "", refused, is_truncated, ()))
        if text:
            fields = tuple(ReportForm.of(catalogue, row["subtask"]).fields)
            pair = ReportPair(reference, text, fields)
            reports.append(RunReport((row["arm_id"], row["qa_id"]), pair, _entity_f1(dict(row["counts"]))))
    return reports


def document(
    model: str,
    reports: Sequence[RunReport],
    judgements: Sequence[JudgedReport | None],
    by_people: Mapping[Place, Errors] | None = None,
) -> dict[str, Any]:
    """The errors of all reports, their counts by arm, and how far the judge agrees with others."""
    usable = [
        (report, judgement)
        for report, judgement in zip(reports, judgements, strict=True)
        if judgement is not None
    ]
    by_arm: dict[str, list[JudgedReport]] = {}
    for report, judgement in usable:
        by_arm.setdefault(report.place[0], []).append(judgement)
    return {
        "schema": SCHEMA,
        "model": model,
        "reports": len(reports),
        "unusable": len(reports) - len(usable),
        "between_orders": _between_orders([judgement for _, judgement in usable]),
        "with_entities": _with_entities(usable),
        "with_people": None if by_people is None else _with_people(usable, by_people),
        "arms": {arm: _counts(judgement) for arm, judgement in by_arm.items()},
        "errors": [
            {
                "arm_id": report.place[0],
                "qa_id": report.place[1],
                "errors": [error._asdict() for error in judgement.errors],
                "unsure": [error._asdict() for error in judgement.unsure],
            }
            for report, judgement in usable
        ],
    }


def read_people(path: Path, reports: Sequence[RunReport]) -> dict[Place, Errors]:
    """Read the errors that people found: a line `{"arm_id", "qa_id", "errors": [...]}` for each report.

    InputError names the line, what is wrong with it, and what is legal.
    """
    findings = {report.place: (*report.pair.findings, OTHER_FINDING) for report in reports}
    by_place: dict[Place, Errors] = {}
    for where, entry in lines_of(path, "people"):
        place = str(entry.get("arm_id")), str(entry.get("qa_id"))
        if place not in findings:
            raise InputError(
                f"{where}: arm_id {place[0]!r} with qa_id {place[1]!r} is no report of this run that has a "
                "text; take both from the run's verdicts, or leave the line out"
            )
        if place in by_place:
            raise InputError(f"{where}: is the second line on this report; join the two")
        errors = entry.get("errors")
        if not isinstance(errors, list):
            raise InputError(f"{where}: errors is {errors!r}; expected a list, empty if there is none")
        for error in errors:
            if fault := fault_of(error, findings[place]):
                raise InputError(f"{where}: {fault}")
        by_place[place] = tuple(ReportError(**error) for error in errors)
    return by_place


def _names(errors: Iterable[ReportError]) -> ErrorNames:
    return frozenset(error[:2] for error in errors)


def _between_orders(judgements: Sequence[JudgedReport]) -> dict[str, float | int | None]:
    """F1 of the errors of one order against the other, the share of shared weights, and of equal reports."""
    shared = sum(len(judgement.errors) for judgement in judgements)
    alone = sum(len(judgement.unsure) for judgement in judgements)
    return {
        "reports": len(judgements),
        "f1": _ratio(2 * shared, 2 * shared + alone),
        "same_weight": _ratio(sum(judgement.same_weights for judgement in judgements), shared),
        "equal": _ratio(sum(not judgement.unsure for judgement in judgements), len(judgements)),
    }


def _with_entities(usable: Sequence[tuple[RunReport, JudgedReport]]) -> dict[str, float | int | None]:
    """Kendall's tau-b of the number of errors of a report with F1 of its entities; -1 agrees best."""
    rows = [
        (len(judgement.errors), report.entity_f1)
        for report, judgement in usable
        if not np.isnan(report.entity_f1)
    ]
    tau = float("nan")
    if len(rows) > 1:
        errors, f1 = np.asarray(rows, float).T
        tau, _ = kendall(errors, f1)
    return {"reports": len(rows), "tau_b": None if np.isnan(tau) else tau}


def _with_people(
    usable: Sequence[tuple[RunReport, JudgedReport]], by_people: Mapping[Place, Errors]
) -> dict[str, float | int | None]:
    """Precision and recall of the judge's errors against those of people, and the share of equal reports."""
    pairs = [
        (_names(judgement.errors), _names(by_people[report.place]))
        for report, judgement in usable
        if report.place in by_people
    ]
    both = sum(len(judge & people) for judge, people in pairs)
    return {
        "reports": len(pairs),
        "precision": _ratio(both, sum(len(judge) for judge, _ in pairs)),
        "recall": _ratio(both, sum(len(people) for _, people in pairs)),
        "equal": _ratio(sum(judge == people for judge, people in pairs), len(pairs)),
    }


def _counts(judgements: Sequence[JudgedReport]) -> dict[str, Any]:
    errors = [error for judgement in judgements for error in judgement.errors]
    types, weights = Counter(error.type for error in errors), Counter(error.weight for error in errors)
    return {
        "reports": len(judgements),
        "errors_per_report": len(errors) / len(judgements),
        "without_major": sum(
            all(error.weight != "major" for error in judgement.errors) for judgement in judgements
        ),
        "by_type": {name: types[name] for name in TYPES},
        "by_weight": {name: weights[name] for name in WEIGHTS},
        "unsure": sum(len(judgement.unsure) for judgement in judgements),
    }


def _ratio(part: float, total: float) -> float | None:
    return part / total if total else None


def _entity_f1(counts: Mapping[str, float]) -> float:
    total = 2 * counts["tp"] + counts["fp"] + counts["fn"]
    return 2 * counts["tp"] / total if total else float("nan")
