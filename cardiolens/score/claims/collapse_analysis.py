"""Category collapse of every subtask with one right option (protocol 8.4, 16.13)."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from cardiolens.score.claims import sentences
from cardiolens.score.claims.analysis import Analysis, setting, single_arm_rows
from cardiolens.score.claims.evidence_analysis import Evidence, by_interval
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.collapse import COLLAPSE_INDEX, EXCESS, is_collapsed
from cardiolens.score.statistics.factors import ArmFactors, factors_of
from cardiolens.score.statistics.rows import Row

INDICES = (
    *("collapse_index", "modal_share", "modal_excess", "absorption"),
    *("entropy", "entropy_deficit", "shift", "unparsed"),
)
_DIAGNOSES = ("subtask:D01", "subtask:D02")
_Indices = Mapping[str, Row]  # by metric


def collapse(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Collapse indices of every subtask with one right option, and whether a diagnosis has collapsed."""
    labels = factors_of(arms)
    indices_by_place: dict[tuple[str, str], dict[str, Row]] = {}
    for row in single_arm_rows(scores):
        if row["metric"] in INDICES and str(row["scope"]).startswith("subtask:"):
            indices_by_place.setdefault((str(row["arm_id"]), str(row["scope"])), {})[str(row["metric"])] = row
    indices_by_place = {
        key: indices for key, indices in sorted(indices_by_place.items()) if "collapse_index" in indices
    }
    rows = [
        {"arm_id": arm, "scope": scope}
        | {name: row["value"] for name, row in indices.items()}
        | {"collapsed": _is_collapsed(indices), "method": indices["collapse_index"]["method"]}
        for (arm, scope), indices in indices_by_place.items()
    ]
    claims = {
        key: indices for key, indices in indices_by_place.items() if key[1] in _DIAGNOSES and key[0] in labels
    }
    evidence = by_interval([indices["modal_excess"] for indices in claims.values()], 100 * EXCESS)
    findings = [
        _claim(
            f"{setting(labels[arm])} has collapsed on {scope.removeprefix('subtask:')}",
            indices,
            evidence_of_row,
        )
        for ((arm, scope), indices), evidence_of_row in zip(claims.items(), evidence, strict=True)
    ]
    return Analysis("collapse", rows, tuple(findings))


def _claim(subject: str, indices: _Indices, evidence: Evidence) -> Finding:
    """The collapse flag as a finding: tests the modal excess and mentions the collapse index."""
    limit = 100 * EXCESS
    index = sentences.signed(float(str(indices["collapse_index"]["value"])))
    claim = f"{subject} (collapse index {index}, its most frequent answer beyond its prevalence by more "
    claim += f"than {limit:g} points)"
    finding = sentences.threshold(claim, indices["modal_excess"], limit, evidence, beyond=True)
    if finding.side == "above" and not _is_collapsed(indices):
        flag = f"the index is below {100 * COLLAPSE_INDEX:g}"
        return Finding(None, f"Not flagged, since {flag}: {finding.sentence}")
    return finding


def _is_collapsed(indices: _Indices) -> bool:
    fractions = {name: np.array(_number(row, "value") / 100) for name, row in indices.items()}
    return bool(is_collapsed(fractions, _number(indices["modal_excess"], "low") / 100))


def _number(row: Row, name: str) -> float:
    return math.nan if row[name] is None else float(str(row[name]))
