"""Parts of a cohort: the full one against e.g. the public one, and headlines of subgroups (8.5)."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cardiolens.score.statistics.arm_statistics import claimed_statistics
from cardiolens.score.statistics.bootstrap import Basis, resampling_weights
from cardiolens.score.statistics.comparisons import comparison, concluded
from cardiolens.score.statistics.counting import Key, cells_of
from cardiolens.score.statistics.factors import Headlines, Protocols, arms_of
from cardiolens.score.statistics.hypothesis_tests import row_p
from cardiolens.score.statistics.items import Answers, ArmAnswers, Bools, Floats, Items
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.scores import PREFIX, model_means
from cardiolens.score.statistics.statistic import Resampling, Row, Settings, Statistic, as_row
from cardiolens.study.cohort import read_cohort
from cardiolens.study.shards import read_volumes

FEWEST = 5  # smaller subgroups have no score, which could identify patients
TOO_FEW = f"fewer than {FEWEST} patients: not given"
SITE = "site"  # the attribute of study.json that names a hospital
Parts = Mapping[str, Collection[str]]  # patients by the name of a part


@dataclass(frozen=True, slots=True)
class Groups:
    """Parts of a cohort by name, e.g. the public one, and subgroups by attribute and value, e.g. vendor."""

    parts: Parts = field(default_factory=dict)
    subgroups: Mapping[str, Parts] = field(default_factory=dict)

    @property
    def hospitals(self) -> dict[str, str]:
        """The hospital of each patient, where it is known."""
        by_site = self.subgroups.get(SITE, {})
        return {patient: site for site, patients in by_site.items() for patient in patients}


def groups_of(store: Path, patients: Collection[str]) -> Groups:
    """Group the judged patients by the manifests of their studies.

    Parts hold some of the patients, but not all. Patients with studies that disagree are in no subgroup.
    """
    judged, study_cohort = set(patients), read_cohort(store)
    records = study_cohort.studies if study_cohort else {}
    parts: dict[str, set[str]] = {}
    values: dict[tuple[str, str], set[str]] = {}  # by attribute and patient
    for row in read_volumes(store).select(["study_id", "patient_id", "cohort"]).to_pylist():
        if (patient := row["patient_id"]) in judged:
            for name in row["cohort"]:
                parts.setdefault(name, set()).add(patient)
            if row["study_id"] in records:
                for attribute, value in records[row["study_id"]].subgroups.items():
                    values.setdefault((attribute, patient), set()).add(value)
    subgroups: dict[str, dict[str, set[str]]] = {}
    for (attribute, patient), of_patient in values.items():
        if len(of_patient) == 1:
            subgroups.setdefault(attribute, {}).setdefault(of_patient.pop(), set()).add(patient)
    return Groups({name: parts[name] for name in sorted(parts) if parts[name] != judged}, subgroups)


def full_minus_part(
    answers: ArmAnswers,
    name: str,
    part: Collection[str],
    models: Headlines,
    settings: Settings,
    *,
    simulated: Collection[str] = (),
) -> list[Row]:
    """The headlines of every model on the full cohort minus those on a part, one family of Holm.

    Part and remainder are resampled separately; the full cohort is both together, on the subtasks and gold
    diagnoses that are scored on the part. `simulated` are models that are simulated readers: they are in no
    test.
    """
    inside = np.isin(answers.patients, list(part))
    sampling = Resampling(settings, separate_weights(inside, settings.resamples, settings.seed))
    method = (
        f"full cohort minus {int(inside.sum())} patients, on the subtasks and diagnoses of both; from the "
        f"intervals of part and remainder, resampled separately, B={settings.resamples}, seed {settings.seed}"
    )
    rows: list[Row] = []
    for model, protocols in models.items():
        judged = {arm: answers.judged(arm) for arm in arms_of(protocols)}
        few = {arm: _of_patients(own, inside) for arm, own in judged.items()}
        alike = {arm: _alike(own, few[arm], settings.min_n) for arm, own in judged.items()}
        others = {arm: _of_patients(own, ~inside) for arm, own in alike.items()}
        full, of_part, rest = (_headline(by_arm, protocols, sampling) for by_arm in (alike, few, others))
        for key in (key for key in full if key in of_part):
            whole, n_few = full[key].basis, of_part[key].basis.n_patients
            fewest = min(n_few, whole.n_patients - n_few)  # of part and remainder
            basis = replace(whole, n_patients=fewest)
            difference = Statistic(full[key].values[:1] - of_part[key].values[:1], basis, of_pairs=True)
            # what is equivalent is asked of settings, not of cohorts
            row = comparison(key, difference, method, against_margin=False)
            row |= {"factor": "cohort", "level": "full", "versus": name, "model": model}
            row["simulated"] = model in simulated
            if key in rest:
                row |= _ends(row["difference"], whole, of_part[key], rest[key])
            if model not in simulated:
                row |= {"p": row_p(row, fewest), "adjustment": "holm"}
                row["family"] = f"full cohort against {name}"
            rows.append(row)
    return concluded(rows)


def _ends(difference: float, whole: Basis, part: Statistic, rest: Statistic) -> dict[str, float]:
    """The ends of a difference, in points, from those of part and remainder (Zou and Donner 2008).

    A difference of full cohort and part is that of remainder and part times the remainder's share.
    """
    few, many = part.interval("primary"), rest.interval("primary")
    share = 1 - part.basis.n_items / whole.n_items
    below = math.hypot(few.high - few.value, many.value - many.low)
    above = math.hypot(few.value - few.low, many.high - many.value)
    return {"low": difference - share * below, "high": difference + share * above}


def _of_patients(answers: Answers, inside: Bools) -> Answers:
    """The answers of some patients."""
    return answers.where(inside[answers.items.patient], inside[answers.reports.patient])


def _alike(answers: Answers, part: Answers, min_n: int) -> Answers:
    """The answers to subtasks, on tier 3 of gold classes, that a part has enough items of to be scored."""
    kinds, first, numbers = np.unique(_kinds(part.items), return_index=True, return_counts=True)
    kinds = kinds[numbers >= np.where(part.items.tier[first] == 1, min_n, 1)]
    return answers.where(
        np.isin(_kinds(answers.items), kinds), np.isin(answers.reports.subtask, part.reports.subtask)
    )


def _kinds(items: Items) -> NDArray[np.str_]:
    """The subtask of each item, on tier 3 with its gold class."""
    return np.char.add(items.subtask, np.where(items.tier == 3, items.gold, 0).astype(np.str_))


def _headline(
    answers: Mapping[str, Answers], protocols: Protocols, sampling: Resampling
) -> dict[Key, Statistic]:
    """The tier scores of a model from answers by arm: the mean over its protocols of the mean over seeds."""
    by_arm = {
        arm: claimed_statistics(own, cells_of(own, sampling.patients), sampling)
        for arm, own in answers.items()
        if len(own)
    }
    protocols = {name: [arm for arm in arms if arm in by_arm] for name, arms in protocols.items()}
    return {key: mean for key, mean in model_means(by_arm, protocols).items() if key[0] == "primary"}


def subgroup_rows(
    answers: ArmAnswers, subgroups: Mapping[str, Parts], models: Headlines, settings: Settings
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
                    own = {arm: _of_patients(answers.judged(arm), inside) for arm in arms_of(protocols)}
                    for key, statistic in _headline(own, protocols, sampling).items():
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
    inside = np.isin(answers.patients, list(part))
    if not answers.arms:  # numbers and rankings have no classes
        return {}
    items = answers.asked[answers.arms[0]].items  # judged or not
    shifts = {}
    for subtask, rows in items.where(items.answer_type != "multi").by_subtask():
        options = np.array([rows.gold >> bit & 1 for bit in range(rows.size)], np.float64)
        full, of_part = options.sum(axis=1), options[:, inside[rows.patient]].sum(axis=1)
        distances = np.abs(ratio(full, full.sum()) - ratio(of_part, of_part.sum()))
        shifts[subtask] = float(0.5 * distances.sum())
    return shifts
