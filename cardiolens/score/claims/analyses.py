"""The analyses of protocol 11 as tables and sentences, computed from score rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.score.claims import sentences
from cardiolens.score.claims.analysis import (
    Analysis,
    ArmDifferenceRow,
    arm_differences,
    setting,
    single_arm_rows,
    where,
)
from cardiolens.score.claims.collapse_analysis import INDICES, collapse
from cardiolens.score.claims.confidence_analysis import CONFIDENCE, calibration, confidence, risk_and_coverage
from cardiolens.score.claims.evidence_analysis import Evidence, Place, Rows, by_interval, place, places
from cardiolens.score.claims.landscape import landscape
from cardiolens.score.claims.question_analysis import CONTROL_CAUSES, SUBJECTS, control_cause, questions
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics import pooled_questions, tier_changes
from cardiolens.score.statistics.differences import DIFFERING
from cardiolens.score.statistics.factors import ArmFactors, factors_of
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.score.statistics.lesion_twins import LESION_METRICS
from cardiolens.score.statistics.position_bias import ORDER_BIAS, POSITION_BIAS
from cardiolens.score.statistics.read_in_both import READ_IN_BOTH
from cardiolens.score.statistics.repeats import ANSWERS_CHANGED
from cardiolens.score.statistics.rows import ONE_ANSWER, Row
from cardiolens.score.statistics.suggestions import SUGGESTIONS

_OVER_MODELS = f"^({PREFIX}|{pooled_questions.PREFIX}|{tier_changes.PREFIX})"
_AnalysisFunction = Callable[[Sequence[Row], Sequence[ArmFactors]], Analysis]

_OWN_METRICS = ("image_gain", "text_shortcut", POSITION_BIAS, ANSWERS_CHANGED)
_DIFFERENCES = (
    *("primary", "primary.swap_p", "primary.holm_p", "primary.bounds"),
    *("primary.fdr_p", "primary.equivalence_fdr_p", f"primary.{READ_IN_BOTH}"),
    *("primary.equivalence", "primary.equivalence_holm_p", "primary.beyond_holm_p", DIFFERING),
)


def analyse(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> list[Analysis]:
    """Compute every analysis that the scores of these arms allow; empty ones are left out.

    Sentences on arms under a control come last.
    """
    later = {arm.arm_id: arm.control != "none" for arm in arms}
    scores = sorted(scores, key=lambda row: later.get(str(row["arm_id"]), False))
    functions: tuple[_AnalysisFunction, ...] = (
        collapse,
        slice_protocols,
        slice_budgets,
        prompting,
        controls,
        confidence,
        calibration,
        risk_and_coverage,
    )
    analyses = [
        questions(scores),
        landscape(scores, {arm.model for arm in arms if arm.simulated}),
        *(_of_both(make, scores, arms) for make in functions),
    ]
    return [analysis for analysis in analyses if analysis.rows]


def _of_both(make: _AnalysisFunction, scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Analyse all arms; findings on simulated readers come last and form separate families of tests."""
    of_all_arms = make(scores, arms)
    models, readers = ([arm for arm in arms if arm.simulated == kind] for kind in (False, True))
    if not (models and readers):
        return of_all_arms
    of_models, of_readers = (make(scores, group).findings for group in (models, readers))
    return replace(
        of_all_arms, findings=(*of_models, *(replace(finding, simulated=True) for finding in of_readers))
    )


def rows_read(scores: pa.Table, arms: Sequence[ArmFactors]) -> pa.Table:
    """Filter a part of the scores to the few rows that analyses read.

    Keep headlines, questions pooled over models, single arms and pairs of arms of one model; of subtasks only
    the single-arm indices of collapse and confidence.
    """
    metric, single = scores["metric"], pc.is_null(scores["versus_arm_id"])
    model = {arm.arm_id: arm.model for arm in arms}
    ours, theirs = (
        pa.array([model.get(name) for name in scores[side].to_pylist()], pa.string())
        for side in ("arm_id", "versus_arm_id")
    )
    within = pc.or_(single, pc.fill_null(pc.equal(ours, theirs), False))
    indices = pc.or_(
        pc.is_in(metric, value_set=pa.array(INDICES)),
        pc.is_in(pc.list_element(pc.split_pattern(metric, "."), 0), value_set=pa.array(CONFIDENCE)),
    )
    alone_at_subtask = pc.and_(single, indices)
    is_aggregate = pc.invert(pc.starts_with(scores["scope"], "subtask:"))
    within_aggregate = pc.and_(within, pc.or_(is_aggregate, alone_at_subtask))
    of_models = pc.match_substring_regex(scores["arm_id"], _OVER_MODELS)
    return scores.filter(pc.or_(of_models, within_aggregate))


