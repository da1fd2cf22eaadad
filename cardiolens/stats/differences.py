"""Paired differences between arms: the same items, the same resamples (protocol 8.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cardiolens.errors import InputError
from cardiolens.stats.answers import Answers
from cardiolens.stats.factors import ArmPair
from cardiolens.stats.inference import MARGIN, equivalent, holm
from cardiolens.stats.items import Bools, Floats, Items
from cardiolens.stats.paired import FLIPS, mcnemar_of, sign_flip, wilcoxon
from cardiolens.stats.report_references import Forms
from cardiolens.stats.reports import Reports
from cardiolens.stats.rows import as_row
from cardiolens.stats.statistic import Basis, Key, Statistic
from cardiolens.stats.tiers import arm_statistics

Families = Mapping[str, Sequence[ArmPair]]  # by what they compare, e.g. selectors; Holm adjusts within one

# what is compared between arms, at every scope that has it
METRICS = frozenset(
    {"primary", "primary.skill", "accuracy", "collapse_index", "mean_cardinality", "precision", "recall"}
    | {
        "abnormal_call",
        "abnormal_f1",
        "hallucination",
        "omission",
        "text_entity_f1",
        "rouge_l",
        "meteor",
        "bertscore_f1",
    }
)


@dataclass(frozen=True, slots=True)
class Resampling:
    """What is the same for every statistic of a table of scores."""

    weights: Floats
    min_n: int
    seed: int
    forms: Forms = field(default_factory=dict)

    @property
    def method(self) -> str:
        """In words, for the table."""
        return f"expanded percentile cluster bootstrap, B={len(self.weights) - 1}, seed {self.seed}"

    def statistics(self, answers: Answers) -> dict[Key, Statistic]:
        """Every statistic of the answers of one arm."""
        return arm_statistics(answers, self.weights, self.min_n, self.seed, self.forms)


def compared(statistics: Mapping[Key, Statistic]) -> dict[Key, Statistic]:
    """The statistics that are compared between arms."""
    return {key: statistic for key, statistic in statistics.items() if key[0] in METRICS}


def difference_rows(
    answers: Answers,
    statistics: Mapping[str, Mapping[Key, Statistic]],
    families: Families,
    sampling: Resampling,
) -> list[dict[str, object]]:
    """Rows of scores for every pair of every family: differences, equivalence, p-values, and Holm's of these.

    `statistics` are the compared ones of each arm. Pairs that were not judged on the same items are compared
    on those that both have.
    """
    rows: list[dict[str, object]] = []
    of_arm = {arm: answers.of_arm(arm) for arm in answers.arms}
    for name, pairs in families.items():
        family = []
        for arm, versus in pairs:
            pair = Pair.of(of_arm, arm, versus)
            ours, theirs = (
                statistics[one] if pair.complete else compared(sampling.statistics(common))
                for one, common in ((arm, pair.arm), (versus, pair.versus))
            )
            arms = {"arm_id": arm, "versus_arm_id": versus}
            family.append([arms | row for row in _pair_rows(pair, ours, theirs, sampling)])
        rows += [row for pair_rows in family for row in pair_rows]
        rows += _holm_rows(name, family)
    return rows


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms on the items that both were judged on, in the same order."""

    arm: Answers
    versus: Answers
    complete: bool  # neither had other items

    @staticmethod
    def of(of_arm: Mapping[str, Answers], arm: str, versus: str) -> "Pair":
        """The common items of two arms; an arm without any judged item is an InputError."""
        for name in (arm, versus):
            if name not in of_arm:
                raise InputError(f"arm {name!r} has no judged item; compare two of {', '.join(of_arm)}")
        first, second = of_arm[arm], of_arm[versus]
        ours, theirs = first.common_with(second), second.common_with(first)
        return Pair(ours, theirs, len(ours) == len(first) and len(theirs) == len(second))

    def in_scope(self, scope: str) -> tuple[Items | Reports, Items | Reports]:
        """The rows of both arms that a statistic of this scope rests on."""
        return self.arm.in_scope(scope), self.versus.in_scope(scope)


def _pair_rows(
    pair: Pair, ours: Mapping[Key, Statistic], theirs: Mapping[Key, Statistic], sampling: Resampling
) -> list[dict[str, object]]:
    rows = []
    for key in sorted(set(ours) & set(theirs), key=lambda key: key[::-1]):
        difference = Statistic(ours[key].values - theirs[key].values, ours[key].basis)
        rows.append(as_row(key, difference, sampling.method))
        if key[0] == "primary":
            rows.append(_equivalence_row(key[1], difference, sampling))
    chosen = {scope: pair.in_scope(scope) for scope in sorted({str(row["scope"]) for row in rows})}
    tested = {str(row["scope"]) for row in rows if row["metric"] == "primary"}
    rows += _test_rows({scope: both for scope, both in chosen.items() if scope in tested}, sampling)
    rows += [_wilcoxon_row(scope, chosen, rows, sampling) for scope in tested & {"tier:1"}]
    # where both arms asked the same they differ by exactly zero
    same = {scope: int((mine.request == other.request).sum()) for scope, (mine, other) in chosen.items()}
    return [row | {"n_same_request": same[str(row["scope"])]} for row in rows]


