"""Two sides on the same items and resamples: their difference, its p, and what is not known of it.

A side is an arm, or all arms behind the headline of a model (protocol 8.5).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cardiolens.runtime.processes import spread
from cardiolens.score.statistics.arm_statistics import claimed_statistics
from cardiolens.score.statistics.comparisons import RUN, VARIED, Effect
from cardiolens.score.statistics.counting import (
    EXTRA_METRICS,
    Cells,
    Key,
    cells_of,
    claimed_values,
    values_of,
)
from cardiolens.score.statistics.factors import ArmFactors, ArmPair, Families
from cardiolens.score.statistics.hypothesis_tests import coins, row_p, swap_p
from cardiolens.score.statistics.items import Answers, ArmAnswers, Bools, Floats, Ints, Items, Rows
from cardiolens.score.statistics.metrics import CRITERION, D_PRIME, SEVERITY_SHIFT
from cardiolens.score.statistics.statistic import Resampling, Row, Statistic

MANY = 2**24  # resampled patients of all arms, or pairs, from which worker processes pay off
_CHUNK = 16  # pairs per task of a worker process; neighbours share arms
_UNREAD = ("parse_error", "contradicted")  # parse statuses of replies that could not be read
_READ = ("ok", "inconsistent")  # any other was cut, refused, asked back, or could not be parsed
_ENDS: Mapping[str, tuple[str, str]] = {  # what a missing answer is at the low and at the high end
    "mean_cardinality": ("normal", "abnormal"),
    SEVERITY_SHIFT: ("normal", "abnormal"),
    CRITERION: ("abnormal", "normal"),
    D_PRIME: ("opposite", "right"),
}
_OF_SCORES = ("wrong", "right")
EffectKey = tuple[Key, bool]  # whether over the items whose requests differ alone


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: arms that stand one for one against those of the other side."""

    judged: Sequence[Answers]  # on the items that all arms of both sides judged
    asked: Sequence[Answers]  # on all of their items
    cells: Sequence[Cells]  # of `judged`
    statistics: Mapping[Key, Statistic]


class PairComparison(NamedTuple):
    """The rows of a pair of arms; where they are pooled, its effects by key."""

    pair: ArmPair
    rows: list[Row]
    effects: Mapping[EffectKey, Effect]


def compare_pairs(
    answers: ArmAnswers,
    statistics: Mapping[str, Mapping[Key, Statistic]],
    families: Families,
    sampling: Resampling,
    arms: Sequence[ArmFactors],
    *,
    pooled: Collection[ArmPair],
) -> Iterator[PairComparison]:
    """Yield the comparisons of each pair of each factor, on the items judged in both arms.

    `statistics` are the claimable ones of each arm; the effects of `pooled` pairs are kept. Worker processes
    do it where that pays off; neither their number nor order changes a digit.
    """
    tasks = [(factor, pair, pair in pooled) for factor, of_factor in families.items() for pair in of_factor]
    by_id = {arm.arm_id: arm for arm in arms}
    compare = partial(_compared_pair, answers, statistics, sampling, by_id)
    return spread(compare, tasks, chunk=_CHUNK, worth=len(tasks) * sampling.weights.size >= MANY)


def _compared_pair(
    answers: ArmAnswers,
    statistics: Mapping[str, Mapping[Key, Statistic]],
    sampling: Resampling,
    arms: Mapping[str, ArmFactors],
    task: tuple[str, ArmPair, bool],
) -> PairComparison:
    """Compare a pair that differs in a factor, and keep its effects if it is pooled."""
    factor, pair, is_pooled = task
    metrics = ("primary", *EXTRA_METRICS) if factor == "prompt" else ("primary",)
    ours, theirs = (arms[name] for name in pair)
    labels, rows, effects = _labels(factor, ours, theirs), [], dict[EffectKey, Effect]()
    for key, effect, differing, row in compare_arms(answers, statistics, sampling, pair, metrics):
        rows.append(labels | row)
        if is_pooled:
            effects[key, False] = effect
            if differing is not None:
                effects[key, True] = differing
    return PairComparison(pair, rows, effects)


