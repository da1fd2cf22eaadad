"""Errors that a judge named in the reports of a run: by arm, and agreement with itself and with the rules."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from cardiolens.curation.report_judge.report_errors import TYPES, WEIGHTS, JudgedReport, ReportPair
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.report_text.entities import ReportForm
from cardiolens.score.statistics.hypothesis_tests import kendall
from cardiolens.score.verdicts.case_verdict import CaseReply, case_of
from cardiolens.score.verdicts.report_verdict import texts
from cardiolens.show.notebook.run import FinishedRun
from cardiolens.storage.places import Run

SCHEMA = "report-errors-1"
Place = tuple[str, str]  # arm_id, qa_id


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
    model: str, reports: Sequence[RunReport], judgements: Sequence[JudgedReport | None]
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
