"""A language model as judge of a run's reports: it names errors against the reference, by finding and weight.

It is asked twice, with the two texts in either order. An error counts where both replies name it; what one
alone names is kept apart. Errors by type with a clinical weight are the idea of GREEN (Ostmeier et al. 2024)
and CRIMSON (Baharoon et al. 2026), which are about radiographs of the chest; the words, the findings and the
weights here are our design, for the heart.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
import yaml

from cardiolens.base.digest import digest_of
from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.asking.ask_texts import ask
from cardiolens.protocol.prompts.question import TextRequest
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.report_text.entities import ReportForm
from cardiolens.score.statistics.hypothesis_tests import kendall
from cardiolens.score.verdicts.case_verdict import CaseReply, case_of
from cardiolens.score.verdicts.report_verdict import texts
from cardiolens.show.notebook.run import FinishedRun
from cardiolens.storage.places import Run

SCHEMA = "report-errors-1"
_WORDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TYPES: Mapping[str, str] = _WORDS["types"]
WEIGHTS: Mapping[str, str] = _WORDS["weights"]
OTHER_FINDING = "other"  # the finding of an error that is of no field of the report
MOST = 24  # errors of one report
ORDERS = ("reference first", "report first")


class ReportError(NamedTuple):
    """One error of a report."""

    finding: str
    type: str
    weight: str


Errors = tuple[ReportError, ...]


@dataclass(frozen=True, slots=True)
class ReportPair:
    """A report and its reference, with the findings that the report's form has."""

    reference: str
    report: str
    findings: tuple[str, ...]

    @property
    def legal(self) -> dict[str, list[str]]:
        """What each entry of an error may hold."""
        return {"finding": [*self.findings, OTHER_FINDING], "type": [*TYPES], "weight": [*WEIGHTS]}


@dataclass(frozen=True, slots=True)
class JudgedReport:
    """The errors that both replies of a judge name, and those that one alone names."""

    errors: Errors  # with the lower weight where the two differ
    unsure: Errors
    same_weights: int  # of `errors`

    @staticmethod
    def of(first: Errors, second: Errors) -> "JudgedReport":
        """Join the replies to both orders."""
        weights = [{error[:2]: error.weight for error in reply} for reply in (first, second)]
        shared = sorted(weights[0].keys() & weights[1].keys())
        alone = sorted(weights[0].keys() ^ weights[1].keys())
        lower = [min(weights[0][name], weights[1][name], key=_heaviness) for name in shared]
        return JudgedReport(
            tuple(ReportError(*name, weight) for name, weight in zip(shared, lower, strict=True)),
            tuple(ReportError(*name, (weights[0] | weights[1])[name]) for name in alone),
            sum(weights[0][name] == weights[1][name] for name in shared),
        )


def _heaviness(weight: str) -> int:
    return list(WEIGHTS).index(weight)


def judge_reports(sweep: SweepSpec, pairs: Sequence[ReportPair]) -> list[JudgedReport | None]:
    """Let the model of a sweep judge reports; None where one of its two replies is none of its kind.

    Equal pairs are asked about once.
    """
    replies = iter(ask(sweep, [request for pair in pairs for request in requests_on(pair)]))
    judgements = []
    for pair in pairs:
        first, second = (errors_of(next(replies), pair) for _ in ORDERS)
        judgements.append(None if first is None or second is None else JudgedReport.of(first, second))
    return judgements


def requests_on(pair: ReportPair) -> list[TextRequest]:
    """The two requests about a report: the reference first, and the report first."""
    fence = fenced({"reference": pair.reference, "report": pair.report})
    number = digest_of([pair.reference, pair.report, pair.findings])[:24]
    schema = json.dumps(_schema(pair.legal))
    requests = []
    for order, step in zip(ORDERS, (1, -1), strict=True):  # the second in reverse order throughout
        first, second = ("reference", "report")[::step]
        prompt = _WORDS["prompt"].format(
            notice=fence.notice,
            first=fence.blocks[first],
            second=fence.blocks[second],
            findings=", ".join(pair.legal["finding"]),
            types=_listed(TYPES, step),
            weights=_listed(WEIGHTS, step),
        )
        requests.append(TextRequest(number, order, _WORDS["system"], prompt, schema))
    return requests


