"""Paired differences between arms: the same items, the same resamples (protocol 8.5, 16.3, 16.6)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cardiolens.runtime.processes import spread
from cardiolens.score.statistics.answers import ArmAnswers, Pair, of_fields
from cardiolens.score.statistics.arm_statistics import claimed_statistics
from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.comparisons import RUN, VARIED, Row, comparison
from cardiolens.score.statistics.counting import Cells, Key, claimed_values
from cardiolens.score.statistics.dropped_items import bounds
from cardiolens.score.statistics.factors import ArmFactors, ArmPair
from cardiolens.score.statistics.hypothesis_tests import interval_p, split, stack, swap_p
from cardiolens.score.statistics.items import Reports
from cardiolens.score.statistics.read_in_both import read_in_both
from cardiolens.score.statistics.statistic import Basis, Resampling, Statistic, interval_of
from cardiolens.score.statistics.verdict_rows import SpilledMapping

Families = Mapping[str, Sequence[ArmPair]]  # by name, e.g. `selector | the other factors`
MANY = 2**24  # resampled patients of all arms, or pairs, from which worker processes pay off
_CHUNK = 16  # pairs per task of a worker process; neighbours share arms


@dataclass(frozen=True, slots=True)
class PairComparison:
    """The rows of a pair of arms; where asked for, its differences on all items and where requests differ."""

    arm: str
    versus: str
    rows: list[Row]
    differences: Mapping[Key, Statistic]
    differing: Mapping[Key, Statistic]


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

    `statistics` are the claimable ones of each arm; the differences of `pooled` pairs, in either direction,
    are kept. Worker processes do it where that pays off; neither their number nor order changes a digit.
    """
    pairs = [
        (name.partition(" | ")[0], *pair) for name, family_pairs in families.items() for pair in family_pairs
    ]
    kept = frozenset(frozenset(pair) for pair in pooled)
    compare = _Comparison(answers.without_verdicts(), statistics, sampling, labels, kept)
    many = len(pairs) * sampling.weights.size >= MANY
    return spread(compare, pairs, chunk=_CHUNK, worth=many)


class _Comparison:
    """Compares pairs of arms in one process, which caches the cells of arms that it has seen."""

    def __init__(
        self,
        answers: ArmAnswers,
        statistics: Mapping[str, Mapping[Key, Statistic]],
        sampling: Resampling,
        labels: Mapping[str, ArmFactors],
        kept: frozenset[frozenset[str]],
    ) -> None:
        self._answers, self._statistics = answers, statistics
        self._sampling, self._labels, self._kept = sampling, labels, kept
        # of arms that are compared on all their judged items
        self._complete_cells: SpilledMapping[Cells] | None = None

    def __call__(self, task: tuple[str, str, str]) -> PairComparison:
        """Compare a (factor, arm, versus arm)."""
        factor, arm, versus = task
        sampling = self._sampling
        pair = Pair.of(self._answers.judged, self._answers, arm, versus)
        if pair.complete:
            sides = self._cells(arm), self._cells(versus)
            ours, theirs = self._statistics[arm], self._statistics[versus]
        else:
            sides = Cells.of(pair.arm, sampling.patients), Cells.of(pair.versus, sampling.patients)
            ours, theirs = (
                claimed_statistics(common, cells, sampling)
                for common, cells in zip((pair.arm, pair.versus), sides, strict=True)
            )
        differences = {
            key: Statistic(ours[key].values - theirs[key].values, ours[key].basis, of_pairs=True)
            for key in sorted(set(ours) & set(theirs), key=lambda key: key[::-1])
        }
        differing = _differing(pair, sampling)
        names = self._names(factor, arm, versus)
        claimable = differences if factor == "prompt" else _scores(differences)
        rows = [names | row for row in _rows(pair, claimable, differing, sides, sampling)]
        if frozenset((arm, versus)) not in self._kept:
            differences, differing = {}, {}
        return PairComparison(arm, versus, rows, differences, differing)

    def _names(self, factor: str, arm: str, versus: str) -> Row:
        """The columns that say what is compared, and in which family of tests."""
        names: Row = {
            "factor": factor,
            "arm_id": arm,
            "versus_arm_id": versus,
            "level": arm,
            "versus": versus,
        }
        simulated = False
        if arm in self._labels and versus in self._labels:
            ours, theirs = self._labels[arm], self._labels[versus]
            simulated = ours.simulated or theirs.simulated
            names |= {"level": str(getattr(ours, factor)), "versus": str(getattr(theirs, factor))}
            names["model"] = ours.model if factor != "model" else None
        family = VARIED if factor in RUN else factor
        explored = factor in RUN and not simulated
        return names | {
            "family": f"{family}, simulated readers" if simulated else family,
            "adjustment": "fdr" if explored else "holm",
            "simulated": simulated,
        }

    def _cells(self, arm: str) -> Cells:
        if self._complete_cells is None:
            self._complete_cells = SpilledMapping()
        if arm not in self._complete_cells:
            self._complete_cells[arm] = Cells.of(self._answers.judged[arm], self._sampling.patients)
        return self._complete_cells[arm]