def _equivalence_row(scope: str, difference: Statistic, sampling: Resampling) -> dict[str, object]:
    row = as_row(("primary.equivalence", scope), difference, sampling.method, level=0.9)
    verdict = equivalent(difference.interval(100, level=0.9))
    return row | {"method": f"{verdict}: within {MARGIN:g} points, 90 % interval; {row['method']}"}


def _test_rows(
    chosen: Mapping[str, tuple[Items | Reports, Items | Reports]], sampling: Resampling
) -> list[dict[str, object]]:
    """Sign flips of patients for every scope of picked answers, McNemar beside it for one right option."""
    picked = {
        scope: (ours, theirs)
        for scope, (ours, theirs) in chosen.items()
        if isinstance(ours, Items) and isinstance(theirs, Items)
    }
    if not picked:
        return []
    patients = sampling.weights.shape[1]
    changes = np.stack([patient_differences(*items, patients) for items in picked.values()], axis=-1)
    p_values = sign_flip(changes, sampling.seed)
    method = f"patient-level sign flips, {FLIPS}, seed {sampling.seed}"
    rows = []
    for (scope, (ours, theirs)), p in zip(picked.items(), p_values, strict=True):
        basis = Basis.of(ours)
        rows.append(as_row(("primary.sign_flip_p", scope), Statistic(np.array([p]), basis), method))
        if scope.startswith("subtask:") and ours.answer_type[0] != "multi":
            test = mcnemar_of(_right(ours), _right(theirs))
            rows.append(
                as_row(("accuracy.mcnemar_p", scope), Statistic(np.array([test.p]), basis), test.method)
            )
    return rows


def _wilcoxon_row(
    scope: str,
    chosen: Mapping[str, tuple[Items | Reports, Items | Reports]],
    rows: Sequence[Mapping[str, object]],
    sampling: Resampling,
) -> dict[str, object]:
    """Signed ranks over the subtasks of a tier: whether most of them change in one direction."""
    items = chosen[scope][0]
    subtasks, sizes = np.unique(items.subtask, return_counts=True)
    kept = {f"subtask:{subtask}" for subtask in subtasks[sizes >= sampling.min_n]}
    changes = [row["value"] for row in rows if row["metric"] == "primary" and row["scope"] in kept]
    test = wilcoxon(np.array(changes, np.float64))
    method = f"Wilcoxon signed rank over {len(changes)} subtasks, {test.method}"
    return as_row(("primary.wilcoxon_p", scope), Statistic(np.array([test.p]), Basis.of(items)), method)


def _holm_rows(name: str, family: Sequence[Sequence[dict[str, object]]]) -> list[dict[str, object]]:
    """Adjusted copies of the sign-flip p-values of a family of pairs, scope by scope."""
    tests = [row for rows in family for row in rows if row["metric"] == "primary.sign_flip_p"]
    adjusted: list[dict[str, object]] = []
    for scope in sorted({str(row["scope"]) for row in tests}):
        of_scope = [row for row in tests if row["scope"] == scope]
        values = holm([float(str(row["value"])) for row in of_scope])
        note = f"Holm over {len(of_scope)} pairs of {name}"
        adjusted += [
            row | {"metric": "primary.holm_p", "value": value, "method": f"{note}; {row['method']}"}
            for row, value in zip(of_scope, values, strict=True)
        ]
    return adjusted


def patient_differences(arm: Items, versus: Items, patients: int) -> Floats:
    """What each patient adds to the difference of the mean over subtasks of mean item scores."""
    _, subtask, sizes = np.unique(arm.subtask, return_inverse=True, return_counts=True)
    shares = (item_scores(arm) - item_scores(versus)) / sizes[subtask] / max(len(sizes), 1)
    return np.bincount(arm.patient, weights=shares, minlength=patients).astype(np.float64)


def item_scores(items: Items) -> Floats:
    """F1 of each item's set with its gold set: 1 or 0 for one option, between for several."""
    right, gold, found = (
        np.bitwise_count(masks).astype(np.float64)
        for masks in (items.gold & items.parsed, items.gold, items.parsed)
    )
    return np.asarray(2 * right / (gold + found), np.float64)


def _right(items: Items) -> Bools:
    return np.asarray(items.gold == items.parsed)
