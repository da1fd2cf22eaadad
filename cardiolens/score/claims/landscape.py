"""Headline scores of all models, compared over models and tiers (protocol 8.2, 11)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from cardiolens.score.claims import sentences
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.claims.evidence_analysis import Evidence, interval_of, place, places
from cardiolens.score.claims.sentences import Finding, Side
from cardiolens.score.statistics import tier_changes
from cardiolens.score.statistics.corrected import CORRECTED, EXACT
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.score.statistics.hypothesis_tests import holm
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.paired import kendall
from cardiolens.score.statistics.rows import TIERS, Row
from cardiolens.score.statistics.tier_changes import CHANGE_P


def landscape(scores: Sequence[Row], simulated: Collection[str] = ()) -> Analysis:
    """Headlines of models, raw and as skill: decline over tiers, agreement of ranks, differences.

    Simulated readers are in the table, but in no sentence (protocol 16.4).
    """
    rows = [row for row in scores if str(row["arm_id"]).startswith(PREFIX)]
    unreal = {f"{PREFIX}{model}" for model in simulated}
    models = [row for row in rows if not {row["arm_id"], row["versus_arm_id"]} & unreal]
    changes = [row for row in scores if str(row["arm_id"]).startswith(tier_changes.PREFIX)]
    findings = [*declines([*models, *changes]).values(), *_agreements(models), *_differences(models)]
    return Analysis("landscape", [*rows, *changes], tuple(findings))


def _differences(rows: Sequence[Row]) -> Iterator[Finding]:
    rows_by_place = places(rows)
    for row in rows:
        if row["metric"] == "primary" and row["versus_arm_id"] is not None:
            ours, theirs = (str(row[name]).removeprefix(PREFIX) for name in ("arm_id", "versus_arm_id"))
            tier = str(row["scope"]).replace(":", " ")
            evidence = Evidence.of(rows_by_place[place(row)], "primary")
            cause = f"Model {ours} instead of {theirs}"
            yield sentences.change(cause, f"the headline score on {tier}", row, evidence)


def declines(rows: Sequence[Row]) -> dict[tuple[str, str], Finding]:
    """Findings on accuracy from tier to tier over models, by the earlier and the later tier.

    A change is claimed on corrected accuracy alone, and only where the share of exact answers changes the
    same way: neither readers that know as much in each tier and guess the rest, nor readers that are wrong as
    often in each tier, decline (protocol 16.4). Patients are as random as models (17.7). Holm is over the
    pairs of tiers.
    """
    changes = [row for row in rows if str(row["arm_id"]).startswith(tier_changes.PREFIX)]
    by_tiers: dict[tuple[str, str], dict[str, Row]] = {tiers: {} for tiers in combinations(TIERS, 2)}
    for row in changes if len(_headline_values(rows, "primary", TIERS[0])) > 1 else ():
        earlier, later = (
            str(row[name]).removeprefix(tier_changes.PREFIX) for name in ("versus_arm_id", "arm_id")
        )
        by_tiers[earlier, later][str(row["metric"])] = row
    p_values = holm([_decline_p(of_tiers) for of_tiers in by_tiers.values()])
    findings = {}
    for (tiers, of_tiers), p in zip(by_tiers.items(), p_values, strict=True):
        if CORRECTED in of_tiers:
            described = {
                metric: _headline_values(rows, metric, tiers[1]) - _headline_values(rows, metric, tiers[0])
                for metric in _DESCRIBED
            }
            findings[tiers] = _decline(tiers, of_tiers[CORRECTED], described, p)
    return findings


def _headline_values(rows: Sequence[Row], metric: str, tier: str) -> Floats:
    """The headline of each model, sorted by model; NaN where it has none."""
    headline_rows = [row for row in rows if row["versus_arm_id"] is None]
    value = {
        str(row["arm_id"]): float(str(row["value"]))
        for row in headline_rows
        if (row["metric"], row["scope"]) == (metric, tier)
    }
    return np.array(
        [value.get(model, np.nan) for model in sorted({str(row["arm_id"]) for row in headline_rows})]
    )


def _agreements(rows: Sequence[Row]) -> Iterator[Finding]:
    """Findings on agreement of the ranks of models on tiers 1 and 3."""
    yield from _rank_agreement(*(_headline_values(rows, "primary", tier) for tier in (TIERS[0], TIERS[2])))


def _decline_p(of_tiers: Mapping[str, Row]) -> float:
    """The larger p of both changes; 1 if they have opposite signs."""
    if not {CORRECTED, EXACT} <= of_tiers.keys():
        return float("nan")
    corrected, exact = (float(str(of_tiers[metric]["value"])) for metric in (CORRECTED, EXACT))
    p_values = [float(str(of_tiers[f"{metric}.{CHANGE_P}"]["value"])) for metric in (CORRECTED, EXACT)]
    return 1.0 if np.sign(corrected) != np.sign(exact) or np.isnan(p_values).any() else max(p_values)


def _decline(tiers: tuple[str, str], row: Row, described: Mapping[str, Floats], p: float) -> Finding:
    change = interval_of(row)
    side: Side = "below" if change.value < 0 else "above"
    than = "lower" if side == "below" else "higher"
    earlier, later = (tier.replace(":", " ") for tier in tiers)
    claim = f"accuracy of models corrected for guessing is {than} on {later} than on {earlier}"
    medians = [
        f"{name} {sentences.signed(_median(described[metric]))}" for metric, name in _DESCRIBED.items()
    ]
    ends = ""
    if not np.isnan(change.low):
        ends = f", 95 % CI {sentences.signed(change.low)} to {sentences.signed(change.high)},"
    detail = (
        f"{str(row['method']).partition(',')[0]} {sentences.signed(change.value)}{ends} with patients as "
    )
    detail += f"random as models (described beside it, medians: {', '.join(medians)})"
    return sentences.hypothesis(claim, side, p, detail, "Holm, ")


def _median(change: Floats) -> float:
    defined = change[~np.isnan(change)]
    return float(np.median(defined)) if len(defined) else float("nan")


_DESCRIBED = {EXACT: "exact answers", "primary": "primary score", "primary.skill": "skill"}


def _rank_agreement(first: Floats, third: Floats) -> Iterator[Finding]:
    is_defined = ~np.isnan(first) & ~np.isnan(third)
    test = kendall(first[is_defined], third[is_defined])
    if not np.isnan(test.p):
        detail = f"Kendall's tau {sentences.signed(test.statistic, 2)} over {is_defined.sum()} models"
        side: Side = "above" if test.statistic > 0 else "below"
        alike = "alike" if side == "above" else "in opposite order"
        yield sentences.hypothesis(f"tiers 1 and 3 rank models {alike}", side, test.p, detail)
