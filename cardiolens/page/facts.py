"""Facts that a page is made from: records, scores and analyses of one run, or of several merged runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.config.sweep import SweepSpec
from cardiolens.errors import InputError
from cardiolens.page.usage import Usage, usage_of
from cardiolens.record import documents
from cardiolens.record.places import Run
from cardiolens.results.analyses import AnalysisRow, AnalysisTable, read_analyses
from cardiolens.stats.factors import ArmFactors
from cardiolens.tasks.catalogue import Subtask, load_catalogue


@dataclass(frozen=True, slots=True)
class Facts:
    """Input of all sections.

    `manifests` and `specs` have one entry per run; `subtasks` is empty where the protocol's folder is gone.
    """

    name: str
    specs: tuple[SweepSpec, ...]
    manifests: tuple[Mapping[str, Any], ...]
    arms: tuple[ArmFactors, ...]
    scores: pa.Table
    analyses: Mapping[str, AnalysisTable]
    usage: tuple[Usage, ...]
    subtasks: Mapping[str, Subtask]
    n_patients: int

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models in the order of the arms."""
        return tuple(dict.fromkeys(arm.model for arm in self.arms))

    @property
    def simulated(self) -> frozenset[str]:
        """Names of simulated readers, whose scores test the software and not a model."""
        return frozenset(
            model.name for spec in self.specs for model in spec.model if model.answers_from != "images"
        )

    def arm(self, arm_id: object) -> ArmFactors | None:
        """Arm with an id; None for an id that is no arm's, such as a headline's."""
        return next((arm for arm in self.arms if arm.arm_id == arm_id), None)

    def told(self, analysis: str) -> AnalysisTable:
        """Analysis by name; an empty one where the arms did not allow it."""
        return self.analyses.get(analysis, AnalysisTable())

    def of_arms(self, metrics: Sequence[str], scope: str) -> list[AnalysisRow]:
        """Scores of single arms with one of the metrics, at scopes that begin with `scope`."""
        return self._rows(metrics, scope, pc.is_null(self.scores["versus_arm_id"]))

    def of_pairs(self, metrics: Sequence[str], scope: str) -> list[AnalysisRow]:
        """Scores that are differences of two arms, with metrics and scopes as in `of_arms`."""
        return self._rows(metrics, scope, pc.is_valid(self.scores["versus_arm_id"]))

    def _rows(self, metrics: Sequence[str], scope: str, kind: pa.ChunkedArray) -> list[AnalysisRow]:
        named = pc.is_in(self.scores["metric"], value_set=pa.array(list(metrics), pa.string()))
        chosen = pc.and_(kind, pc.and_(named, pc.starts_with(self.scores["scope"], scope)))
        rows: list[AnalysisRow] = self.scores.filter(chosen).to_pylist()
        place = {arm.arm_id: at for at, arm in enumerate(self.arms)}
        return sorted(rows, key=lambda row: place.get(row["arm_id"], len(place)))


def read_facts(run: Run, parts: Sequence[Run]) -> Facts:
    """Read the facts of a judged run; `parts` are the runs that it merges, or itself alone.

    InputError where the run has no readable analyses.
    """
    specs = tuple(documents.read_configuration(part) for part in parts)
    verdicts = tables.read(run.verdicts, tables.VERDICTS, ["patient_id"])
    manifests = tuple(documents.read_manifest(part) for part in parts)
    return Facts(
        name=run.root.name,
        specs=specs,
        manifests=manifests,
        arms=_arms(manifests),
        scores=tables.read(run.scores, tables.SCORES),
        analyses=read_analyses(run),
        usage=usage_of(parts, specs, manifests),
        subtasks=_subtasks(specs[0].dataset.protocol),
        n_patients=len(pc.unique(verdicts["patient_id"])),
    )


def _arms(manifests: Sequence[Mapping[str, Any]]) -> tuple[ArmFactors, ...]:
    by_id = {arm["arm_id"]: arm for manifest in manifests for arm in manifest["arms"]}
    return tuple(ArmFactors(**{**arm, "budget": str(arm["budget"])}) for arm in by_id.values())


def _subtasks(protocol: str) -> Mapping[str, Subtask]:
    try:
        return load_catalogue(protocol).subtasks
    except InputError:
        return {}
