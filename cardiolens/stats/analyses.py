"""The analyses of specification 11 as tables and sentences, made from the table of scores."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.stats import findings
from cardiolens.stats.collapse import COLLAPSE_INDEX
from cardiolens.stats.factors import ArmFactors, factors_of
from cardiolens.stats.findings import Finding, Row
from cardiolens.stats.items import Floats
from cardiolens.stats.paired import kendall, wilcoxon

HEADLINE = {"budget": "16", "prompt": "standard", "control": "none"}
_LANDSCAPE = pa.schema(
    [("model", pa.string()), ("metric", pa.string()), ("tier", pa.string()), ("value", pa.float64())]
)
_COLLAPSE = (
    "collapse_index",
    "modal_share",
    "modal_excess",
    "absorption",
    "entropy_deficit",
    "shift",
    "unparsed",
)
_PROMPTING = {
    "primary": "the score",
    "abnormal_call": "the rate of abnormal calls",
    "mean_cardinality": "the number of options picked",
    "precision": "precision",
    "recall": "recall",
}
TIERS = ("tier:1", "tier:2", "tier:3")


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis: a table and what can be said from it."""

    name: str
    table: pa.Table
    findings: tuple[Finding, ...]


def analyse(scores: pa.Table, arms: Sequence[ArmFactors]) -> list[Analysis]:
    """Every analysis that the arms allow; those without a row are left out."""
    made: tuple[Callable[[pa.Table, Sequence[ArmFactors]], Analysis], ...] = (
        landscape,
        collapse,
        slice_protocols,
        prompting,
        controls,
    )
    found = [make(scores, arms) for make in made]
    return [analysis for analysis in found if analysis.table.num_rows]


def landscape(scores: pa.Table, arms: Sequence[ArmFactors]) -> Analysis:
    """Tier scores of each model at K = 16 with the standard prompt: seeds averaged first, then protocols."""
    headline = [arm for arm in arms if all(getattr(arm, name) == value for name, value in HEADLINE.items())]
    rows = []
    for model in sorted({arm.model for arm in headline}):
        of_model = [arm for arm in headline if arm.model == model]
        for metric, tier in product(("primary", "primary.skill"), TIERS):
            value = _over_protocols(scores, of_model, metric, tier)
            rows.append({"model": model, "metric": metric, "tier": tier, "value": value})
    table = pa.Table.from_pylist(rows, schema=_LANDSCAPE)
    return Analysis("landscape", table, tuple(_declines(table)))


def collapse(scores: pa.Table, arms: Sequence[ArmFactors]) -> Analysis:
    """Collapse indices of every subtask with one right option, and whether the diagnosis has collapsed."""
    names = [
        "collapse_index",
        "modal_share",
        "modal_excess",
        "absorption",
        "entropy_deficit",
        "shift",
        "unparsed",
    ]
    table = _alone(scores).filter(pc.is_in(_alone(scores)["metric"], value_set=pa.array(names)))
    labels = factors_of(arms)
    found = []
    for row in table.to_pylist():
        if row["metric"] == "collapse_index" and row["scope"] == "subtask:D01" and row["arm_id"] in labels:
            claim = f"{_setting(labels[row['arm_id']])} has collapsed on D01 (collapse index at least 30)"
            found.append(findings.threshold(claim, row, 100 * COLLAPSE_INDEX))
    return Analysis("collapse", table, tuple(found))


def slice_protocols(scores: pa.Table, arms: Sequence[ArmFactors]) -> Analysis:
    """Differences between selectors, and whether they are equivalent within two points."""
    table, pairs = _pairs(scores, arms, "selector")
    found = [
        findings.equivalence(ours.selector, theirs.selector, _where(row, ours, "selector"), row)
        for ours, theirs, row in pairs
        if row["metric"] == "primary.equivalence" and _of_tier(row)
    ]
    return Analysis("slice protocols", table, tuple(found))


def prompting(scores: pa.Table, arms: Sequence[ArmFactors]) -> Analysis:
    """Differences between prompts, scores and conservatism (specification 8.4)."""
    table, pairs = _pairs(scores, arms, "prompt")
    found = [
        findings.change(
            f"Prompt {ours.prompt} instead of {theirs.prompt}",
            f"{_PROMPTING[str(row['metric'])]} on {_where(row, ours, 'prompt')}",
            row,
        )
        for ours, theirs, row in pairs
        if row["metric"] in _PROMPTING and _of_tier(row)
    ]
    return Analysis("prompting", table, tuple(found))


