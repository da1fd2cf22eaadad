"""Analyses of a run: made from its verdicts and scores, written to and read from `analyses.json`."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from cardiolens import tables
from cardiolens.config.steps import StatisticsSpec
from cardiolens.errors import InputError
from cardiolens.findings.analyses import analyse
from cardiolens.findings.analysis import Analysis
from cardiolens.findings.confusion import confusion_rows
from cardiolens.findings.sentences import Finding
from cardiolens.findings.subcohort import Part, full_versus_part
from cardiolens.judging.parse import RULES_VERSION
from cardiolens.record.places import Run
from cardiolens.stats.endings import status_counts
from cardiolens.stats.factors import ArmFactors
from cardiolens.stats.headlines import headlines
from cardiolens.stats.items import cohort
from cardiolens.stats.report_references import Forms

SCHEMA = "analyses-1"


def analyses_of(
    verdicts: pa.Table,
    scores: pa.Table,
    arms: Sequence[ArmFactors],
    parts: Sequence[Part],
    statistics: StatisticsSpec,
    *,
    forms: Forms,
) -> list[Analysis]:
    """Make every analysis that the arms allow; `parts` are named parts of the cohort, e.g. the public one."""
    models = headlines(arms)
    options: dict[str, Any] = statistics.sampling | {"forms": forms}
    part_analyses = [full_versus_part(verdicts, part, models, **options) for part in parts if models]
    return [
        *analyse(scores.to_pylist(), arms),
        *part_analyses,
        Analysis("confusion", confusion_rows(verdicts)),
        Analysis("how requests ended", status_counts(verdicts).to_pylist()),
    ]


def parts_of(volumes: pa.Table, verdicts: pa.Table) -> list[Part]:
    """Named cohorts that contain some of the judged patients, but not all."""
    judged = set(cohort(verdicts))
    by_name: dict[str, set[str]] = {}
    columns = volumes.select(["patient_id", "cohort"]).to_pydict()
    for patient, names in zip(columns["patient_id"], columns["cohort"], strict=True):
        for name in names:
            by_name.setdefault(name, set()).add(patient)
    parts = {name: patients & judged for name, patients in sorted(by_name.items())}
    return [Part(name, patients) for name, patients in parts.items() if patients and patients != judged]


def write_analyses(path: Path, analyses: Sequence[Analysis]) -> None:
    """Write tables and sentences as JSON; undefined numbers are null."""
    tree = {
        "schema": SCHEMA,
        "rules": RULES_VERSION,
        "analyses": [
            {
                "name": analysis.name,
                "findings": [
                    {"verdict": finding.verdict, "sentence": finding.sentence}
                    for finding in analysis.findings
                ],
                "table": [_defined(row) for row in analysis.rows],
            }
            for analysis in analyses
        ],
    }
    tables.write_text(path, json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _defined(row: Mapping[str, object]) -> dict[str, object]:
    """Row with None in place of NaN, which JSON does not have."""
    undefined = [name for name, value in row.items() if isinstance(value, float) and math.isnan(value)]
    return {name: None if name in undefined else value for name, value in row.items()}


AnalysisRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnalysisTable:
    """One analysis as written: its table and its sentences."""

    rows: Sequence[AnalysisRow] = ()
    findings: tuple[Finding, ...] = ()


def read_rules(run: Run) -> str:
    """The version of the rules that judged a run; "1.1" where no version was written yet."""
    return str(_read_tree(run).get("rules", "1.1"))


def read_analyses(run: Run) -> dict[str, AnalysisTable]:
    """Read the analyses of a run, by name; InputError where the file is missing or of another schema."""
    return {
        entry["name"]: AnalysisTable(
            [_numbered(row) for row in entry["table"]],
            tuple(Finding(finding["verdict"], finding["sentence"]) for finding in entry["findings"]),
        )
        for entry in _read_tree(run)["analyses"]
    }


def _read_tree(run: Run) -> dict[str, Any]:
    """The file of analyses; InputError where it cannot be read."""
    try:
        tree: dict[str, Any] = json.loads(run.analyses.read_text())
    except (OSError, ValueError) as error:
        raise InputError(
            f"{run.root}: has no readable analyses ({error}); run python -m cardiolens.judge run={run.root}"
        ) from None
    if tree.get("schema") != SCHEMA:
        raise InputError(f"{run.analyses}: is {tree.get('schema')!r}, not {SCHEMA}; judge the run again")
    return tree


def _numbered(row: AnalysisRow) -> AnalysisRow:
    """Row read from JSON with NaN in place of null for value, low and high."""
    return {**row, **{name: math.nan for name in ("value", "low", "high") if row.get(name, 0) is None}}