def compare_arms(
    answers: ArmAnswers,
    statistics: Mapping[str, Mapping[Key, Statistic]],
    sampling: Resampling,
    pair: ArmPair,
    metrics: Sequence[str] = ("primary",),
) -> Iterator[tuple[Key, Effect, Effect | None, Row]]:
    """Yield the differences of two arms: what is known of each, that over differing requests, and its row."""
    asked = [answers.asked[name] for name in pair]
    every = [of_arm.judged for of_arm in asked]
    common = [every[0].common_with(every[1]), every[1].common_with(every[0])]
    is_whole = [*map(len, common)] == [*map(len, every)]
    ours, theirs = (
        _side(judged, of_arm, sampling, statistics.get(name) if is_whole else None)
        for name, judged, of_arm in zip(pair, common, asked, strict=True)
    )
    keys = sorted((key for key in ours.statistics if key[0] in metrics), key=lambda key: key[::-1])
    differences = _differing(common[0], common[1], sampling)
    for key, effect, row in compare_sides(ours, theirs, [1.0], keys, sampling):
        differing = None
        if key in differences:
            interval = differences[key].interval(key[0], level=0.9)
            row |= {"differing_low_90": interval.low, "differing_high_90": interval.high}
        if key[0] == "primary" and effect.n_same < effect.statistic.basis.n_items:
            differing = Effect.of(differences.get(key, effect.statistic))
        yield key, effect, differing, row


def _side(
    judged: Answers, asked: Answers, sampling: Resampling, statistics: Mapping[Key, Statistic] | None = None
) -> Side:
    """An arm on some of its judged items, or with `statistics` on the whole of them."""
    cells = cells_of(judged, sampling.patients)
    if statistics is None:
        statistics = claimed_statistics(judged, cells, sampling)
    return Side([judged], [asked], [cells], statistics)


def _differing(ours: Answers, theirs: Answers, sampling: Resampling) -> dict[Key, Statistic]:
    """Differences of scores over the items with differing requests; none where all differ."""
    items = ours.items.request != theirs.items.request
    reports = ours.reports.request != theirs.reports.request
    if items.all() and reports.all():
        return {}
    parts = (side.where(items, reports) for side in (ours, theirs))
    first, second = (_side(part, part, sampling) for part in parts)
    return _differences(first, second, [key for key in first.statistics if key[0] == "primary"])


def _labels(factor: str, ours: ArmFactors, theirs: ArmFactors) -> Row:
    """The columns that say what is compared, and in which family of tests."""
    simulated = ours.simulated or theirs.simulated
    family = VARIED if factor in RUN else factor
    return {
        "factor": factor,
        "arm_id": ours.arm_id,
        "versus_arm_id": theirs.arm_id,
        "level": str(getattr(ours, factor)),
        "versus": str(getattr(theirs, factor)),
        "model": ours.model if factor != "model" else None,
        "family": f"{family}, simulated readers" if simulated else family,
        "adjustment": "fdr" if factor in RUN and not simulated else "holm",
        "simulated": simulated,
    }


