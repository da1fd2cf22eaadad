"""Groups of patients that are scored separately, and the arms of a sweep as factors."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from cardiolens.config.arms import Arm
from cardiolens.score.claims.descriptions import SITE
from cardiolens.score.claims.parts_of_cohort import Part, Subgroups
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.verdict_rows import Verdicts, cohort
from cardiolens.study.cohort import read_cohort
from cardiolens.study.shards import read_volumes


@dataclass(frozen=True, slots=True)
class Groups:
    """Parts of a cohort by name, e.g. the public one, and subgroups by attribute, e.g. vendor."""

    parts: Sequence[Part] = ()
    subgroups: Subgroups = field(default_factory=dict)

    @property
    def hospitals(self) -> dict[str, str]:
        """The hospital of each patient, where it is known."""
        by_site = self.subgroups.get(SITE, {})
        return {patient: site for site, patients in by_site.items() for patient in patients}


def groups_of(store: Path, verdicts: pa.Table | Verdicts) -> Groups:
    """Group the judged patients by the manifests of their studies."""
    volumes = read_volumes(store)
    return Groups(parts_of(volumes, verdicts), _subgroups(store, volumes, verdicts))


def parts_of(volumes: pa.Table, verdicts: pa.Table | Verdicts) -> list[Part]:
    """Named cohorts that contain some of the judged patients, but not all."""
    patients_with_verdicts = set(cohort(verdicts))
    by_name: dict[str, set[str]] = {}
    columns = volumes.select(["patient_id", "cohort"]).to_pydict()
    for patient, names in zip(columns["patient_id"], columns["cohort"], strict=True):
        for name in names:
            by_name.setdefault(name, set()).add(patient)
    parts = {name: patients & patients_with_verdicts for name, patients in sorted(by_name.items())}
    return [
        Part(name, patients)
        for name, patients in parts.items()
        if patients and patients != patients_with_verdicts
    ]


def _subgroups(store: Path, volumes: pa.Table, verdicts: pa.Table | Verdicts) -> Subgroups:
    """Judged patients by attribute and value; patients whose studies disagree are left out."""
    study_cohort = read_cohort(store)
    records = study_cohort.studies if study_cohort else {}
    patients_with_verdicts = set(cohort(verdicts))
    values_by_patient: dict[tuple[str, str], set[str]] = {}
    pairs = volumes.select(["study_id", "patient_id"]).to_pydict()
    for study, patient in set(zip(pairs["study_id"], pairs["patient_id"], strict=True)):
        if patient in patients_with_verdicts and study in records:
            for attribute, value in records[study].subgroups.items():
                values_by_patient.setdefault((attribute, patient), set()).add(value)
    subgroups: dict[str, dict[str, set[str]]] = {}
    for (attribute, patient), values in values_by_patient.items():
        if len(values) == 1:
            subgroups.setdefault(attribute, {}).setdefault(values.pop(), set()).add(patient)
    return subgroups


def judged_arms(sweep_arms: Sequence[Arm], judged_ids: Collection[str]) -> list[ArmFactors]:
    """Factors of the arms that have a judged item, and so can be compared."""
    with_verdicts = set(judged_ids)
    return [arm for arm in arm_factors(sweep_arms) if arm.arm_id in with_verdicts]


def arm_factors(sweep_arms: Sequence[Arm]) -> list[ArmFactors]:
    """Factors of every arm of a sweep."""
    return [
        ArmFactors(
            arm_id=arm.arm_id,
            model=arm.model.name,
            selector=arm.selector_name,
            budget=str(arm.budget),
            prompt=arm.prompt.name,
            control=arm.control,
            wording=str(arm.wording),
            simulated=arm.model.simulated,
            shots=arm.prompt.shots,
            cine=arm.prompt.cine,
        )
        for arm in sweep_arms
    ]