def slice_protocols(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Differences between selectors: equivalence within two points, and the largest change."""
    pairs = [pair for pair in arm_differences(scores, arms, "selector") if pair.metric in _DIFFERENCES]
    across = [pair for pair in pairs if pair.ours.protocol != pair.theirs.protocol and pair.of_tier]
    rows_by_place = places(scores)
    findings = [
        sentences.equivalence(
            pair.ours.selector,
            pair.theirs.selector,
            where(pair, "selector"),
            pair.row,
            rows_by_place[place(pair.row)],
        )
        for pair in across
        if pair.metric == "primary.equivalence"
    ]
    return Analysis("slice protocols", _rows(pairs), (*findings, *_largest(across, rows_by_place)))


def _largest(pairs: Sequence[ArmDifferenceRow], rows_by_place: Mapping[Place, Rows]) -> list[Finding]:
    """The largest absolute change between selection protocols on any tier."""
    changes = [pair for pair in pairs if pair.metric == "primary" and not np.isnan(_value(pair))]
    if len(changes) < 2:
        return []
    largest = max(changes, key=lambda pair: abs(_value(pair)))
    between = f"{largest.ours.selector} and {largest.theirs.selector} on {where(largest, 'selector')}"
    description = f"change of {len(changes)} between selection protocols is {between}"
    return [
        sentences.largest(description, largest.row, Evidence.of(rows_by_place[place(largest.row)], "primary"))
    ]


def _value(pair: ArmDifferenceRow) -> float:
    return float(str(pair.row["value"]))


def slice_budgets(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Differences between budgets, larger minus smaller."""
    pairs = [pair for pair in arm_differences(scores, arms, "budget") if pair.metric in _DIFFERENCES]
    findings = _changes(
        scores, pairs, "budget", {"primary": "the score"}, "K = {ours} frames instead of {theirs}"
    )
    return Analysis("slice budgets", _rows(pairs), findings)


def prompting(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Differences between prompts, scores and conservatism (protocol 8.4)."""
    metrics = {*SUBJECTS, *_DIFFERENCES}
    pairs = [pair for pair in arm_differences(scores, arms, "prompt") if pair.metric in metrics]
    findings = _changes(scores, pairs, "prompt", SUBJECTS, "Prompt {ours} instead of {theirs}")
    return Analysis("prompting", _rows(pairs), findings)


def controls(scores: Sequence[Row], arms: Sequence[ArmFactors]) -> Analysis:
    """Gain over controls; over a blind reader it is the part of a score due to the images."""
    pairs = [
        pair
        for pair in arm_differences(scores, arms, "control")
        if pair.metric in _DIFFERENCES and (pair.ours.control == "none" or _of_captions(pair))
    ]
    frame_pairs, caption_pairs = (
        [pair for pair in pairs if _of_captions(pair) == of] for of in (False, True)
    )
    score = {"primary": "the score"}
    findings = tuple(
        finding
        for control in dict.fromkeys((*CONTROL_CAUSES, *(pair.theirs.control for pair in frame_pairs)))
        for finding in _changes(
            scores,
            [pair for pair in frame_pairs if pair.theirs.control == control],
            "control",
            score,
            control_cause(control),
        )
    )
    findings += _changes(
        scores, caption_pairs, "control", score, "Reading the {ours} of frames instead of none"
    )
    labels = factors_of(arms)
    own_rows = [row for row in scores if str(row["metric"]).partition(".")[0] in _OWN_METRICS]
    own_rows = [row for row in own_rows if not str(row["scope"]).startswith("subtask:")]
    claims: list[Finding] = []
    for metric in ("text_shortcut", POSITION_BIAS):
        rows = [row for row in single_arm_rows(own_rows) if row["arm_id"] in labels and _kind(row) == metric]
        claims += [
            _own_finding(row, labels, evidence) for row, evidence in zip(rows, by_interval(rows), strict=True)
        ]
    repeat_rows = [row for row in own_rows if row["metric"] == ANSWERS_CHANGED]
    claims += [
        _repetition(row, labels, evidence)
        for row, evidence in zip(repeat_rows, by_interval(repeat_rows), strict=True)
    ]
    order_rows = [row for row in scores if row["metric"] == ORDER_BIAS]
    led_rows = [row for row in scores if row["metric"] in SUGGESTIONS | LESION_METRICS]
    return Analysis("controls", [*_rows(pairs), *own_rows, *order_rows, *led_rows], (*findings, *claims))


def _of_captions(pair: ArmDifferenceRow) -> bool:
    """Return whether captions are compared with text alone (protocol 16.8)."""
    return (pair.ours.control, pair.theirs.control) == ("captions", "blind")


def _kind(row: Row) -> str:
    return str(row["metric"]).partition(".")[0]


def _own_finding(row: Row, labels: dict[str, ArmFactors], evidence: Evidence) -> Finding:
    """Finding on a control-specific statistic."""
    arm, scope = setting(labels[str(row["arm_id"])]), str(row["scope"]).replace(":", " ")
    metric, _, place = str(row["metric"]).partition(".")
    if metric == "text_shortcut":
        cause = "Reading the text alone instead of always giving the best constant answer"
        if ONE_ANSWER in str(row["method"]):
            sentence = f"{arm} gives one answer a subtask on {scope}: the text alone is no shortcut."
            return Finding("below", sentence)
        return sentences.change(cause, f"the score on {scope} ({arm})", row, evidence)
    cause = f"Standing in place {place} of the list instead of elsewhere"
    beyond = "how often an option is picked beyond how often it is right"
    return sentences.change(cause, f"{beyond} ({arm})", row, evidence)


def _repetition(row: Row, labels: dict[str, ArmFactors], evidence: Evidence) -> Finding:
    scope = str(row["scope"]).replace(":", " ")
    return sentences.repetition(f"{setting(labels[str(row['arm_id'])])} on {scope}", row, evidence)


def _rows(pairs: Sequence[ArmDifferenceRow]) -> list[Row]:
    return [pair.row for pair in pairs if not str(pair.row["scope"]).startswith("subtask:")]


def _changes(
    scores: Sequence[Row],
    pairs: Sequence[ArmDifferenceRow],
    factor: str,
    subjects: Mapping[str, str],
    cause: str,
) -> tuple[Finding, ...]:
    """One finding per tier and metric, from the difference and its evidence."""
    rows_by_place = places(scores)
    return tuple(
        sentences.change(
            cause.format(ours=getattr(pair.ours, factor), theirs=getattr(pair.theirs, factor)),
            f"{subjects[pair.metric]} on {where(pair, factor)}",
            pair.row,
            Evidence.of(rows_by_place[place(pair.row)], pair.metric),
        )
        for pair in pairs
        if pair.metric in subjects and pair.of_tier
    )