def _scores(statistics: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    return {key: statistic for key, statistic in statistics.items() if key[0] == "primary"}


def _rows(
    pair: Pair,
    differences: Mapping[Key, Statistic],
    differing: Mapping[Key, Statistic],
    sides: tuple[Cells, Cells],
    sampling: Resampling,
) -> Iterator[Row]:
    p_values = pair_p_values(sides, sampling)
    dropped = bounds(pair.answers[:1], pair.answers[1:], pair.arm, sampling.min_n)
    read = read_in_both(pair.arm, pair.versus, sampling.min_n)
    n_same, units = {}, {}
    for tier in {tier for _, tier in differences}:
        ours, theirs = pair.in_scope(tier)
        n_same[tier] = int((ours.request == theirs.request).sum())  # on these both arms are equal
        units[tier] = Basis.of(ours)
    for key, difference in differences.items():
        metric, tier = key
        row = comparison(metric, tier, difference, sampling.method)
        row["n_same_request"] = n_same[tier]
        if key in p_values:
            row["p"] = over_hospitals_p(p_values[key], row, units[tier])
        if metric == "primary" and key in differing:
            interval = interval_of(metric, differing[key], level=0.9)
            row |= {"differing_low_90": interval.low, "differing_high_90": interval.high}
        row |= dropped[key].columns(metric) if key in dropped else {}
        row |= read[key].columns(metric) if key in read else {}
        yield row


def pair_p_values(sides: tuple[Cells, Cells], sampling: Resampling) -> dict[Key, float]:
    """P-values of every claimable statistic, by swapping whole patients between the arms."""
    ours, theirs = sides
    sizes = [len(rows) for rows in ours.rows]
    return swap_p(
        stack(ours.rows),
        stack(theirs.rows),
        lambda sums: claimed_values(ours.parts, split(sums, sizes), sampling.min_n),
        sampling.coins,
    )


def over_hospitals_p(p: float, row: Row, basis: Basis) -> float:
    """The p of swapped patients, or that of the interval over hospitals if it is larger.

    Swaps of patients know nothing of hospitals; whole hospitals are too few to be swapped.
    """
    if basis.n_hospitals is None:
        return p
    interval = Interval(row["difference"], row["low"], row["high"])
    return max(p, interval_p(interval, 0.0, int(basis.units)))


def _differing(pair: Pair, sampling: Resampling) -> dict[Key, Statistic]:
    """Differences of scores over the items whose requests differ; none where all do (protocol 16.7)."""
    if not pair.same:
        return {}
    ours, theirs = pair.differing
    sides = []
    for answers in (ours, theirs):
        cells = Cells.of(answers, sampling.patients)
        sides.append(claimed_values(cells.parts, cells.resampled(sampling.weights), sampling.min_n))
    differences = {}
    for metric, tier in sides[0]:
        if metric == "primary":
            rows = of_fields(ours.in_scope(tier))
            basis = Basis.of_entities(rows) if isinstance(rows, Reports) else Basis.of(rows)
            if tier == "tier:3" and not isinstance(rows, Reports):
                basis = basis.of_classes(rows)
            values = sides[0][metric, tier] - sides[1][metric, tier]
            differences[metric, tier] = Statistic(values, basis, of_pairs=True)
    return differences
