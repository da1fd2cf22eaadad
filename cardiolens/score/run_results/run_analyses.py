"""Tables that describe a run: computed from verdicts and scores, written to and read from `analyses.json`."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, Field, JsonValue, ValidationError
from pydantic_core import to_json

from cardiolens.base import disk
from cardiolens.base.console import shown_word
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.phases import begin
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import describe
from cardiolens.protocol.replies.strict_reading import RULES_VERSION
from cardiolens.score.claims import descriptions
from cardiolens.score.claims.descriptions import confusion_rows, item_difficulty
from cardiolens.score.claims.parts_of_cohort import Groups, gold_shift, subgroup_rows
from cardiolens.score.run_results.reply_readings import SHARES, reading_shares
from cardiolens.score.statistics.confidence import BIN, RISK
from cardiolens.score.statistics.factors import ArmFactors, headlines
from cardiolens.score.statistics.items import ArmAnswers
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.statistics.verdict_rows import Verdicts, status_counts
from cardiolens.storage.places import Run

SCHEMA = "analyses-3"
_SEAL = "digest"  # of the rest of the file
AnalysisRow = Mapping[str, Any]
Analyses = Mapping[str, Sequence[AnalysisRow]]  # rows by the name of their table


class _Analyses(BaseModel):
    schema_: Annotated[Literal["analyses-3"], Field(alias="schema")]
    rules: str
    digest: str
    tables: dict[str, list[dict[str, JsonValue]]]


def analyses_of(
    verdicts: Verdicts,
    answers: ArmAnswers,
    scores: pa.Table,
    arms: Sequence[ArmFactors],
    *,
    groups: Groups,
    settings: Settings,
) -> Analyses:
    """Compute every table that the arms allow; `groups` are parts and subgroups of the cohort."""
    begin("analysing")
    metric, endings = scores["metric"], status_counts(verdicts)
    has_name = pc.is_in(metric, value_set=pa.array(["primary", *descriptions.COLLAPSE_INDICES]))
    is_of_curve = pc.match_substring_regex(metric, rf"^({BIN}|{RISK})\.")
    rows = scores.filter(pc.or_(has_name, is_of_curve)).to_pylist()
    models = headlines(arms)
    shifts = [
        {"part": name, "scope": f"subtask:{subtask}", "value": 100 * shift}
        for name, patients in groups.parts.items()
        for subtask, shift in gold_shift(answers, patients).items()
    ]
    by_name: dict[str, Sequence[AnalysisRow]] = {
        "collapse": list(descriptions.collapse_rows(rows)),
        "calibration": descriptions.calibration_rows(rows),
        "risk and coverage": descriptions.risk_rows(rows),
        "spread": descriptions.range_rows(rows, arms),
        "gold shifts": shifts,
        "subgroups": list(subgroup_rows(answers, groups.subgroups, models, settings)),
        "hospitals": descriptions.hospital_rows(groups.subgroups, len(answers.patients)),
        "item difficulty": item_difficulty(answers, arms),
        SHARES: reading_shares(endings, answers, arms, settings.min_n),
        "confusion": confusion_rows(verdicts),
        "how requests ended": endings,
    }
    return {name: table for name, table in by_name.items() if table}


def write_analyses(run: Run, analyses: Analyses) -> None:
    """Write tables as JSON, with their digest; NaN becomes null."""
    defined = json.loads(to_json(analyses, inf_nan_mode="null"))
    tree: dict[str, Any] = {"schema": SCHEMA, "rules": RULES_VERSION, "tables": defined}
    tree[_SEAL] = digest_of(tree)
    disk.write_text(run.analyses, json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_judged(run: Run) -> tuple[str, Analyses]:
    """Read the version of the parsing rules and the tables by name.

    Raises InputError if the file is missing, of another schema, or was changed.
    """
    try:
        tree: Any = read_json(run.analyses)
        document = _Analyses.model_validate(tree)
    except (OSError, ValueError) as error:
        problem = describe(error) if isinstance(error, ValidationError) else error
        raise InputError(
            f"{run.root}: has no readable analyses ({problem}); run "
            f"python -m cardiolens.judge {shown_word('run', run.root)}"
        ) from None
    if document.digest != digest_of({name: value for name, value in tree.items() if name != _SEAL}):
        raise InputError(f"{run.analyses}: was changed since it was judged; judge the run again")
    return document.rules, {name: [_numbered(row) for row in rows] for name, rows in document.tables.items()}


def _numbered(row: AnalysisRow) -> AnalysisRow:
    """Replace null by NaN in value, low and high of a row read from JSON."""
    return {**row, **{name: math.nan for name in ("value", "low", "high") if row.get(name, 0) is None}}
