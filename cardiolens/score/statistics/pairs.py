"""Two sides on the same items and resamples: their difference, its p, and what is not known of it.

A side is an arm, or all arms behind the headline of a model (protocol 8.5).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardiolens.runtime.processes import spread
from cardiolens.score.statistics.answers import Answers, ArmAnswers
from cardiolens.score.statistics.arm_statistics import claimed_statistics
from cardiolens.score.statistics.comparisons import RUN, VARIED, Effect
from cardiolens.score.statistics.counting import EXTRA_METRICS, Cells, Key, claimed_values, values_of
from cardiolens.score.statistics.factors import ArmFactors, ArmPair, Families
from cardiolens.score.statistics.hypothesis_tests import coins, row_p, swap_p
from cardiolens.score.statistics.items import Bools, Floats, Ints, Items, Rows
from cardiolens.score.statistics.metrics import CRITERION, D_PRIME, SEVERITY_SHIFT
from cardiolens.score.statistics.statistic import Resampling, Row, Statistic
from cardiolens.score.statistics.verdict_rows import SpilledMapping

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


@dataclass(frozen=True, slots=True)
class PairComparison:
    """The rows of a pair of arms; where they are pooled, its effects by key, and where requests differ."""

    arm: str
    versus: str
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

    `statistics` are the claimable ones of each arm; the effects of `pooled` pairs, in either direction, are
    kept. Worker processes do it where that pays off; neither their number nor order changes a digit.
    """
    pairs = [(factor, *pair) for factor, of_factor in families.items() for pair in of_factor]
    pooled_pairs = frozenset(frozenset(pair) for pair in pooled)
    labels = {arm.arm_id: arm for arm in arms}
    compare = _Comparing(answers, statistics, sampling, labels, pooled_pairs)
    return spread(compare, pairs, chunk=_CHUNK, worth=len(pairs) * sampling.weights.size >= MANY)


