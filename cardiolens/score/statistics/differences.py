"""Paired differences between arms: the same items, the same resamples (protocol 8.5, 16.3, 16.6)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cardiolens.runtime.processes import spread
from cardiolens.score.statistics.arm_answers import ArmAnswers
from cardiolens.score.statistics.cells import EXTRA_METRICS, Cells, claimed_statistics
from cardiolens.score.statistics.dropped_items import Bounds, bounds
from cardiolens.score.statistics.factors import ArmPair
from cardiolens.score.statistics.judged_pair import Pair, basis_of, of_fields
from cardiolens.score.statistics.multiple_testing import BEYOND_P, EQUIVALENCE_P, SWAP_P, PValueRow
from cardiolens.score.statistics.pair_tests import margin_rows, mcnemar_rows, swap_rows, wilcoxon_row
from cardiolens.score.statistics.read_in_both import ReadInBoth, read_in_both
from cardiolens.score.statistics.resampling import Resampling
from cardiolens.score.statistics.rows import as_row, scale
from cardiolens.score.statistics.spilled_mapping import SpilledMapping
from cardiolens.score.statistics.statistic import Key, Statistic

Families = Mapping[str, Sequence[ArmPair]]  # by name, e.g. `selector | the other factors`

# metrics that are compared between arms, at every scope that has them
METRICS = frozenset(
    {"primary", "primary.skill", "accuracy", "collapse_index", "mean_cardinality", "precision", "recall"}
    | {
        "abnormal_call",
        "criterion",
        "d_prime",
        "severity_shift",
        "abnormal_f1",
        "hallucination",
        "omission",
        "text_entity_f1",
        "rouge_l",
        "meteor",
        "bertscore_f1",
    }
)
DIFFERING = "primary.equivalence_differing"
MANY = 2**24  # resampled patients of all arms, or pairs, from which worker processes pay off
_CHUNK = 16  # pairs per task of a worker process; neighbours share arms


def comparable_statistics(statistics: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    """The statistics that are compared between arms."""
    return {key: statistic for key, statistic in statistics.items() if key[0] in METRICS}


@dataclass(frozen=True, slots=True)
class PairScores:
    """Score rows of a pair of arms, the tests among them, and, where asked for, its differences on tiers."""

    arm: str
    versus: str
    rows: list[dict[str, object]]
    tests: list[PValueRow]
    differences: Mapping[Key, Statistic]


def difference_rows(
    answers: ArmAnswers,
    statistics: Mapping[str, Mapping[Key, Statistic]],
    families: Families,
    sampling: Resampling,
    *,
    simulated: Collection[str] = (),
    pooled: Collection[ArmPair] = (),
) -> Iterator[PairScores]:
    """Yield the score rows of each pair of each family, and the tests whose p-values Holm adjusts.

    `statistics` are the comparable ones of each arm; the differences of `pooled` pairs, in either direction,
    are kept. A pair is compared on the items judged in both arms,
    in worker processes where that pays off; neither their number nor their order changes a digit.
    """
    pairs = [
        (name.partition(" | ")[0], *pair) for name, family_pairs in families.items() for pair in family_pairs
    ]
    kept = frozenset(frozenset(pair) for pair in pooled)
    compare = _Comparison(answers.without_verdicts(), statistics, sampling, frozenset(simulated), kept)
    many = len(pairs) * sampling.weights.size >= MANY
    return spread(compare, pairs, chunk=_CHUNK, worth=many)


class _Comparison:
    """Compares pairs of arms in one process, which caches the cells of arms that it has seen."""

    def __init__(
        self,
        answers: ArmAnswers,
        statistics: Mapping[str, Mapping[Key, Statistic]],
        sampling: Resampling,
        simulated: frozenset[str],
        kept: frozenset[frozenset[str]],
    ) -> None:
        self._answers, self._statistics = answers, statistics
        self._sampling, self._simulated, self._kept = sampling, simulated, kept
        # of arms that are compared on all their judged items
        self._complete_cells: SpilledMapping[Cells] | None = None

    def __call__(self, task: tuple[str, str, str]) -> PairScores:
        """Compare a (factor, arm, versus arm)."""
        question, arm, versus = task
        sampling = self._sampling
        pair = Pair.of(self._answers.judged, self._answers, arm, versus)
        if pair.complete:
            ours, theirs = self._statistics[arm], self._statistics[versus]
            sides = self._cells(arm), self._cells(versus)
        else:
            ours, theirs = (
                comparable_statistics(sampling.statistics(common)) for common in (pair.arm, pair.versus)
            )
            sides = Cells.of(pair.arm, sampling.patients), Cells.of(pair.versus, sampling.patients)
        arms = {"arm_id": arm, "versus_arm_id": versus}
        differences, differing = _differences(ours, theirs), _differing(pair, sampling)
        rows = [arms | row for row in _pair_rows(pair, differences, differing, sides, sampling)]
        real = self._simulated.isdisjoint((arm, versus))
        tests = [PValueRow(question, row, not real) for row in rows if is_test(row)]
        kept = {}
        if frozenset((arm, versus)) in self._kept:
            kept = _claimable(differences) | differing
        return PairScores(arm, versus, rows, tests, kept)

    def _cells(self, arm: str) -> Cells:
        if self._complete_cells is None:
            self._complete_cells = SpilledMapping()
        if arm not in self._complete_cells:
            self._complete_cells[arm] = Cells.of(self._answers.judged[arm], self._sampling.patients)
        return self._complete_cells[arm]


def is_test(row: Mapping[str, object]) -> bool:
    """Return whether a row holds a p-value that a sentence may rest on."""
    return str(row["metric"]).endswith((SWAP_P, EQUIVALENCE_P, BEYOND_P))


def _pair_rows(
    pair: Pair,
    differences: Mapping[Key, Statistic],
    differing: Mapping[Key, Statistic],
    sides: tuple[Cells, Cells],
    sampling: Resampling,
) -> list[dict[str, object]]:
    rows = []
    for key, difference in differences.items():
        rows.append(as_row(key, difference, sampling.method))
        if key[0] == "primary":
            rows += margin_rows(key[1], difference, sampling)
    in_scope = {scope: pair.in_scope(scope) for scope in sorted({str(row["scope"]) for row in rows})}
    method = f"items whose requests differ; {sampling.method}"
    rows += [as_row(key, statistic, method, level=0.9) for key, statistic in differing.items()]
    rows += swap_rows(sides, in_scope, sampling, rows)
    rows += mcnemar_rows(in_scope)
    rows += [wilcoxon_row(scope, in_scope, rows, sampling) for scope in in_scope if scope == "tier:1"]
    dropped = bounds(pair.answers[:1], pair.answers[1:], pair.arm, sampling.min_n)
    rows = with_bounds(rows, dropped)
    rows += with_reading(rows, read_in_both(pair.arm, pair.versus, sampling.min_n))
    # on items with the same request both arms are equal
    same = {
        scope: int((ours_in_scope.request == theirs_in_scope.request).sum())
        for scope, (ours_in_scope, theirs_in_scope) in in_scope.items()
    }
    return [row | {"n_same_request": same[str(row["scope"])]} for row in rows]


def with_bounds(rows: Sequence[dict[str, object]], dropped: Mapping[Key, Bounds]) -> list[dict[str, object]]:
    """Note the number of dropped items in the method of rows, and append `.bounds` rows for them."""
    primary_bounds = {
        scope: limits
        for (metric, scope), limits in dropped.items()
        if metric == "primary" and limits.n_dropped
    }
    noted_rows = [
        row | {"method": f"{primary_bounds[str(row['scope'])].note}; {row['method']}"}
        if row["scope"] in primary_bounds
        else row
        for row in rows
    ]
    values = {(row["metric"], row["scope"]): row for row in noted_rows}
    for (metric, scope), limits in dropped.items():
        if (metric, scope) in values:
            ends = {"metric": f"{metric}.bounds", "n_items": limits.n_dropped + limits.n_unread}
            unit = scale(metric)
            ends |= {"low": unit * limits.low, "high": unit * limits.high}
            fell_out = f"{limits.note}; " if limits.note else ""
            unread = f"{limits.n_unread} not read; " if limits.n_unread else ""
            note = f"{fell_out}{unread}the difference had they been wrong, or right, for either side"
            noted_rows.append(values[metric, scope] | ends | {"method": note})
    return noted_rows


def with_reading(
    rows: Sequence[Mapping[str, object]], read: Mapping[Key, ReadInBoth]
) -> list[dict[str, object]]:
    """Rows of the differences on what was read in both arms, for the differences among `rows`."""
    return [
        {**row, **read[key].row(key)}
        for row in rows
        if (key := (str(row["metric"]), str(row["scope"]))) in read
    ]


def _differences(ours: Mapping[Key, Statistic], theirs: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    """Differences of what both arms have, by scope and metric."""
    return {
        key: Statistic(ours[key].values - theirs[key].values, ours[key].basis, of_pairs=True)
        for key in sorted(set(ours) & set(theirs), key=lambda key: key[::-1])
    }


def _claimable(differences: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    """The differences that sentences may claim: on tiers, of the score and the extra metrics."""
    return {
        (metric, scope): difference
        for (metric, scope), difference in differences.items()
        if scope.startswith("tier:") and metric in ("primary", *EXTRA_METRICS)
    }


def _differing(pair: Pair, sampling: Resampling) -> dict[Key, Statistic]:
    """Differences on tiers, over the items whose requests differ only (protocol 16.7)."""
    if not pair.same:
        return {}
    ours, theirs = pair.differing
    sides = []
    for answers in (ours, theirs):
        cells = Cells.of(answers, sampling.patients)
        resampled = [rows @ sampling.weights.T for rows in cells.rows]
        sides.append(claimed_statistics(cells.parts, resampled, sampling.min_n))
    return {
        (DIFFERING, scope): Statistic(
            sides[0][metric, scope] - sides[1][metric, scope],
            basis_of(of_fields(ours.in_scope(scope)), scope),
            of_pairs=True,
        )
        for metric, scope in sides[0]
        if metric == "primary" and scope.startswith("tier:")
    }
