"""The analyses of a run: from its verdicts and scores to `analyses.json`."""

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
from cardiolens.record.places import Run
from cardiolens.stats.endings import status_counts
from cardiolens.stats.factors import ArmFactors
from cardiolens.stats.headlines import headlines
from cardiolens.stats.items import cohort
from cardiolens.stats.report_references import Forms

SCHEMA = "analyses-1"

Row = Mapping[str, Any]


def analyses_of(
    verdicts: pa.Table,
    scores: pa.Table,
    arms: Sequence[ArmFactors],
    parts: Sequence[Part],
    statistics: StatisticsSpec,
    *,
    forms: Forms,
) -> list[Analysis]:
    """Every analysis that these arms allow; `parts` are named parts of the cohort, such as the public one."""
    models = headlines(arms)
    options: dict[str, Any] = statistics.sampling | {"forms": forms}
    of_parts = [full_versus_part(verdicts, part, models, **options) for part in parts if models]
    return [
        *analyse(scores.to_pylist(), arms),
        *of_parts,
        Analysis("confusion", confusion_rows(verdicts)),
        Analysis("how requests ended", status_counts(verdicts).to_pylist()),
    ]


def parts_of(volumes: pa.Table, verdicts: pa.Table) -> list[Part]:
    """The named cohorts that hold some of the judged patients, but not all."""
    judged = set(cohort(verdicts))
    named: dict[str, set[str]] = {}
    columns = volumes.select(["patient_id", "cohort"]).to_pydict()
    for patient, names in zip(columns["patient_id"], columns["cohort"], strict=True):
        for name in names:
            named.setdefault(name, set()).add(patient)
    found = {name: patients & judged for name, patients in sorted(named.items())}
    return [Part(name, patients) for name, patients in found.items() if patients and patients != judged]


def write_analyses(path: Path, analyses: Sequence[Analysis]) -> None:
    """Tables and sentences as JSON; undefined numbers are null."""
    tree = {
        "schema": SCHEMA,
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
    """A row without what it does not have."""
    undefined = [name for name, value in row.items() if isinstance(value, float) and math.isnan(value)]
    return {name: None if name in undefined else value for name, value in row.items()}


@dataclass(frozen=True, slots=True)
class Told:
    """One analysis as written: its table and its sentences."""

    rows: Sequence[Row] = ()
    findings: tuple[Finding, ...] = ()


def read_analyses(run: Run) -> dict[str, Told]:
    """The analyses of a run by name."""
    try:
        tree = json.loads(run.analyses.read_text())
    except (OSError, ValueError) as error:
        raise InputError(
            f"{run.root}: has no readable analyses ({error}); run python -m cardiolens.judge run={run.root}"
        ) from None
    if tree.get("schema") != SCHEMA:
        raise InputError(f"{run.analyses}: is {tree.get('schema')!r}, not {SCHEMA}; judge the run again")
    return {
        entry["name"]: Told(
            [_numbered(row) for row in entry["table"]],
            tuple(Finding(said["verdict"], said["sentence"]) for said in entry["findings"]),
        )
        for entry in tree["analyses"]
    }


def _numbered(row: Row) -> Row:
    """A row of JSON, where undefined numbers are null."""
    return {**row, **{name: math.nan for name in ("value", "low", "high") if row.get(name, 0) is None}}