def compare_sides(
    ours: Side,
    theirs: Side,
    shares: Sequence[float],
    keys: Collection[Key],
    sampling: Resampling,
    *,
    against_margin: bool = True,
) -> Iterator[tuple[Key, Effect, Row]]:
    """Yield the differences that both sides have: what is known of each, and its row.

    `shares` are those of the arms in the mean of their side.
    """
    differences = _differences(ours, theirs, keys)
    p_values = _swap_p(ours, theirs, shares, differences, sampling)
    min_n = sampling.settings.min_n
    limits, read = (found(ours, theirs, shares, min_n) for found in (_limits, _read_in_both))
    for key, difference in differences.items():
        first, second = (side.judged[0].of_tier(key[1]) for side in (ours, theirs))
        n_same = int((first.request == second.request).sum())  # on these both arms are equal
        effect = Effect.of(difference)._replace(n_same=n_same, **limits.get(key, {}), **read.get(key, {}))
        row = effect.row(key, sampling.method, against_margin=against_margin)
        if key in p_values:
            row["p"] = p_values[key]
            if difference.basis.n_hospitals is not None:
                # swaps of patients know nothing of hospitals; whole hospitals are too few to be swapped
                row["p"] = max(row["p"], row_p(row, difference.basis.units))
        yield key, effect, row


def _differences(ours: Side, theirs: Side, keys: Collection[Key]) -> dict[Key, Statistic]:
    differences = {}
    for key in (key for key in keys if key in theirs.statistics):
        first, second = ours.statistics[key], theirs.statistics[key]
        fewest = min(first.basis.n_effective, second.basis.n_effective)  # of calls, by the rarer ones
        basis = replace(first.basis, n_effective=fewest)
        differences[key] = Statistic(first.values - second.values, basis, of_pairs=True)
    return differences


def _swap_p(
    ours: Side, theirs: Side, shares: Sequence[float], keys: Collection[Key], sampling: Resampling
) -> dict[Key, float]:
    """P-values from swapping whole patients between both sides, in all their arms at once."""
    if not all(ours.cells):
        return {}
    ends = np.cumsum([len(rows) for cells in ours.cells for rows in cells.values()])[:-1]

    def mean(sums: Floats) -> dict[Key, Floats]:
        rows = iter(np.split(sums, ends))
        values = [
            claimed_values(cells, [next(rows) for _ in cells], sampling.settings.min_n)
            for cells in ours.cells
        ]
        return {
            key: np.sum([share * of_arm[key] for share, of_arm in zip(shares, values, strict=True)], axis=0)
            for key in values[0]
            if key in keys
        }

    first, second = (
        np.concatenate([rows for cells in side.cells for rows in cells.values()]) for side in (ours, theirs)
    )
    chosen = sampling.settings
    return swap_p(first, second, mean, coins(sampling.patients, chosen.seed, chosen.swaps))


def _limits(ours: Side, theirs: Side, shares: Sequence[float], min_n: int) -> dict[Key, dict[str, Any]]:
    """Limits of the mean difference over all items asked; empty if nothing is missing.

    At the low end every answer that the first side lacks lowers the statistic (of a score: wrong), and every
    one that the second side lacks raises it; at the high end the reverse. A reply that was not read is an
    answer that a side lacks.
    """
    asked, *rest = [*ours.asked, *theirs.asked]
    read = common = ours.judged[0]
    for answers in (asked, *rest):
        asked = asked.joined_with(answers.common_with(asked, out=True))
        read = read.common_with(_where_read(answers))
    if len(asked) == len(read):
        return {}
    filled = {
        fill: [
            _mean([_filled(arm, asked, fill) for arm in side.asked], shares, min_n) for side in (ours, theirs)
        ]
        for fill in _FILLS
    }
    limits = {}
    for key in filled["right"][0]:
        n_asked, n_common, n_known = (len(rows.of_tier(key[1])) for rows in (asked, common, read))
        if n_known < n_asked:
            worst, best = (filled[fill] for fill in _ENDS.get(key[0], _OF_SCORES))
            ends = {"low": worst[0][key] - best[1][key], "high": best[0][key] - worst[1][key]}
            counts = {"n_missing": n_asked - n_common, "n_dropped": n_asked - n_known, "n_asked": n_asked}
            limits[key] = ends | counts
    return limits