@dataclass(slots=True)
class _Comparing:
    """Compares pairs of arms in one process, which caches the cells of arms that it has seen."""

    answers: ArmAnswers
    statistics: Mapping[str, Mapping[Key, Statistic]]
    sampling: Resampling
    labels: Mapping[str, ArmFactors]
    pooled_pairs: frozenset[frozenset[str]]
    cells: SpilledMapping[str, Cells] | None = None  # of arms on all judged items; each process has a file

    def __call__(self, task: tuple[str, str, str]) -> PairComparison:
        """Compare a (factor, arm, versus arm)."""
        factor, arm, versus = task
        names = arm, versus
        every = [self.answers.judged(name) for name in names]
        common = [every[0].common_with(every[1]), every[1].common_with(every[0])]
        is_whole = [*map(len, common)] == [*map(len, every)]
        sides = zip(names, common, strict=True)
        ours, theirs = (self._side(name, judged, is_whole=is_whole) for name, judged in sides)
        metrics = ("primary", *EXTRA_METRICS) if factor == "prompt" else ("primary",)
        keys = sorted((key for key in ours.statistics if key[0] in metrics), key=lambda key: key[::-1])
        differing = self._differing(*common)
        labels, rows, effects = self._labels(factor, arm, versus), [], {}
        for key, effect, row in compare_sides(ours, theirs, [1.0], keys, self.sampling):
            if key in differing:
                interval = differing[key].interval(key[0], level=0.9)
                row |= {"differing_low_90": interval.low, "differing_high_90": interval.high}
            rows.append(labels | row)
            effects[key, False] = effect
            if key[0] == "primary" and effect.reach.n_same < effect.statistic.basis.n_items:
                effects[key, True] = Effect.of(differing.get(key, effect.statistic))
        return PairComparison(arm, versus, rows, effects if frozenset(names) in self.pooled_pairs else {})

    def _side(self, arm: str, judged: Answers, *, is_whole: bool) -> Side:
        """An arm on some of its judged items, or on the whole of them."""
        if not is_whole:
            return self._side_of(judged, self.answers.asked[arm])
        if self.cells is None:
            self.cells = SpilledMapping()
        if arm not in self.cells:
            self.cells[arm] = Cells.of(judged, self.sampling.patients)
        return Side([judged], [self.answers.asked[arm]], [self.cells[arm]], self.statistics[arm])

    def _side_of(self, judged: Answers, asked: Answers) -> Side:
        cells = Cells.of(judged, self.sampling.patients)
        return Side([judged], [asked], [cells], claimed_statistics(judged, cells, self.sampling))

    def _differing(self, ours: Answers, theirs: Answers) -> dict[Key, Statistic]:
        """Differences of scores over the items with differing requests; none where all differ."""
        items = ours.items.request != theirs.items.request
        reports = ours.reports.request != theirs.reports.request
        if items.all() and reports.all():
            return {}
        parts = (side.where(items, reports) for side in (ours, theirs))
        first, second = (self._side_of(part, part) for part in parts)
        return _differences(first, second, [key for key in first.statistics if key[0] == "primary"])

    def _labels(self, factor: str, arm: str, versus: str) -> Row:
        """The columns that say what is compared, and in which family of tests."""
        labels: Row = {"factor": factor, "arm_id": arm, "versus_arm_id": versus}
        labels |= {"level": arm, "versus": versus}
        simulated = False
        if arm in self.labels and versus in self.labels:
            ours, theirs = self.labels[arm], self.labels[versus]
            simulated = ours.simulated or theirs.simulated
            labels |= {"level": str(getattr(ours, factor)), "versus": str(getattr(theirs, factor))}
            labels["model"] = ours.model if factor != "model" else None
        family = VARIED if factor in RUN else factor
        labels["family"] = f"{family}, simulated readers" if simulated else family
        labels["adjustment"] = "fdr" if factor in RUN and not simulated else "holm"
        return labels | {"simulated": simulated}


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
        reach = Effect.of(difference).reach
        reach = reach._replace(n_same=n_same, **limits.get(key, {}), **read.get(key, {}))
        effect = Effect(difference, reach)
        row = effect.row(key, sampling.method, against_margin=against_margin)
        if key in p_values:
            row["p"] = p_values[key]
            if difference.basis.n_hospitals is not None:
                # swaps of patients know nothing of hospitals; whole hospitals are too few to be swapped
                row["p"] = max(row["p"], row_p(row, difference.basis.units))
        yield key, effect, row


def _differences(ours: Side, theirs: Side, keys: Collection[Key]) -> dict[Key, Statistic]:
    pairs = {key: (ours.statistics[key], theirs.statistics[key]) for key in keys if key in theirs.statistics}
    return {
        key: Statistic(first.values - second.values, first.basis, of_pairs=True)
        for key, (first, second) in pairs.items()
    }


def _swap_p(
    ours: Side, theirs: Side, shares: Sequence[float], keys: Collection[Key], sampling: Resampling
) -> dict[Key, float]:
    """P-values from swapping whole patients between both sides, in all their arms at once."""
    if not all(cells.parts for cells in ours.cells):
        return {}
    ends = np.cumsum([len(rows) for cells in ours.cells for rows in cells.rows])[:-1]

    def mean(sums: Floats) -> dict[Key, Floats]:
        rows = iter(np.split(sums, ends))
        values = [
            claimed_values(cells.parts, [next(rows) for _ in cells.rows], sampling.settings.min_n)
            for cells in ours.cells
        ]
        return {
            key: np.sum([share * of_arm[key] for share, of_arm in zip(shares, values, strict=True)], axis=0)
            for key in values[0]
            if key in keys
        }

    first, second = (
        np.concatenate([rows for cells in side.cells for rows in cells.rows]) for side in (ours, theirs)
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
    is_read = np.asarray(rows.parse_status == _READ[0])  # of most arms all; comparing words takes time
    return is_read if is_read.all() else is_read | (rows.parse_status == _READ[1])


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
