"""Confidence as tables and sentences: separation, calibration curve, risk-coverage curve."""

import re
from collections.abc import Sequence

from cardiolens.score.claims import sentences
from cardiolens.score.claims.analysis import Analysis, setting, single_arm_rows
from cardiolens.score.claims.evidence_analysis import by_interval
from cardiolens.score.statistics.confidence_curves import BIN, RISK
from cardiolens.score.statistics.discrimination import BINS
from cardiolens.score.statistics.factors import ArmFactors, factors_of
from cardiolens.score.statistics.rows import Row

_SUMMARY_METRICS = ("auroc", "average_precision", "calibration_error", "risk_area")
CONFIDENCE = (*_SUMMARY_METRICS, BIN, RISK)  # prefixes of the metrics that are read
_POSITIVES = re.compile(r"\d+ of \d+ items? positive, rarer class \d+ patients?")
_GUESSING = 50.0  # AUROC of a coin, percent


def confidence(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Separation and calibration of probabilities, and whether they separate yes from no at all."""
    labels = factors_of(arms)
    rows = [
        row for row in single_arm_rows(scores) if str(row["metric"]).partition(".")[0] in _SUMMARY_METRICS
    ]
    claims = [row for row in rows if row["metric"] == "auroc" and row["arm_id"] in labels]
    findings = [
        sentences.threshold(
            f"{setting(labels[str(row['arm_id'])])} tells the two answers of "
            f"{str(row['scope']).removeprefix('subtask:')} apart better than a coin (AUROC above 50; "
            f"{positives(row)})",
            row,
            _GUESSING,
            evidence,
            beyond=True,
        )
        for row, evidence in zip(claims, by_interval(claims, _GUESSING), strict=True)
    ]
    return Analysis("confidence", rows, tuple(findings))


def positives(row: Row) -> str:
    """The number of positive items and of patients of the rarer class behind an AUROC, in words."""
    found = _POSITIVES.search(str(row["method"]))
    return found.group() if found else "number of positive items not noted"


def calibration(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """The calibration curve: items, mean confidence and accuracy of each tenth of confidence."""
    means = {
        _place(row): row["value"]
        for row in single_arm_rows(scores)
        if str(row["metric"]).endswith(".confidence")
    }
    rows: list[Row] = []
    for row in single_arm_rows(scores):
        kind, _, rest = str(row["metric"]).partition(".")
        number, _, quantity = rest.partition(".")
        if kind == BIN and quantity == "accuracy":
            end = 100 * int(number) // BINS
            ends = {"from": end - 100 // BINS, "to": end, "confidence": means[_place(row)]}
            rows.append(_identity(row) | ends | {"accuracy": row["value"]} | _rest(row))
    return Analysis("calibration", sorted(rows, key=lambda row: _order(row, "from")))


def risk_and_coverage(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """The risk-coverage curve: error rate among the most confident answers, by share of answers kept."""
    rows: list[Row] = []
    for row in single_arm_rows(scores):
        kind, _, coverage = str(row["metric"]).partition(".")
        if kind == RISK:
            rows.append(_identity(row) | {"coverage": int(coverage), "risk": row["value"]} | _rest(row))
    return Analysis("risk and coverage", sorted(rows, key=lambda row: _order(row, "coverage")))


def _order(row: Row, along: str) -> tuple[str, str, int]:
    return str(row["arm_id"]), str(row["scope"]), int(str(row[along]))


def _place(row: Row) -> tuple[str, str, str]:
    return str(row["arm_id"]), str(row["scope"]), str(row["metric"]).rpartition(".")[0]


def _identity(row: Row) -> dict[str, object]:
    return {name: row[name] for name in ("arm_id", "scope")}


def _rest(row: Row) -> dict[str, object]:
    return {name: row[name] for name in ("low", "high", "n_items", "n_patients")}
