"""Two sides on the same items and resamples: their difference, its p, and what is not known of it.

A side is an arm, or all arms behind the headline of a model (protocol 8.5).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardiolens.runtime.processes import spread
from cardiolens.score.statistics.answers import Answers, ArmAnswers, Pair
from cardiolens.score.statistics.arm_statistics import claimed_statistics
from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.comparisons import RUN, VARIED
from cardiolens.score.statistics.counting import EXTRA_METRICS, Cells, Key, claimed_values
from cardiolens.score.statistics.effects import Effect, Limits, ReadInBoth
from cardiolens.score.statistics.factors import ArmFactors, ArmPair
from cardiolens.score.statistics.hypothesis_tests import interval_p, split, stack, swap_p
from cardiolens.score.statistics.items import Bools, Floats, Ints, Items, Rows
from cardiolens.score.statistics.metrics import CRITERION, D_PRIME, SEVERITY_SHIFT
from cardiolens.score.statistics.statistic import Basis, Resampling, Row, Statistic, interval_of
from cardiolens.score.statistics.verdict_rows import SpilledMapping

Families = Mapping[str, Sequence[ArmPair]]  # by name, e.g. `selector | the other factors`
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


@dataclass(frozen=True, slots=True)
class PairComparison:
    """The rows of a pair of arms; where they are pooled, its effects by key, and where requests differ."""

    arm: str
    versus: str
    rows: list[Row]
    effects: Mapping[tuple[Key, bool], Effect]


def compare_pairs(
    answers: ArmAnswers,
    statistics: Mapping[str, Mapping[Key, Statistic]],
    families: Families,
    sampling: Resampling,
    labels: Mapping[str, ArmFactors],
    *,
    pooled: Collection[ArmPair] = (),
) -> Iterator[PairComparison]:
    """Yield the comparisons of each pair of each family, on the items judged in both arms.

    `statistics` are the claimable ones of each arm; the effects of `pooled` pairs, in either direction, are
    kept. Worker processes do it where that pays off; neither their number nor order changes a digit.
    """
    pairs = [
        (name.partition(" | ")[0], *pair) for name, family_pairs in families.items() for pair in family_pairs
    ]
    kept = frozenset(frozenset(pair) for pair in pooled)
    compare = _Comparing(answers.without_verdicts(), statistics, sampling, labels, kept)
    many = len(pairs) * sampling.weights.size >= MANY
    return spread(compare, pairs, chunk=_CHUNK, worth=many)


@dataclass(slots=True)
class _Comparing:
    """Compares pairs of arms in one process, which caches the cells of arms that it has seen."""

    answers: ArmAnswers
    statistics: Mapping[str, Mapping[Key, Statistic]]
    sampling: Resampling
    labels: Mapping[str, ArmFactors]
    kept: frozenset[frozenset[str]]
    cells: SpilledMapping[Cells] | None = None  # of arms that are compared on all their judged items

    def __call__(self, task: tuple[str, str, str]) -> PairComparison:
        """Compare a (factor, arm, versus arm)."""
        factor, arm, versus = task
        pair = Pair.of(self.answers, arm, versus)
        if pair.complete:
            cells = self._cells(arm), self._cells(versus)
            ours, theirs = self.statistics[arm], self.statistics[versus]
        else:
            cells = Cells.of(pair.arm, self.sampling.patients), Cells.of(pair.versus, self.sampling.patients)
            ours, theirs = (
                claimed_statistics(answers, of_side, self.sampling)
                for answers, of_side in zip((pair.arm, pair.versus), cells, strict=True)
            )
        differences = {
            key: Statistic(ours[key].values - theirs[key].values, ours[key].basis, of_pairs=True)
            for key in sorted(ours.keys() & theirs.keys(), key=lambda key: key[::-1])
            if key[0] == "primary" or (factor == "prompt" and key[0] in EXTRA_METRICS)
        }
        asked = [self.answers[arm]], [self.answers[versus]]
        sides = Sides(([pair.arm], [pair.versus]), asked, ([cells[0]], [cells[1]]), [1.0])
        names, differing = self._names(factor, arm, versus), _differing(pair, self.sampling)
        rows, effects = [], {}
        for key, effect, row in sides.compared(differences, self.sampling):
            if key in differing:
                interval = interval_of(key[0], differing[key], level=0.9)
                row |= {"differing_low_90": interval.low, "differing_high_90": interval.high}
            rows.append(names | row)
            effects[key, False] = effect
            if key[0] == "primary" and effect.n_same < effect.basis.n_items:
                effects[key, True] = Effect.of(differing.get(key, differences[key]))
        is_kept = frozenset((arm, versus)) in self.kept
        return PairComparison(arm, versus, rows, effects if is_kept else {})

    def _names(self, factor: str, arm: str, versus: str) -> Row:
        """The columns that say what is compared, and in which family of tests."""
        names: Row = {"factor": factor, "arm_id": arm, "versus_arm_id": versus}
        levels: Row = {"level": arm, "versus": versus}
        simulated = False
        if arm in self.labels and versus in self.labels:
            ours, theirs = self.labels[arm], self.labels[versus]
            simulated = ours.simulated or theirs.simulated
            levels = {"level": str(getattr(ours, factor)), "versus": str(getattr(theirs, factor))}
            levels["model"] = ours.model if factor != "model" else None
        family = VARIED if factor in RUN else factor
        explored = factor in RUN and not simulated
        return {
            **names,
            **levels,
            "family": f"{family}, simulated readers" if simulated else family,
            "adjustment": "fdr" if explored else "holm",
            "simulated": simulated,
        }

    def _cells(self, arm: str) -> Cells:
        if self.cells is None:
            self.cells = SpilledMapping()
        if arm not in self.cells:
            self.cells[arm] = Cells.of(self.answers.judged(arm), self.sampling.patients)
        return self.cells[arm]


def _differing(pair: Pair, sampling: Resampling) -> dict[Key, Statistic]:
    """Differences of scores over the items whose requests differ; none where all do."""
    ours, theirs = pair.differing
    if len(ours) == len(pair.arm):
        return {}
    first, second = (
        claimed_statistics(side, Cells.of(side, sampling.patients), sampling) for side in (ours, theirs)
    )
    return {
        key: Statistic(first[key].values - second[key].values, first[key].basis, of_pairs=True)
        for key in first
        if key[0] == "primary" and key in second
    }


@dataclass(frozen=True, slots=True)
class Sides:
    """Two sides: the arms of each, one for one, and the share of each arm in the mean of its side."""

    judged: tuple[Sequence[Answers], Sequence[Answers]]  # on the items that all of them judged
    asked: tuple[Sequence[Answers], Sequence[Answers]]  # on all of their items
    cells: tuple[Sequence[Cells], Sequence[Cells]]
    shares: Sequence[float]

    def compared(
        self, differences: Mapping[Key, Statistic], sampling: Resampling
    ) -> Iterator[tuple[Key, Effect, Row]]:
        """Yield each difference with what is not known of it, and its row."""
        p_values = self._swap_p(differences, sampling)
        limits, read = self._limits(sampling.settings.min_n), self._read(sampling.settings.min_n)
        n_same = {}
        for tier in {tier for _, tier in differences}:
            ours, theirs = (arms[0].of_tier(tier) for arms in self.judged)
            n_same[tier] = int((ours.request == theirs.request).sum())  # on these both arms are equal
        for key, difference in differences.items():
            effect = Effect.of(difference, limits.get(key), read.get(key), n_same[key[1]])
            row = effect.row(key, sampling.method)
            if key in p_values:
                row["p"] = _over_hospitals(p_values[key], row, difference.basis)
            yield key, effect, row

    def _swap_p(self, keys: Collection[Key], sampling: Resampling) -> dict[Key, float]:
        """P-values from swapping whole patients between both sides, in all their arms at once."""
        ours, theirs = self.cells
        if not all(cells.parts for cells in ours):
            return {}
        sizes = [[len(rows) for rows in cells.rows] for cells in ours]

        def mean(sums: Floats) -> dict[Key, Floats]:
            of_arms = split(sums, [sum(of_arm) for of_arm in sizes])
            statistics = [
                claimed_values(cells.parts, split(of_arm, of_parts), sampling.settings.min_n)
                for cells, of_arm, of_parts in zip(ours, of_arms, sizes, strict=True)
            ]
            return {
                key: np.sum(
                    [share * values[key] for share, values in zip(self.shares, statistics, strict=True)],
                    axis=0,
                )
                for key in statistics[0]
                if key in keys
            }

        first, second = (stack([rows for cells in side for rows in cells.rows]) for side in (ours, theirs))
        return swap_p(first, second, mean, sampling.coins)

    def _limits(self, min_n: int) -> dict[Key, Limits]:
        """Limits of the mean difference over all items asked; empty if nothing is missing.

        At the low end every answer that our side lacks is what lowers the statistic (of a score: wrong), and
        every one that theirs lacks is what raises it; at the high end the reverse. A reply that was not read
        is an answer that a side lacks.
        """
        asked, *others = [*self.asked[0], *self.asked[1]]
        known = common = self.judged[0][0]
        for answers in (asked, *others):
            asked = asked.joined_with(answers.common_with(asked, out=True))
            known = known.common_with(_where_read(answers))
        if len(asked) == len(known):
            return {}

        def filled(fill: str) -> list[dict[Key, float]]:
            sides = ([_filled(arm, asked, fill, min_n) for arm in side] for side in self.asked)
            return [
                {key: float(np.mean([of_arm[key] for of_arm in side])) for key in side[0]} for side in sides
            ]

        by_fill = {fill: filled(fill) for fill in _FILLS}
        limits = {}
        for key in by_fill["right"][0]:
            n_asked, n_common, n_known = (len(rows.of_tier(key[1])) for rows in (asked, common, known))
            if n_known < n_asked:
                (worst, theirs_worst), (best, theirs_best) = (
                    by_fill[fill] for fill in _ENDS.get(key[0], _OF_SCORES)
                )
                low, high = worst[key] - theirs_best[key], best[key] - theirs_worst[key]
                limits[key] = Limits(low, high, n_asked - n_common, n_common - n_known, n_asked)
        return limits

    def _read(self, min_n: int) -> dict[Key, ReadInBoth]:
        """Differences on what was read in both arms at once, on tiers where something was not.

        Subtasks that the tier means leave out stay out.
        """
        every = (arm for side in self.judged for arm in side)
        if all(_is_read(rows).all() for arm in every for rows in (arm.items, arm.reports)):
            return {}
        parts: dict[Key, list[tuple[float, int, int, int]]] = {}
        for pair in zip(*self.judged, strict=True):
            sides = [_sufficient(answers, min_n) for answers in pair]
            items, reports = (
                _is_read(getattr(sides[0], kind)) & _is_read(getattr(sides[1], kind))
                for kind in ("items", "reports")
            )
            first, second = (_values(side.where(items, reports), 1) for side in sides)
            for key in first:
                ours, theirs = (_is_read(side.of_tier(key[1])) for side in sides)
                counts = int((ours & theirs).sum()), int((~ours).sum()), int((~theirs).sum())
                parts.setdefault(key, []).append((first[key] - second[key], *counts))
        return {
            key: ReadInBoth(
                sum(share * part[0] for share, part in zip(self.shares, of_key, strict=True)),
                sum(part[1] for part in of_key),
                sum(part[2] for part in of_key),
                sum(part[3] for part in of_key),
            )
            for key, of_key in parts.items()
            if len(of_key) == len(self.shares) and any(part[2] + part[3] for part in of_key)
        }


def _over_hospitals(p: float, row: Row, basis: Basis) -> float:
    """The p of swapped patients, or that of the interval over hospitals if it is larger.

    Swaps of patients know nothing of hospitals; whole hospitals are too few to be swapped.
    """
    if basis.n_hospitals is None:
        return p
    interval = Interval(row["difference"], row["low"], row["high"])
    return max(p, interval_p(interval, 0.0, int(basis.units)))


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


def _values(answers: Answers, min_n: int) -> dict[Key, float]:
    """The statistics of one arm, over all its patients at once."""
    items = replace(answers.items, patient=np.zeros_like(answers.items.patient))
    reports = replace(answers.reports, patient=np.zeros_like(answers.reports.patient))
    cells = Cells.of(Answers(items, reports), 1)
    return {key: float(value[0]) for key, value in claimed_values(cells.parts, cells.rows, min_n).items()}


def _filled(arm: Answers, asked: Answers, fill: str, min_n: int) -> dict[Key, float]:
    """Statistics of an arm with every missing answer filled in; of reports, as right or wrong."""
    read = _where_read(arm)
    missing = asked.common_with(read, out=True)
    items, reports = missing.items, missing.reports
    counts = np.zeros_like(reports.counts)
    counts[:, reports.names.index("tp" if fill == "right" else "fn")] = reports.gold.sum(axis=1)
    missing = Answers(replace(items, parsed=_FILLS[fill](items)), replace(reports, counts=counts))
    return _values(read.joined_with(missing), min_n)


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
