"""Terminal output of plan, scores, findings and changes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

from cardiolens.base.console import console, say
from cardiolens.config.arms import Arm
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.plan.totals import Totals
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.claims.planned_power import ASSUMED
from cardiolens.score.run_results.verdict_changes import Changes
from cardiolens.score.statistics.enough_data import FEWEST_FOR_INTERVAL
from cardiolens.score.statistics.outcomes import INCOMPLETE, percent_read
from cardiolens.storage import documents

_SENTENCES = 8  # of one analysis on the terminal; all are in analyses.json


def show_plan(plan: Plan, missing: Mapping[str, Missing], totals: Mapping[str, Totals]) -> None:
    """Print the plan of a sweep, one row per model, and the declared comparison."""
    table = Table(title=f"plan of {plan.run.root}", title_justify="left")
    columns = ("model", "arms", "asked", "unique", "done", "to do", "overflow", "skipped")
    for name in (*columns, "frames referenced", "distinct", "prompt tokens"):
        table.add_column(name, justify="left" if name == "model" else "right")
    for model, work in missing.items():
        total = totals[model]
        arms = [arm for arm in plan.arms if arm.model.name == model]
        about = "about " if arms[0].model.estimates_tokens else ""
        tokens = f"{about}{total.prompt_tokens:,}" if total.prompt_tokens is not None else "-"
        counts = (total.asked, work.unique, work.done, work.left, total.overflow, total.skipped)
        frames = (total.frames_referenced, total.frames_distinct)
        table.add_row(model, str(len(arms)), *(f"{count:,}" for count in (*counts, *frames)), tokens)
    console.print(table)
    for model, work in missing.items():
        if (n_requests := totals[model].sent) > work.unique:
            say(
                f"{model}: its {work.unique:,} distinct questions are {n_requests:,} requests at most, "
                "in stages"
            )
    if (primary := plan.spec.primary) is not None:
        say(f"primary comparison: {primary.words} on tier {primary.tier}, {_standing(plan, missing)}")


def _standing(plan: Plan, missing: Mapping[str, Missing]) -> str:
    """When the comparison of a plan is declared, and whether it is tested alone."""
    n_answered: int | None = sum(missing[name].done for name in plan.spec.compared if name in missing)
    if plan.run.declaration.exists():
        n_answered = documents.answered_before(plan.run, plan.spec)
    if n_answered == 0:
        return "declared before the run and tested alone at 5 %"
    count = "an unknown number of" if n_answered is None else f"{n_answered:,}"
    return f"declared when {count} answers were there already, so not tested alone"


def show_power(lines: Sequence[str]) -> None:
    """Print the detectable differences per tier and their assumptions, before the models run."""
    if lines:
        say(f"what this cohort can show of two arms ({ASSUMED}):")
    for line in lines:
        say(f"  {line}")


def show_scores(arms: Sequence[Arm], scores: pa.Table) -> None:
    """Print tier scores with 95 % intervals, one row per arm; simulated readers carry an asterisk."""
    rows = scores.filter(
        pc.and_(pc.starts_with(scores["scope"], "tier:"), pc.is_null(scores["versus_arm_id"]))
    )
    primary = rows.filter(pc.equal(rows["metric"], "primary")).to_pylist()
    values = {(row["arm_id"], row["scope"]): row for row in primary}
    tiers = sorted({scope for _, scope in values})
    simulated = any(arm.model.simulated for arm in arms)
    table = Table(
        title="scores in percent, with 95 % intervals over patients",
        title_justify="left",
        caption=f"{'* simulated reader; ' if simulated else ''}{_items(primary, tiers)}{_too_few(primary)}",
        caption_justify="left",
    )
    controls = any(arm.control != "none" for arm in arms)
    has_wordings = any(arm.wording for arm in arms)
    optional_columns = [
        name for name, present in (("wording", has_wordings), ("control", controls)) if present
    ]
    label_columns = ("model", "selector", "budget", "prompt", *optional_columns)
    for name in (*label_columns, *(tier.replace(":", " ") for tier in tiers)):
        right = name == "budget" or name.startswith("tier")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for arm in arms:
        name = f"{arm.model.name}*" if arm.model.simulated else arm.model.name
        cells = [_cell(values.get((arm.arm_id, tier))) for tier in tiers]
        own = [str(getattr(arm, factor)) for factor in optional_columns]
        table.add_row(name, arm.selector_name, str(arm.budget), arm.prompt.name, *own, *cells)
    console.print(table)


def _items(rows: list[dict[str, Any]], tiers: list[str]) -> str:
    """Numbers of items and patients of each tier; a range if the items differ between arms."""
    parts = []
    for tier in tiers:
        counts = sorted({row["n_items"] for row in rows if row["scope"] == tier})
        patients = max(row["n_patients"] for row in rows if row["scope"] == tier)
        items = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        parts.append(f"{tier.replace(':', ' ')}: {items} items of {patients} patients")
    return "; ".join(parts)


def _too_few(rows: list[dict[str, Any]]) -> str:
    """Why some scores stand without an interval."""
    if any(row["n_patients"] < FEWEST_FOR_INTERVAL for row in rows):
        return f"; no interval with fewer than {FEWEST_FOR_INTERVAL} patients"
    return ""


def _cell(row: dict[str, Any] | None) -> str:
    if row is None or row["value"] is None or math.isnan(row["value"]):
        return "undefined"
    interval = "" if math.isnan(row["low"]) else f" ({row['low']:.1f} to {row['high']:.1f})"
    mark = " incomplete" if str(row["method"]).startswith(INCOMPLETE) else ""
    percent = percent_read(row)
    read = "" if percent is None else f", {percent} % read"
    return f"{row['value']:.1f}{interval}{mark}{read}"


def show_withheld(number: int) -> None:
    """Print how many questions have no verdict, because their answers are withheld."""
    if number:
        say(
            f"withheld: the answers of {number} questions are not here; their replies are kept and in no "
            "score: cardiolens release submit=<run> out=<file> writes them for whoever has the answers"
        )


def show_findings(analyses: Sequence[Analysis]) -> None:
    """Print the findings of each analysis; undecided ones are only counted."""
    for analysis in analyses:
        findings = [finding for finding in analysis.findings if finding.verdict != "cannot tell"]
        n_undecided = len(analysis.findings) - len(findings)
        if not analysis.findings:
            continue
        undecided = f"{n_undecided} more are undecided for this cohort size"
        say(f"{analysis.name}: {len(findings)} findings; {undecided}")
        for finding in findings[:_SENTENCES]:
            say(f"  [{finding.verdict}] {finding.sentence}")
        if len(findings) > _SENTENCES:
            say(f"  ... and {len(findings) - _SENTENCES} more in analyses.json")


def show_changes(changes: Changes, score_changes: Sequence[tuple[str, str, float, float]]) -> None:
    """Print what judging again changed: verdicts by their endings, then tier scores."""
    say(f"verdicts: {changes.total} made, {changes.changed} changed, {changes.new} new, {changes.gone} gone")
    for (before, after), number in sorted(changes.kinds.items()):
        say(f"  {number} from {before} to {after}")
    for arm, tier, old, new in score_changes:
        say(f"  {tier.replace(':', ' ')} of {arm}: {old:.1f} to {new:.1f}")
