"""Headlines on parts of a cohort: the full one against e.g. the public one, and subgroups (8.5)."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cardiolens.base.errors import InputError
from cardiolens.score.statistics.answers import Answers, ArmAnswers
from cardiolens.score.statistics.arm_statistics import claimed_statistics
from cardiolens.score.statistics.bootstrap import Interval, resampling_weights
from cardiolens.score.statistics.comparisons import comparison, decided
from cardiolens.score.statistics.counting import Cells, Key
from cardiolens.score.statistics.headlines import PREFIX, Headlines, model_means
from cardiolens.score.statistics.hypothesis_tests import adjusted, interval_p
from cardiolens.score.statistics.items import Bools, Floats, Items
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.statistic import Resampling, Row, Settings, Statistic, as_row

FEWEST = 5  # smaller subgroups have no score, which could identify patients
TOO_FEW = f"fewer than {FEWEST} patients: not given"
Subgroups = Mapping[str, Mapping[str, Collection[str]]]  # by attribute, by its value: patients


@dataclass(frozen=True, slots=True)
class Part:
    """A named subset of the patients of a cohort."""

    name: str
    patients: Collection[str]


def full_minus_part(
    answers: ArmAnswers, part: Part, models: Headlines, settings: Settings, simulated: Collection[str] = ()
) -> list[Row]:
    """The headlines of every model on the full cohort minus those on a part, one family of Holm.

    Part and remainder are resampled separately; the full cohort is both together. `simulated` are models that
    are simulated readers: they are in no test. An unknown patient, or a part with no or all patients, is an
    InputError.
    """
    inside = _inside(answers.patients, part.patients)
    weights = separate_weights(inside, settings.resamples, settings.seed)
    sampling = Resampling(settings, weights)
    method = f"full cohort minus {int(inside.sum())} patients; part and remainder resampled separately"
    method += f", expanded percentile, B={settings.resamples}, seed {settings.seed}"
    rows: list[Row] = []
    for model, protocols in models.items():
        full, of_part = (_headline(answers, protocols, sampling, patients) for patients in (None, inside))
        for key in (key for key in full if key in of_part):
            values = full[key].values - of_part[key].values
            row = comparison(*key, Statistic(values, full[key].basis, of_pairs=True), method)
            names = {"factor": "cohort", "level": "full", "versus": part.name, "model": model}
            rows.append(names | row | {"simulated": model in simulated})
    tested = [row for row in rows if not row["simulated"]]
    for row in tested:
        interval = Interval(row["difference"], row["low"], row["high"])
        row["p"] = interval_p(interval, 0.0, row["n_patients"])
    for row, p in zip(tested, adjusted([row["p"] for row in tested]), strict=True):
        row |= {"p_adjusted": float(p), "adjustment": "holm", "family_size": len(tested)}
        row["family"] = f"full cohort against {part.name}"
    for row in rows:  # what is equivalent is asked of settings, not of cohorts
        for name in ("low_90", "high_90", "within_p", "beyond_p"):
            row.pop(name, None)
        row.update(decided({"p_adjusted": None, "adjustment": None, **row}))
    return rows


def _headline(
    answers: ArmAnswers,
    protocols: Mapping[str, Collection[str]],
    sampling: Resampling,
    patients: Bools | None,
) -> dict[Key, Statistic]:
    """The tier scores of a model: the mean over its protocols of the mean over seeds."""
    by_arm = {}
    for arm in (arm for arms in protocols.values() for arm in arms):
        own = answers[arm].judged
        own = own if patients is None else own.of_patients(patients)
        if len(own):
            by_arm[arm] = _tier_scores(own, sampling)
    arms_of_protocol = {name: [arm for arm in arms if arm in by_arm] for name, arms in protocols.items()}
    means = model_means(by_arm, arms_of_protocol)
    return {key: mean for key, mean in means.items() if key[0] == "primary"}


def _tier_scores(answers: Answers, sampling: Resampling) -> dict[Key, Statistic]:
    statistics = claimed_statistics(answers, Cells.of(answers, sampling.patients), sampling)
    return {key: statistic for key, statistic in statistics.items() if key[0] == "primary"}


def subgroup_rows(
    answers: ArmAnswers, subgroups: Subgroups, models: Headlines, settings: Settings
) -> Iterator[Row]:
    """Yield the headlines of models on each subgroup, with intervals over its patients.

    Descriptive, not compared: subgroups differ in their diseases as well. A subgroup, or its part on a tier,
    with fewer than FEWEST patients is listed without numbers. Patients with unknown attribute are left out.
    """
    resamples, seed = settings.resamples, settings.seed
    method = f"expanded percentile cluster bootstrap of the subgroup, B={resamples}, seed {seed}"
    for attribute, values in sorted(subgroups.items()):
        for value, members in sorted(values.items()):
            inside = np.isin(answers.patients, list(members))
            labels: Row = {"attribute": attribute, "subgroup": value, "metric": "primary"}
            if 0 < inside.sum() < FEWEST:
                yield {**labels, "method": TOO_FEW}
            elif inside.any():
                weights = np.zeros((1 + resamples, len(answers.patients)))
                weights[:, inside] = resampling_weights(int(inside.sum()), resamples, seed)
                sampling = Resampling(settings, weights)
                for model, protocols in models.items():
                    names = {**labels, "arm_id": f"{PREFIX}{model}"}
                    for key, statistic in _headline(answers, protocols, sampling, inside).items():
                        if statistic.basis.n_patients < FEWEST:
                            yield {**names, "scope": key[1], "method": TOO_FEW}
                        else:
                            yield names | as_row(key, statistic, method)


def separate_weights(inside: Bools, resamples: int, seed: int) -> Floats:
    """Resample two groups of patients separately, each at its own size."""
    weights = np.ones((1 + resamples, len(inside)))
    for offset, group in enumerate((inside, ~inside)):
        weights[:, group] = resampling_weights(int(group.sum()), resamples, seed + offset)
    return weights


def gold_shift(answers: ArmAnswers, part: Collection[str]) -> dict[str, float]:
    """Total variation between gold answers of the full cohort and of a part, by single-choice subtask."""
    inside = _inside(answers.patients, part)
    if not answers.arms:  # numbers and rankings have no classes
        return {}
    items = answers.judged(answers.arms[0]).items
    items = items.where(items.answer_type != "multi")
    subtasks = map(str, np.unique(items.subtask))
    return {subtask: _distance(items.where(items.subtask == subtask), inside) for subtask in subtasks}


def _distance(items: Items, inside: Bools) -> float:
    options = np.array([items.gold >> bit & 1 for bit in range(items.size)], np.float64)
    full, part = options.sum(axis=1), options[:, inside[items.patient]].sum(axis=1)
    return float(0.5 * np.abs(ratio(full, full.sum()) - ratio(part, part.sum())).sum())


def _inside(patients: list[str], part: Collection[str]) -> Bools:
    unknown = sorted(set(part) - set(patients))
    if unknown:
        raise InputError(f"patient {unknown[0]!r} of the part is not in the cohort; name patients of the run")
    inside = np.isin(patients, list(part))
    if inside.all() or not inside.any():
        raise InputError(
            f"the part has {int(inside.sum())} of {len(patients)} patients; it must be a proper part"
        )
    return np.asarray(inside)
