"""The headline of each model, and how models compare over the tiers (protocol 8.2, 11)."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from cardiolens.findings import sentences
from cardiolens.findings.analysis import Analysis
from cardiolens.findings.sentences import Finding
from cardiolens.stats.headlines import PREFIX
from cardiolens.stats.items import Floats
from cardiolens.stats.paired import kendall, wilcoxon
from cardiolens.stats.rows import TIERS, Row


def landscape(scores: Sequence[Row]) -> Analysis:
    """Headlines of models, raw and as skill; decline over tiers, agreement of ranks, differences."""
    rows = [row for row in scores if str(row["arm_id"]).startswith(PREFIX)]
    found = [*_declines(rows), *_differences(rows)]
    return Analysis("landscape", rows, tuple(found))


def _differences(rows: Sequence[Row]) -> Iterator[Finding]:
    for row in rows:
        if row["metric"] == "primary" and row["versus_arm_id"] is not None:
            ours, theirs = (str(row[name]).removeprefix(PREFIX) for name in ("arm_id", "versus_arm_id"))
            tier = str(row["scope"]).replace(":", " ")
            yield sentences.change(f"Model {ours} instead of {theirs}", f"the headline score on {tier}", row)


def _declines(rows: Sequence[Row]) -> Iterator[Finding]:
    """Whether scores and skill change from tier to tier over models, and whether tiers 1 and 3 rank alike."""
    value = {
        (row["arm_id"], row["metric"], row["scope"]): float(str(row["value"]))
        for row in rows
        if row["versus_arm_id"] is None
    }
    models = sorted({str(arm) for arm, _, _ in value})

    def of(metric: str, tier: str) -> Floats:
        return np.array([value.get((model, metric, tier), np.nan) for model in models])

    for metric, name in (("primary", "scores"), ("primary.skill", "skill")):
        for earlier, later in combinations(TIERS, 2):
            yield from _decline(name, (earlier, later), of(metric, later) - of(metric, earlier))
    yield from _rank_agreement(of("primary", "tier:1"), of("primary", "tier:3"))


def _decline(name: str, tiers: tuple[str, str], change: Floats) -> Iterator[Finding]:
    change = change[~np.isnan(change)]
    if len(change) > 1:
        test, median = wilcoxon(change), float(np.median(change))
        than = "lower" if median < 0 else "higher"
        earlier, later = (tier.replace(":", " ") for tier in tiers)
        claim = f"{name} of models are {than} on {later} than on {earlier}"
        detail = f"median change {sentences.signed(median)} over {len(change)} models, Wilcoxon {test.method}"
        yield sentences.tested(claim, test.p, detail)


def _rank_agreement(first: Floats, third: Floats) -> Iterator[Finding]:
    both = ~np.isnan(first) & ~np.isnan(third)
    test = kendall(first[both], third[both])
    if not np.isnan(test.p):
        detail = f"Kendall's tau {sentences.signed(test.statistic, 2)} over {both.sum()} models"
        alike = "alike" if test.statistic > 0 else "in opposite order"
        yield sentences.tested(f"tiers 1 and 3 rank models {alike}", test.p, detail)