def _listed(meanings: Mapping[str, str], step: int) -> str:
    return "\n".join(f"  {name}: {meaning};" for name, meaning in list(meanings.items())[::step])


def _schema(legal: Mapping[str, Sequence[str]]) -> dict[str, object]:
    error = {
        "type": "object",
        "properties": {name: {"enum": values} for name, values in legal.items()},
        "required": list(legal),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"errors": {"type": "array", "items": error, "maxItems": MOST}},
        "required": ["errors"],
        "additionalProperties": False,
    }


def errors_of(reply: str | None, pair: ReportPair) -> Errors | None:
    """The errors that a reply names, one for each finding and type; None for a reply of another form."""
    try:
        tree = parse_json((reply or "").encode())
    except ValueError:
        return None
    entries = tree.get("errors") if isinstance(tree, dict) and tree.keys() == {"errors"} else None
    if not isinstance(entries, list) or len(entries) > MOST:
        return None
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() != pair.legal.keys():
            return None
        if any(entry[name] not in values for name, values in pair.legal.items()):
            return None
    errors = sorted((ReportError(**entry) for entry in entries), key=lambda error: _heaviness(error.weight))
    return tuple({error[:2]: error for error in errors}.values())  # of two the heavier, which stands last


@dataclass(frozen=True, slots=True)
class RunReport:
    """One judged report of a run: its place, its texts, and F1 of its entities by the rules."""

    arm_id: str
    qa_id: str
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
            pair = ReportPair(reference, text, tuple(ReportForm.of(catalogue, row["subtask"]).fields))
            counts = dict(row["counts"])
            f1 = _ratio(2 * counts["tp"], 2 * counts["tp"] + counts["fp"] + counts["fn"])
            reports.append(RunReport(row["arm_id"], row["qa_id"], pair, f1))
    return reports


def document(
    model: str, reports: Sequence[RunReport], judgements: Sequence[JudgedReport | None]
) -> dict[str, Any]:
    """The errors of all reports, their counts by arm, and how far the judge agrees with others.

    Undefined numbers are NaN.
    """
    usable = [
        (report, judgement)
        for report, judgement in zip(reports, judgements, strict=True)
        if judgement is not None
    ]
    by_arm: dict[str, list[JudgedReport]] = {}
    for report, judgement in usable:
        by_arm.setdefault(report.arm_id, []).append(judgement)
    return {
        "schema": SCHEMA,
        "model": model,
        "reports": len(reports),
        "unusable": len(reports) - len(usable),
        "between_orders": _between_orders([judgement for _, judgement in usable]),
        "with_entities": _with_entities(usable),
        "arms": {arm: _counts(of_arm) for arm, of_arm in by_arm.items()},
        "errors": [
            {
                "arm_id": report.arm_id,
                "qa_id": report.qa_id,
                "errors": [error._asdict() for error in judgement.errors],
                "unsure": [error._asdict() for error in judgement.unsure],
            }
            for report, judgement in usable
        ],
    }


def _between_orders(judgements: Sequence[JudgedReport]) -> dict[str, float]:
    """F1 of the errors of one order against the other, the share of shared weights, and of equal reports."""
    shared = sum(len(judgement.errors) for judgement in judgements)
    alone = sum(len(judgement.unsure) for judgement in judgements)
    return {
        "reports": len(judgements),
        "f1": _ratio(2 * shared, 2 * shared + alone),
        "same_weight": _ratio(sum(judgement.same_weights for judgement in judgements), shared),
        "equal": _ratio(sum(not judgement.unsure for judgement in judgements), len(judgements)),
    }


def _with_entities(usable: Sequence[tuple[RunReport, JudgedReport]]) -> dict[str, float]:
    """Kendall's tau-b of the number of errors of a report with F1 of its entities; -1 agrees best."""
    rows = [(len(judgement.errors), report.entity_f1) for report, judgement in usable]
    errors, f1 = np.reshape([row for row in rows if not np.isnan(row[1])], (-1, 2)).T
    return {"reports": len(f1), "tau_b": kendall(errors, f1)[0]}


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


def _ratio(part: float, total: float) -> float:
    return part / total if total else float("nan")