def _read_in_both(ours: Side, theirs: Side, shares: Sequence[float], min_n: int) -> dict[Key, dict[str, Any]]:
    """Differences on what was read in both arms at once, on tiers where something was not.

    Subtasks that the tier means leave out stay out.
    """
    every = (arm for side in (ours, theirs) for arm in side.judged)
    if all(_is_read(rows).all() for arm in every for rows in (arm.items, arm.reports)):
        return {}
    sides = [[_sufficient(arm, min_n) for arm in side.judged] for side in (ours, theirs)]
    read = []
    for first, second in zip(*sides, strict=True):
        items = _is_read(first.items) & _is_read(second.items)
        reports = _is_read(first.reports) & _is_read(second.reports)
        read.append([side.where(items, reports) for side in (first, second)])
    values, versus = (_mean(arms, shares, 1) for arms in zip(*read, strict=True))
    values_by_key = {}
    for key in values:
        n_read = sum(len(first.of_tier(key[1])) for first, _ in read)
        n_unread, n_versus = (
            sum(int((~_is_read(arm.of_tier(key[1]))).sum()) for arm in arms) for arms in sides
        )
        if n_unread + n_versus:
            counts = {"n_read": n_read, "n_unread": n_unread, "n_unread_versus": n_versus}
            values_by_key[key] = {"read": values[key] - versus[key], **counts}
    return values_by_key


def _mean(arms: Sequence[Answers], shares: Sequence[float], min_n: int) -> dict[Key, float]:
    """The mean of the statistics that all arms of a side have."""
    first, *rest = values = [values_of(arm, min_n) for arm in arms]
    keys = (key for key in first if all(key in of_arm for of_arm in rest))
    return {key: sum(share * of[key] for share, of in zip(shares, values, strict=True)) for key in keys}


def _is_read(rows: Rows) -> Bools:
    first, second = _READ
    is_read: Bools = (rows.parse_status == first) | (rows.parse_status == second)
    return is_read


def _sufficient(answers: Answers, min_n: int) -> Answers:
    items = answers.items
    names, numbers = np.unique(items.subtask[items.tier == 1], return_counts=True)
    return replace(answers, items=items.where(~np.isin(items.subtask, names[numbers < min_n])))


def _where_read(answers: Answers) -> Answers:
    """The judged rows but those of replies that were not read: what they answer is not known."""
    items, reports = answers.items, answers.reports
    return answers.where(items.judged & ~np.isin(items.parse_status, _UNREAD), reports.judged)


def _filled(arm: Answers, asked: Answers, fill: str) -> Answers:
    """All that was asked, with every answer that an arm lacks filled in; of reports, as right or wrong."""
    read = _where_read(arm)
    missing = asked.common_with(read, out=True)
    items, reports = missing.items, missing.reports
    counts = np.zeros_like(reports.counts)
    counts[:, reports.names.index("tp" if fill == "right" else "fn")] = reports.gold.sum(axis=1)
    items, reports = replace(items, parsed=_FILLS[fill](items)), replace(reports, counts=counts)
    return read.joined_with(Answers(items, reports))


def _all_options(items: Items) -> Ints:
    """All options of a set, the last of a choice.

    An item has as many as the most that is known of its subtask, since items that were not judged say
    nothing; at least two.
    """
    _, subtask = np.unique(items.subtask, return_inverse=True)
    of_gold = np.ceil(np.log2(items.gold + 1.0)).astype(np.int64)
    most = np.full(int(subtask.max(initial=-1)) + 1, 2)
    np.maximum.at(most, subtask, np.maximum(items.options, of_gold))
    sizes = most[subtask]
    return np.where(items.answer_type == "multi", (1 << sizes) - 1, 1 << (sizes - 1))


_FILLS: Mapping[str, Callable[[Items], Ints]] = {
    "right": lambda items: items.gold,
    "wrong": lambda items: np.zeros_like(items.gold),
    "normal": lambda items: np.ones_like(items.gold),
    "abnormal": _all_options,
    "opposite": lambda items: np.where(items.gold == 1, _all_options(items), 1),
}
