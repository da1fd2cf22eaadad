"""The analyses of protocol 11 as tables and sentences, made from the rows of scores."""

from collections.abc import Callable, Sequence

import numpy as np

from cardiolens.findings import sentences
from cardiolens.findings.analysis import Analysis, Compared, alone, compared, setting, where
from cardiolens.findings.confidence import calibration, confidence, risk_and_coverage
from cardiolens.findings.landscape import landscape
from cardiolens.findings.sentences import Finding
from cardiolens.stats.collapse import COLLAPSE_INDEX, collapsed
from cardiolens.stats.factors import ArmFactors, factors_of
from cardiolens.stats.positions import ORDER_BIAS, POSITION_BIAS
from cardiolens.stats.repeats import ANSWERS_CHANGED
from cardiolens.stats.rows import Row

_COLLAPSE = (
    *("collapse_index", "modal_share", "modal_excess", "absorption"),
    *("entropy", "entropy_deficit", "shift", "unparsed"),
)
_DIAGNOSES = ("subtask:D01", "subtask:D02")
_PROMPTING = {
    "primary": "the score",
    "abnormal_call": "the rate of abnormal calls",
    "mean_cardinality": "the number of options picked",
    "precision": "precision",
    "recall": "recall",
}
_NAMED = ("image_gain", "text_shortcut", POSITION_BIAS, ANSWERS_CHANGED)
_DIFFERENCES = ("primary", "primary.equivalence", "primary.sign_flip_p", "primary.holm_p")