def controls(scores: pa.Table, arms: Sequence[ArmFactors]) -> Analysis:
    """Gain over controls: against a blind reader, the part of a score that the images bring."""
    table, pairs = _pairs(scores, arms, "control")
    found = [
        findings.change(
            f"Asking without control instead of with {theirs.control}",
            f"the score on {_where(row, ours, 'control')}",
            row,
        )
        for ours, theirs, row in pairs
        if row["metric"] == "primary" and _of_tier(row) and ours.control == "none"
    ]
    return Analysis("controls", table, tuple(found))


def _alone(scores: pa.Table) -> pa.Table:
    return scores.filter(pc.is_null(scores["versus_arm_id"]))


def _over_protocols(scores: pa.Table, arms: list[ArmFactors], metric: str, tier: str) -> float:
    alone = _alone(scores)
    chosen = alone.filter(pc.and_(pc.equal(alone["metric"], metric), pc.equal(alone["scope"], tier)))
    value = dict(zip(chosen["arm_id"].to_pylist(), chosen["value"].to_pylist(), strict=True))
    by_protocol: dict[str, list[float]] = {}
    for arm in arms:
        if arm.arm_id in value:
            by_protocol.setdefault(arm.protocol, []).append(value[arm.arm_id])
    means = [np.mean(values) for values in by_protocol.values()]
    return float(np.mean(means)) if means else float("nan")


def _declines(table: pa.Table) -> Iterator[Finding]:
    """Whether skill falls from tier to tier over models, and whether tiers rank models alike."""
    models = sorted(set(table["model"].to_pylist()))
    value = {(row["model"], row["metric"], row["tier"]): row["value"] for row in table.to_pylist()}

    def of(metric: str, tier: str) -> Floats:
        return np.array([value[model, metric, tier] for model in models])

    for metric, name in (("primary", "scores"), ("primary.skill", "skill")):
        change = of(metric, "tier:3") - of(metric, "tier:1")
        change = change[~np.isnan(change)]
        if len(change):
            test, median = wilcoxon(change), float(np.median(change))
            than = "lower" if median < 0 else "higher"
            claim = f"{name} of models are {than} on tier 3 than on tier 1"
            detail = (
                f"median change {findings.signed(median)} over {len(change)} models, Wilcoxon {test.method}"
            )
            yield findings.tested(claim, test.p, detail)
    yield from _rank_agreement(of("primary", "tier:1"), of("primary", "tier:3"))


def _rank_agreement(first: Floats, third: Floats) -> Iterator[Finding]:
    both = ~np.isnan(first) & ~np.isnan(third)
    test = kendall(first[both], third[both])
    if not np.isnan(test.p):
        detail = f"Kendall's tau {findings.signed(test.statistic, 2)} over {both.sum()} models"
        yield findings.tested("tiers 1 and 3 rank models alike", test.p, detail)


def _pairs(
    scores: pa.Table, arms: Sequence[ArmFactors], factor: str
) -> tuple[pa.Table, list[tuple[ArmFactors, ArmFactors, Row]]]:
    """Difference rows whose arms differ in one factor, with both arms."""
    labels = factors_of(arms)
    chosen, pairs = [], []
    for at, row in enumerate(scores.to_pylist()):
        ours, theirs = labels.get(row["arm_id"]), labels.get(row["versus_arm_id"] or "")
        if ours and theirs and getattr(ours, factor) != getattr(theirs, factor):
            chosen.append(at)
            pairs.append((ours, theirs, row))
    return scores.take(pa.array(chosen, pa.int64())), pairs


def _of_tier(row: Row) -> bool:
    return str(row["scope"]).startswith("tier:")


def _where(row: Row, arm: ArmFactors, compared: str) -> str:
    return f"{str(row['scope']).replace(':', ' ')} ({_setting(arm, compared)})"


def _setting(arm: ArmFactors, without: str = "") -> str:
    """An arm in words, less the factor compared."""
    words = {
        "model": arm.model,
        "selector": f"{arm.selector} selection",
        "budget": f"K = {arm.budget}",
        "prompt": f"{arm.prompt} prompt",
        "control": "" if arm.control == "none" else f"control {arm.control}",
    }
    return ", ".join(word for name, word in words.items() if name != without and word)
