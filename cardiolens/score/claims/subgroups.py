"""Headline scores by subgroup of patients, such as sex or vendor (protocol 16.11)."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.arm_answers import ArmAnswers
from cardiolens.score.statistics.bootstrap import resampling_weights
from cardiolens.score.statistics.cells import Cells, claimed_statistics
from cardiolens.score.statistics.headlines import PREFIX, Headlines
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.judged_pair import basis_of, of_fields
from cardiolens.score.statistics.resampling import Resampling
from cardiolens.score.statistics.rows import TIERS, Row, as_row
from cardiolens.score.statistics.statistic import Basis, Statistic

NAME = "subgroups"
FEWEST = 5  # smaller subgroups have no score, which could identify patients

Subgroups = Mapping[str, Mapping[str, Collection[str]]]  # by attribute, by its value: patients


def subgroup_scores(
    answers: ArmAnswers, subgroups: Subgroups, models: Headlines, *, min_n: int, resamples: int, seed: int
) -> Analysis:
    """Headlines of models on each subgroup, with intervals over its patients.

    Descriptive, not compared: subgroups differ in their diseases as well. A subgroup, or its part on a tier,
    with fewer than FEWEST patients is listed without numbers. Patients with unknown attribute are left out.
    """
    patients = answers.patients
    method = f"expanded percentile cluster bootstrap of the subgroup, B={resamples}, seed {seed}"
    rows: list[Row] = []
    for attribute, values in sorted(subgroups.items()):
        for value, members in sorted(values.items()):
            inside = np.isin(patients, list(members))
            labels: Row = {"attribute": attribute, "subgroup": value}
            if 0 < inside.sum() < FEWEST:
                rows.append({**labels, "metric": "primary", "method": _TOO_FEW})
            elif inside.any():
                weights = np.zeros((1 + resamples, len(patients)))
                weights[:, inside] = resampling_weights(int(inside.sum()), resamples, seed)
                sampling = Resampling(weights, min_n, seed)
                for model, protocols in models.items():
                    names = [arm for of_protocol in protocols.values() for arm in of_protocol]
                    arms = {arm: answers[arm].where_judged().of_patients(inside) for arm in names}
                    rows += [
                        {**labels, "arm_id": f"{PREFIX}{model}", **row}
                        for row in _headline(arms, sampling, protocols, method)
                    ]
    return Analysis(NAME, rows)


_TOO_FEW = f"fewer than {FEWEST} patients: not given"


def _headline(
    arms: Mapping[str, Answers], sampling: Resampling, protocols: Mapping[str, Collection[str]], method: str
) -> Iterator[Row]:
    """The tier scores of one model: the mean over its protocols of the mean over seeds."""
    by_arm = {arm: _tier_scores(of_arm, sampling) for arm, of_arm in arms.items() if len(of_arm)}
    for tier in TIERS:
        by_protocol = [
            [by_arm[arm][tier] for arm in of_protocol if tier in by_arm.get(arm, {})]
            for of_protocol in protocols.values()
        ]
        means = [np.mean(values, axis=0) for values in by_protocol if values]
        if not means:
            continue
        basis = _basis([arms[arm] for arm in by_arm if tier in by_arm[arm]], tier)
        if basis.n_patients < FEWEST:
            yield {"metric": "primary", "scope": tier, "method": _TOO_FEW}
        else:
            yield as_row(("primary", tier), Statistic(np.mean(means, axis=0), basis), method)


def _tier_scores(answers: Answers, sampling: Resampling) -> dict[str, Floats]:
    cells = Cells.of(answers, sampling.patients)
    values = claimed_statistics(
        cells.parts, [rows @ sampling.weights.T for rows in cells.rows], sampling.min_n
    )
    return {scope: value for (metric, scope), value in values.items() if metric == "primary"}


def _basis(arms: list[Answers], tier: str) -> Basis:
    rows = [of_fields(of_arm.in_scope(tier)) for of_arm in arms]
    parts = [basis_of(answers, tier) for answers in rows]
    subtasks = len(np.unique(np.concatenate([answers.subtask for answers in rows])))
    return Basis(
        n_items=sum(part.n_items for part in parts),
        n_patients=max(part.n_patients for part in parts),
        n_parse_error=sum(part.n_parse_error for part in parts),
        n_refusal=sum(part.n_refusal for part in parts),
        note=f"{counted(subtasks, 'subtask')}, {counted(len(arms), 'arm')}",
        n_effective=min(part.n_effective for part in parts),
        effective_items=min(part.effective_items for part in parts),
        n_entities=sum(part.n_entities for part in parts),
        n_hospitals=parts[0].n_hospitals,
        hospital_inflation=max(part.hospital_inflation for part in parts),
        n_arms=len(parts),
    )
