"""The analyses of a run: from its verdicts and scores to `analyses.json`."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cardiolens import tables
from cardiolens.execution_spec import StatisticsSpec
from cardiolens.stats.analyses import analyse
from cardiolens.stats.analysis import Analysis
from cardiolens.stats.confusion import confusion_rows
from cardiolens.stats.factors import ArmFactors
from cardiolens.stats.items import cohort
from cardiolens.stats.landscape import headlines
from cardiolens.stats.report_references import Forms
from cardiolens.stats.status import status_counts
from cardiolens.stats.subcohort import Part, full_versus_part

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
