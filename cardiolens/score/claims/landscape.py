"""Headline scores of all models, compared over models and tiers (protocol 8.2, 11)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from cardiolens.score.claims import sentences
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.claims.evidence_analysis import Evidence, place, places
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.corrected import CORRECTED, EXACT
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.score.statistics.hypothesis_tests import holm
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.paired import kendall, wilcoxon
from cardiolens.score.statistics.rows import TIERS, Row


def landscape(scores: Sequence[Row], simulated: Collection[str] = ()) -> Analysis:
    """Headlines of models, raw and as skill: decline over tiers, agreement of ranks, differences.

    Simulated readers are in the table, but in no sentence (protocol 16.4).
    """
    rows = [row for row in scores if str(row["arm_id"]).startswith(PREFIX)]
    unreal = {f"{PREFIX}{model}" for model in simulated}
    models = [row for row in rows if not {row["arm_id"], row["versus_arm_id"]} & unreal]
    findings = [*_declines(models), *_differences(models)]
    return Analysis("landscape", rows, tuple(findings))


def _differences(rows: Sequence[Row]) -> Iterator[Finding]:
    rows_by_place = places(rows)
    for row in rows:
        if row["metric"] == "primary" and row["versus_arm_id"] is not None:
            ours, theirs = (str(row[name]).removeprefix(PREFIX) for name in ("arm_id", "versus_arm_id"))
            tier = str(row["scope"]).replace(":", " ")
            evidence = Evidence.of(rows_by_place[place(row)], "primary")
            cause = f"Model {ours} instead of {theirs}"
            yield sentences.change(cause, f"the headline score on {tier}", row, evidence)


def _declines(rows: Sequence[Row]) -> Iterator[Finding]:
    """Findings on accuracy from tier to tier over models, and on agreement of ranks of tiers 1 and 3.

    A change is claimed on corrected accuracy alone, and only where the share of exact answers changes the
    same way: neither readers that know as much in each tier and guess the rest, nor readers that are wrong as
    often in each tier, decline (protocol 16.4). Holm is over the pairs of tiers.
    """
    value = {
        (row["arm_id"], row["metric"], row["scope"]): float(str(row["value"]))
        for row in rows
        if row["versus_arm_id"] is None
    }
    models = sorted({str(arm) for arm, _, _ in value})

    def of(metric: str, tier: str) -> Floats:
        return np.array([value.get((model, metric, tier), np.nan) for model in models])

    pairs = list(combinations(TIERS, 2))
    changes = {
        (metric, tiers): of(metric, tiers[1]) - of(metric, tiers[0])
        for metric in (CORRECTED, EXACT, "primary", "primary.skill")
        for tiers in pairs
    }
    p_values = holm([_decline_p(changes[CORRECTED, tiers], changes[EXACT, tiers]) for tiers in pairs])
    for tiers, p in zip(pairs, p_values, strict=True):
        yield from _decline(
            tiers, {metric: change for (metric, at), change in changes.items() if at == tiers}, p
        )
    yield from _rank_agreement(of("primary", "tier:1"), of("primary", "tier:3"))


def _decline_p(corrected: Floats, exact: Floats) -> float:
    """The larger p of both changes over models; 1 if they have opposite signs."""
    is_defined = ~np.isnan(corrected) & ~np.isnan(exact)
    if is_defined.sum() < 2:
        return float("nan")
    if np.sign(np.median(corrected[is_defined])) != np.sign(np.median(exact[is_defined])):
        return 1.0
    p_values = [wilcoxon(change[is_defined]).p for change in (corrected, exact)]
    return 1.0 if np.isnan(p_values).any() else max(p_values)


def _decline(tiers: tuple[str, str], changes: Mapping[str, Floats], p: float) -> Iterator[Finding]:
    medians = {metric: _median(change) for metric, change in changes.items()}
    number = int((~np.isnan(changes[CORRECTED])).sum())
    if number > 1:
        than = "lower" if medians[CORRECTED] < 0 else "higher"
        earlier, later = (tier.replace(":", " ") for tier in tiers)
        claim = f"accuracy of models corrected for guessing is {than} on {later} than on {earlier}"
        descriptions = [f"{name} {sentences.signed(medians[metric])}" for metric, name in _DESCRIBED.items()]
        detail = (
            f"median change {sentences.signed(medians[CORRECTED])} over {number} models (described beside "
        )
        yield sentences.hypothesis(claim, p, f"{detail}it: {', '.join(descriptions)}), Wilcoxon and Holm")


def _median(change: Floats) -> float:
    defined = change[~np.isnan(change)]
    return float(np.median(defined)) if len(defined) else float("nan")


_DESCRIBED = {EXACT: "exact answers", "primary": "primary score", "primary.skill": "skill"}


def _rank_agreement(first: Floats, third: Floats) -> Iterator[Finding]:
    is_defined = ~np.isnan(first) & ~np.isnan(third)
    test = kendall(first[is_defined], third[is_defined])
    if not np.isnan(test.p):
        detail = f"Kendall's tau {sentences.signed(test.statistic, 2)} over {is_defined.sum()} models"
        alike = "alike" if test.statistic > 0 else "in opposite order"
        yield sentences.hypothesis(f"tiers 1 and 3 rank models {alike}", test.p, detail)