def analyse(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> list[Analysis]:
    """Every analysis that the scores of these arms allow; those without a row are left out."""
    made: tuple[Callable[[Sequence[Row], Sequence[ArmFactors]], Analysis], ...] = (
        collapse,
        slice_protocols,
        slice_budgets,
        prompting,
        controls,
        confidence,
        calibration,
        risk_and_coverage,
    )
    found = [landscape(scores), *(make(scores, arms) for make in made)]
    return [analysis for analysis in found if analysis.rows]


def collapse(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Collapse indices of every subtask with one right option, and whether a diagnosis has collapsed."""
    labels, index_rows = factors_of(arms), {}
    indices: dict[tuple[str, str], dict[str, object]] = {}
    for row in alone(scores):
        if row["metric"] in _COLLAPSE and str(row["scope"]).startswith("subtask:"):
            key = str(row["arm_id"]), str(row["scope"])
            indices.setdefault(key, {})[str(row["metric"])] = row["value"]
            if row["metric"] == "collapse_index":
                index_rows[key] = row
    rows = [
        {"arm_id": arm, "scope": scope, **found, "collapsed": _is_collapsed(found)}
        for (arm, scope), found in sorted(indices.items())
        if (arm, scope) in index_rows  # a subtask with one right option
    ]
    said = [
        sentences.threshold(
            f"{setting(labels[arm])} has collapsed on {scope.removeprefix('subtask:')} "
            f"(collapse index at least {100 * COLLAPSE_INDEX:g})",
            index_rows[arm, scope],
            100 * COLLAPSE_INDEX,
        )
        for arm, scope in sorted(index_rows)
        if scope in _DIAGNOSES and arm in labels
    ]
    return Analysis("collapse", rows, tuple(said))


def _is_collapsed(percent: dict[str, object]) -> bool:
    return bool(collapsed({name: np.array(float(str(value))) / 100 for name, value in percent.items()}))


def slice_protocols(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Differences between selectors, whether they are equivalent within two points, the largest change."""
    pairs = [pair for pair in compared(scores, arms, "selector") if pair.metric in _DIFFERENCES]
    across = [pair for pair in pairs if pair.ours.protocol != pair.theirs.protocol and pair.of_tier]
    said = [
        sentences.equivalence(pair.ours.selector, pair.theirs.selector, where(pair, "selector"), pair.row)
        for pair in across
        if pair.metric == "primary.equivalence"
    ]
    return Analysis("slice protocols", _rows(pairs), (*said, *_largest(across)))


def _largest(pairs: Sequence[Compared]) -> list[Finding]:
    """The largest absolute change between selection protocols on any tier."""
    changes = [pair for pair in pairs if pair.metric == "primary" and not np.isnan(_value(pair))]
    if len(changes) < 2:
        return []
    most = max(changes, key=lambda pair: abs(_value(pair)))
    between = f"{most.ours.selector} and {most.theirs.selector} on {where(most, 'selector')}"
    return [sentences.largest(f"change of {len(changes)} between selection protocols is {between}", most.row)]


def _value(pair: Compared) -> float:
    return float(str(pair.row["value"]))


def slice_budgets(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Differences between budgets, larger minus smaller."""
    pairs = [pair for pair in compared(scores, arms, "budget") if pair.metric in _DIFFERENCES]
    said = _changes(pairs, "budget", {"primary": "the score"}, "K = {ours} frames instead of {theirs}")
    return Analysis("slice budgets", _rows(pairs), said)


def prompting(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Differences between prompts, scores and conservatism (protocol 8.4)."""
    wanted = {*_PROMPTING, *_DIFFERENCES}
    pairs = [pair for pair in compared(scores, arms, "prompt") if pair.metric in wanted]
    said = _changes(pairs, "prompt", _PROMPTING, "Prompt {ours} instead of {theirs}")
    return Analysis("prompting", _rows(pairs), said)


def controls(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Gain over controls: against a blind reader, the part of a score that the images bring."""
    pairs = [
        pair
        for pair in compared(scores, arms, "control")
        if pair.metric in _DIFFERENCES and pair.ours.control == "none"
    ]
    said = _changes(
        pairs, "control", {"primary": "the score"}, "Asking without control instead of with {theirs}"
    )
    labels = factors_of(arms)
    named = [row for row in scores if str(row["metric"]).partition(".")[0] in _NAMED]
    named = [row for row in named if not str(row["scope"]).startswith("subtask:")]
    claims = [_named(row, labels) for row in alone(named) if row["arm_id"] in labels]
    claims += [_repeated(row, labels) for row in named if row["metric"] == ANSWERS_CHANGED]
    described = [row for row in scores if row["metric"] == ORDER_BIAS]
    return Analysis("controls", [*_rows(pairs), *named, *described], (*said, *claims))


def _named(row: Row, labels: dict[str, ArmFactors]) -> Finding:
    """A statistic of its own of a control."""
    arm, scope = setting(labels[str(row["arm_id"])]), str(row["scope"]).replace(":", " ")
    metric, _, place = str(row["metric"]).partition(".")
    if metric == "text_shortcut":
        cause = "Reading the text alone instead of always giving the best constant answer"
        return sentences.change(cause, f"the score on {scope} ({arm})", row)
    cause = f"Standing in place {place} of the list instead of elsewhere"
    return sentences.change(cause, f"how often an option is picked beyond how often it is right ({arm})", row)


def _repeated(row: Row, labels: dict[str, ArmFactors]) -> Finding:
    scope = str(row["scope"]).replace(":", " ")
    return sentences.repeated(f"{setting(labels[str(row['arm_id'])])} on {scope}", row)


def _rows(pairs: Sequence[Compared]) -> list[Row]:
    return [pair.row for pair in pairs if not str(pair.row["scope"]).startswith("subtask:")]


def _changes(
    pairs: Sequence[Compared], factor: str, subjects: dict[str, str], cause: str
) -> tuple[Finding, ...]:
    """A sentence a tier and metric, from difference and, of a score, its adjusted p-value."""
    adjusted = {_place(pair): _value(pair) for pair in pairs if pair.metric == "primary.holm_p"}
    return tuple(
        sentences.change(
            cause.format(ours=getattr(pair.ours, factor), theirs=getattr(pair.theirs, factor)),
            f"{subjects[pair.metric]} on {where(pair, factor)}",
            pair.row,
            adjusted.get(_place(pair)) if pair.metric == "primary" else None,
        )
        for pair in pairs
        if pair.metric in subjects and pair.of_tier
    )


def _place(pair: Compared) -> tuple[str, str, str]:
    return pair.ours.arm_id, pair.theirs.arm_id, str(pair.row["scope"])
