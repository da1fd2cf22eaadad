"""Analyses of a run: computed from verdicts and scores, written to and read from `analyses.json`."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, Field, JsonValue, ValidationError

from cardiolens.base import disk
from cardiolens.base.console import shown_word
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.phases import begin
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import describe
from cardiolens.config.sweep import StatisticsSpec
from cardiolens.protocol.replies import RULES_VERSION
from cardiolens.score.claims.analyses import analyse, rows_read
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.claims.confusion import confusion_rows
from cardiolens.score.claims.declared_question import DeclaredQuestion, declared_question
from cardiolens.score.claims.difficulty import item_difficulty
from cardiolens.score.claims.hospitals import hospitals
from cardiolens.score.claims.preregistered import DeclaredComparison, declared_comparison
from cardiolens.score.claims.score_ranges import spread
from cardiolens.score.claims.sentences import Finding, Side
from cardiolens.score.claims.subcohort import full_versus_part
from cardiolens.score.claims.subgroups import subgroup_scores
from cardiolens.score.run_results.groups import Groups
from cardiolens.score.run_results.reading_shares import reading_shares
from cardiolens.score.statistics.arm_answers import ArmAnswers
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.headlines import headlines
from cardiolens.score.statistics.outcomes import status_counts
from cardiolens.score.statistics.report_references import Forms
from cardiolens.storage.places import Run

SCHEMA = "analyses-2"
_MAX_SCHEMA_CHARS = 40  # characters of another schema that a message repeats
_SEAL = "digest"  # of the rest of the file; earlier versions wrote none


class _Finding(BaseModel):
    side: Side | None
    sentence: str
    simulated: bool = False


class _Analysis(BaseModel):
    name: str
    findings: list[_Finding]
    table: list[dict[str, JsonValue]]


class _Analyses(BaseModel):
    schema_: Annotated[Literal["analyses-2"], Field(alias="schema")]
    rules: str = "1.1"
    analyses: list[_Analysis]


def analyses_of(
    answers: ArmAnswers,
    scores: Iterable[pa.Table],
    arms: Sequence[ArmFactors],
    groups: Groups,
    statistics: StatisticsSpec,
    *,
    forms: Forms,
    declared: DeclaredComparison | DeclaredQuestion | None = None,
) -> list[Analysis]:
    """Compute every analysis that the arms allow; `groups` are parts and subgroups of the cohort.

    Verdicts are read arm by arm, and scores part by part.
    """
    begin("analysing")
    models = headlines(arms)
    rows = [row for part in scores for row in rows_read(part, arms).to_pylist()]
    simulated = {arm.model for arm in arms if arm.simulated}
    options: dict[str, Any] = {"forms": forms, "simulated": simulated, **statistics.sampling}
    analyses: list[Analysis] = []
    if isinstance(declared, DeclaredQuestion):
        analyses.append(declared_question(rows, declared))
    elif declared is not None:
        analyses.append(declared_comparison(rows, declared, simulated))
    analyses += [*analyse(rows, arms), spread(rows, arms)]
    if models:
        analyses += [full_versus_part(answers, part, models, **options) for part in groups.parts]
        analyses.append(subgroup_scores(answers, groups.subgroups, models, **statistics.sampling))
    analyses.append(hospitals(groups.subgroups, len(answers.patients)))
    analyses += item_difficulty(answers.verdicts, arms)
    analyses.append(reading_shares(answers.verdicts, arms, statistics.min_n))
    analyses.append(Analysis("confusion", confusion_rows(answers.verdicts)))
    analyses.append(Analysis("how requests ended", status_counts(answers.verdicts).to_pylist()))
    return [analysis for analysis in analyses if analysis.rows or analysis.findings]


def write_analyses(path: Path, analyses: Sequence[Analysis]) -> None:
    """Write tables and sentences as JSON, with their digest; NaN becomes null."""
    tree: dict[str, Any] = {
        "schema": SCHEMA,
        "rules": RULES_VERSION,
        "analyses": [
            {
                "name": analysis.name,
                "findings": [
                    {"verdict": finding.verdict, "side": finding.side, "sentence": finding.sentence}
                    | ({"simulated": True} if finding.simulated else {})
                    for finding in analysis.findings
                ],
                "table": [_defined(row) for row in analysis.rows],
            }
            for analysis in analyses
        ],
    }
    tree[_SEAL] = digest_of(tree)
    disk.write_text(path, json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _defined(row: Mapping[str, object]) -> dict[str, object]:
    """Replace NaN by None, since JSON has no NaN."""
    undefined = [name for name, value in row.items() if isinstance(value, float) and math.isnan(value)]
    return {name: None if name in undefined else value for name, value in row.items()}


AnalysisRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnalysisTable:
    """One analysis as stored: its table and its sentences."""

    rows: Sequence[AnalysisRow] = ()
    findings: tuple[Finding, ...] = ()


def read_judged(run: Run) -> tuple[str, dict[str, AnalysisTable]]:
    """Read the version of the parsing rules ("1.1" if the file holds none) and the analyses by name.

    Raises InputError if the file is missing or of another schema.
    """
    tree = _read_tree(run)
    analyses = {
        entry["name"]: AnalysisTable(
            [_numbered(row) for row in entry["table"]],
            tuple(
                Finding(finding["side"], finding["sentence"], finding.get("simulated", False))
                for finding in entry["findings"]
            ),
        )
        for entry in tree["analyses"]
    }
    return str(tree.get("rules", "1.1")), analyses


def _read_tree(run: Run) -> dict[str, Any]:
    """Read `analyses.json` and check its schema and digest; InputError where either fails."""
    try:
        tree: Any = read_json(run.analyses)
        if isinstance(tree, dict) and tree.get("schema") == SCHEMA:
            _Analyses.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"{run.analyses}: {describe(error)}; judge the run again") from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{run.root}: has no readable analyses ({error}); run "
            f"python -m cardiolens.judge {shown_word('run', run.root)}"
        ) from None
    kind = tree.get("schema") if isinstance(tree, dict) else tree
    if kind != SCHEMA:
        raise InputError(
            f"{run.analyses}: is {str(kind)[:_MAX_SCHEMA_CHARS]!r}, not {SCHEMA}; judge the run again"
        )
    content: dict[str, Any] = {name: value for name, value in tree.items() if name != _SEAL}
    if _SEAL in tree and tree[_SEAL] != digest_of(content):
        raise InputError(f"{run.analyses}: was changed since it was judged; judge the run again")
    return content


def _numbered(row: AnalysisRow) -> AnalysisRow:
    """Replace null by NaN in value, low and high of a row read from JSON."""
    return {**row, **{name: math.nan for name in ("value", "low", "high") if row.get(name, 0) is None}}
