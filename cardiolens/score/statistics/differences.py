"""Paired differences between arms: the same items, the same resamples (protocol 8.5, 16.3, 16.6)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cardiolens.base.errors import InputError
from cardiolens.runtime.processes import spread
from cardiolens.score.statistics.aggregates import arm_statistics
from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.arm_answers import ArmAnswers
from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.cells import EXTRA_METRICS, Cells, claimed_statistics
from cardiolens.score.statistics.dropped_items import Bounds, bounds
from cardiolens.score.statistics.factors import ArmPair
from cardiolens.score.statistics.hypothesis_tests import (
    MARGIN,
    beyond_p,
    equivalence_p,
    equivalent,
    interval_p,
)
from cardiolens.score.statistics.items import Bools, Floats, Items
from cardiolens.score.statistics.multiple_testing import BEYOND_P, EQUIVALENCE_P, SWAP_P, PValueRow
from cardiolens.score.statistics.paired import mcnemar_of, wilcoxon
from cardiolens.score.statistics.read_in_both import ReadInBoth, read_in_both
from cardiolens.score.statistics.report_references import Forms
from cardiolens.score.statistics.report_scores import Reports
from cardiolens.score.statistics.rows import as_row, scale
from cardiolens.score.statistics.spilled_mapping import SpilledMapping
from cardiolens.score.statistics.statistic import Basis, Key, Statistic
from cardiolens.score.statistics.swap_test import SWAPS, Coins, coins, split, stack, swap_p

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


@dataclass(frozen=True, slots=True)
class Resampling:
    """Settings shared by every statistic of a table of scores."""

    weights: Floats
    min_n: int
    seed: int
    forms: Forms = field(default_factory=dict)
    swaps: int = SWAPS
    of_hospitals: bool = False  # whole hospitals are resampled

    @property
    def method(self) -> str:
        """The bootstrap in words, for the `method` column."""
        kind = (
            "t interval, bootstrap of hospitals"
            if self.of_hospitals
            else "expanded percentile cluster bootstrap"
        )
        return f"{kind}, B={len(self.weights) - 1}, seed {self.seed}"

    @property
    def swap_method(self) -> str:
        """The swap test in words, for the `method` column."""
        return f"whole patients swapped between arms, {self.swaps} swaps, seed {self.seed}"

    @property
    def coins(self) -> Coins:
        """Which patients change arms in each swap."""
        return coins(self.patients, self.seed, self.swaps)

    @property
    def patients(self) -> int:
        """The number of patients in the cohort."""
        return len(self.weights[0])

    def statistics(self, answers: Answers) -> dict[Key, Statistic]:
        """Compute every statistic of the answers of one arm."""
        return arm_statistics(answers, self.weights, self.min_n, self.seed, self.forms)


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


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms on the items judged in both, in the same order."""

    arm: Answers
    versus: Answers
    complete: bool  # neither was judged on others
    answers: tuple[Answers, Answers]  # of both, judged or not

    @staticmethod
    def of(judged: Mapping[str, Answers], answers: Mapping[str, Answers], arm: str, versus: str) -> "Pair":
        """Take the common items of two arms; an arm without judged items is an InputError."""
        for name in (arm, versus):
            if name not in judged:
                raise InputError(f"arm {name!r} has no judged item; compare two of {', '.join(judged)}")
        first, second = judged[arm], judged[versus]
        ours, theirs = first.common_with(second), second.common_with(first)
        complete = len(ours) == len(first) and len(theirs) == len(second)
        return Pair(ours, theirs, complete, (answers[arm], answers[versus]))

    def in_scope(self, scope: str) -> tuple[Items | Reports, Items | Reports]:
        """The rows of both arms behind a statistic of this scope; of reports, those of fields."""
        return of_fields(self.arm.in_scope(scope)), of_fields(self.versus.in_scope(scope))

    @property
    def differing(self) -> tuple[Answers, Answers]:
        """Both arms on the items whose requests differ."""
        items = self.arm.items.request != self.versus.items.request
        reports = self.arm.reports.request != self.versus.reports.request
        return (
            Answers(self.arm.items.where(items), self.arm.reports.where(reports)),
            Answers(self.versus.items.where(items), self.versus.reports.where(reports)),
        )

    @property
    def same(self) -> int:
        """Number of items that have the same request in both arms."""
        return len(self.arm) - len(self.differing[0])


def of_fields(rows: Items | Reports) -> Items | Reports:
    """Drop the `text` channel of reports, which is not an item of its own."""
    return rows if isinstance(rows, Items) else rows.where(rows.channel == "fields")


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
    rows += _swap_rows(sides, in_scope, sampling, rows)
    rows += _mcnemar_rows(in_scope)
    rows += [_wilcoxon_row(scope, in_scope, rows, sampling) for scope in in_scope if scope == "tier:1"]
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
    primary_bounds = {scope: limits for (metric, scope), limits in dropped.items() if metric == "primary"}
    noted_rows = [
        row | {"method": f"{primary_bounds[str(row['scope'])].note}; {row['method']}"}
        if row["scope"] in primary_bounds
        else row
        for row in rows
    ]
    values = {(row["metric"], row["scope"]): row for row in noted_rows}
    for (metric, scope), limits in dropped.items():
        if (metric, scope) in values:
            ends = {"metric": f"{metric}.bounds", "n_items": limits.n_dropped}
            unit = scale(metric)
            ends |= {"low": unit * limits.low, "high": unit * limits.high}
            note = f"{limits.note}; the difference had they been wrong, or right, for either side"
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


def margin_rows(scope: str, difference: Statistic, sampling: Resampling) -> list[dict[str, object]]:
    """Rows of a difference against the margin: its 90 % interval, and on tiers the p of both claims."""
    row = as_row(("primary.equivalence", scope), difference, sampling.method, level=0.9)
    value, low, high = (float(str(row[name])) for name in ("value", "low", "high"))
    interval = Interval(value, low, high)
    words = f"within {MARGIN:g} points, 90 % interval; {row['method']}"
    rows = [row | {"method": f"{equivalent(interval)}: {words}"}]
    if scope.startswith("tier:"):  # no sentence calls a subtask or a sequence equivalent
        beyond = f"null: within {MARGIN:g} points; {row['method']}"
        for metric, test, method in ((EQUIVALENCE_P, equivalence_p, words), (BEYOND_P, beyond_p, beyond)):
            p = test(interval, int(difference.basis.units))
            rows.append(as_row((metric, scope), Statistic(np.array([p]), difference.basis), method))
    return rows


def _differences(ours: Mapping[Key, Statistic], theirs: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    """Differences of what both arms have, by scope and metric."""
    return {
        key: Statistic(ours[key].values - theirs[key].values, ours[key].basis, of_pairs=True)
        for key in sorted(set(ours) & set(theirs), key=lambda key: key[::-1])
    }


def _claimable(differences: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    """Those that sentences may claim."""
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


def basis_of(rows: Items | Reports, scope: str) -> Basis:
    """Count the rows of a score in a scope; tier 3 is a mean over classes."""
    if isinstance(rows, Reports):
        return rows.basis()
    return Basis.of(rows).of_classes(rows) if scope == "tier:3" else Basis.of(rows)


def _swap_rows(
    sides: tuple[Cells, Cells],
    in_scope: Mapping[str, tuple[Items | Reports, Items | Reports]],
    sampling: Resampling,
    differences: Sequence[Mapping[str, object]],
) -> list[dict[str, object]]:
    """P-values of every claimable statistic, by swapping whole patients between the arms."""
    by_key = {(str(row["metric"]), str(row["scope"])): row for row in differences}
    ours, theirs = sides
    sizes = [len(rows) for rows in ours.rows]
    p_values = swap_p(
        stack(ours.rows),
        stack(theirs.rows),
        lambda sums: claimed_statistics(ours.parts, split(sums, sizes), sampling.min_n),
        sampling.coins,
    )
    return [
        as_row(
            (f"{metric}.{SWAP_P}", scope),
            Statistic(np.array([over_hospitals_p(p, by_key.get((metric, scope)), basis)]), basis),
            sampling.swap_method,
        )
        for (metric, scope), p in p_values.items()
        for basis in [Basis.of(in_scope[scope][0])]
    ]


def over_hospitals_p(p: float, difference: Mapping[str, object] | None, basis: Basis) -> float:
    """The p of swapped patients, or that of the interval over hospitals if it is larger.

    Swaps of patients know nothing of hospitals; whole hospitals are too few to be swapped.
    """
    if basis.n_hospitals is None or difference is None:
        return p
    value, low, high = (float(str(difference[name])) for name in ("value", "low", "high"))
    of_interval = interval_p(Interval(value, low, high), 0.0, int(basis.units))
    return max(p, of_interval)


def _mcnemar_rows(
    in_scope: Mapping[str, tuple[Items | Reports, Items | Reports]],
) -> list[dict[str, object]]:
    """McNemar's test of every subtask with one right option."""
    rows = []
    for scope, (ours, theirs) in in_scope.items():
        if not (scope.startswith("subtask:") and isinstance(ours, Items) and isinstance(theirs, Items)):
            continue
        if ours.answer_type[0] != "multi":
            test = mcnemar_of(_is_right(ours), _is_right(theirs))
            statistic = Statistic(np.array([test.p]), Basis.of(ours))
            rows.append(as_row(("accuracy.mcnemar_p", scope), statistic, test.method))
    return rows


def _wilcoxon_row(
    scope: str,
    in_scope: Mapping[str, tuple[Items | Reports, Items | Reports]],
    rows: Sequence[Mapping[str, object]],
    sampling: Resampling,
) -> dict[str, object]:
    """Signed ranks over the subtasks of a tier: whether most of them change in one direction."""
    items = in_scope[scope][0]
    assert isinstance(items, Items), "tier 1 is answered by picking options"
    subtasks, sizes = np.unique(items.subtask, return_counts=True)
    sufficient = {f"subtask:{subtask}" for subtask in subtasks[sizes >= sampling.min_n]}
    changes = [row["value"] for row in rows if row["metric"] == "primary" and row["scope"] in sufficient]
    test = wilcoxon(np.array(changes, np.float64))
    method = f"Wilcoxon signed rank over {len(changes)} subtasks, {test.method}"
    return as_row(("primary.wilcoxon_p", scope), Statistic(np.array([test.p]), Basis.of(items)), method)


def _is_right(items: Items) -> Bools:
    return np.asarray(items.gold == items.parsed)
