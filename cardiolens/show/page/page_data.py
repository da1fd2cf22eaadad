"""The data of a page: records, scores, analyses and usage of one run, or of several merged runs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.protocol.tasks.catalogue import Subtask, load_catalogue
from cardiolens.score.run_results.run_analyses import Analyses, AnalysisRow, read_judged
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.statistic import Row
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.documents import AuditedModel
from cardiolens.storage.places import Run, Store

_ITEM = ["arm_id", "qa_id"]
_TOOK = ("prompt_tokens", "cached_tokens", "output_tokens", "seconds")


def usage_of(header: "Header") -> list[Row]:
    """Requests and tokens of each model over all runs that asked it, of two stores too.

    `asked` counts questions, once per arm, `unique` distinct requests planned, and `answered` those with a
    reply; `seconds` are summed over requests, which overlap in time; the last reply came at `last_at`.
    """
    models = dict.fromkeys(model for manifest in header.manifests for model in manifest["models"])
    return [_usage(model, list(header.runs_of(model))) for model in models]


def _usage(model: str, runs: Sequence[tuple[Run, Path]]) -> Row:
    requests = pa.concat_tables(
        tables.read(run.requests(model), schemas.REQUESTS, [*_ITEM, "request_key", "status"])
        for run, _ in runs
    )
    asked = requests.group_by(_ITEM).aggregate([])  # runs may share arms
    keys = pc.unique(requests.filter(pc.equal(requests["status"], "planned"))["request_key"])
    columns = ("request_key", "status", "written_at", *_TOOK)
    folders = dict.fromkeys(folder for _, folder in runs)
    stored = pa.concat_tables(tables.read(folder, schemas.COMPLETIONS, columns) for folder in folders)
    final = finals(stored.filter(pc.is_in(stored["request_key"], value_set=keys)))
    counts = {"asked": asked.num_rows, "unique": len(keys), "answered": final.num_rows}
    took = {name: pc.sum(final[name]).as_py() or 0 for name in _TOOK}
    return {"model": model, **counts, **took, "last_at": pc.max(final["written_at"]).as_py()}


@dataclass(frozen=True)
class Header:
    """Name and arms of a run; the runs that it joins, or itself alone, with their specs and manifests."""

    name: str
    parts: tuple[Run, ...]
    specs: tuple[SweepSpec, ...]
    manifests: tuple[Mapping[str, Any], ...]
    arms: tuple[ArmFactors, ...]  # models before simulated readers, with images before without

    @cached_property
    def simulated(self) -> frozenset[str]:
        """Models that are simulated readers: their scores test the software, not a model."""
        return frozenset(model.name for spec in self.specs for model in spec.model if model.simulated)

    @property
    def people(self) -> frozenset[str]:
        """Models that are human readers."""
        return frozenset(
            model.name for spec in self.specs for model in spec.model if model.answers_from == "readings"
        )

    @cached_property
    def subtasks(self) -> Mapping[str, Subtask]:
        """Subtasks of the protocol; empty where its folder is gone."""
        try:
            return load_catalogue(self.specs[0].dataset.protocol).subtasks
        except InputError:
            return {}

    @property
    def models(self) -> tuple[str, ...]:
        """Model names in the order of the arms."""
        return tuple(dict.fromkeys(arm.model for arm in self.arms))

    def runs_of(self, model: str) -> Iterator[tuple[Run, Path]]:
        """Yield the runs that asked a model, each with the folder of its completions."""
        for part, spec, manifest in zip(self.parts, self.specs, self.manifests, strict=True):
            if model in manifest["models"]:
                yield part, Store(spec.store).completions(str(manifest["models"][model]["model_key"]))


@dataclass(frozen=True)
class Facts(Header):
    """The data that sections of a page are made of."""

    scores: pa.Table
    comparisons: pa.Table
    analyses: Analyses
    usage: Sequence[Row]  # of each model
    n_patients: int
    rules: str  # version of the rules that judged the run
    audits: tuple[AuditedModel, ...] = ()  # of replies that a person read, by model

    @property
    def is_unfinished(self) -> bool:
        """Return whether a request of a model has no final answer."""
        return any(row["answered"] < row["unique"] for row in self.usage)

    @property
    def patients_in_words(self) -> str:
        """How many patients have a verdict; pictures of a public benchmark stand in their place."""
        what = "picture" if self.specs[0].dataset.has_pictures else "patient"
        return f"{self.n_patients:,} {what}{'' if self.n_patients == 1 else 's'}"

    def most(self, name: str) -> int:
        """The largest number of that name in a manifest; runs seen as one asked the same questions."""
        return max(int(manifest.get(name, 0)) for manifest in self.manifests)

    def of_manifests(self, name: str) -> dict[str, Any]:
        """The entries of that name in all manifests."""
        return {key: value for manifest in self.manifests for key, value in manifest.get(name, {}).items()}

    def arm(self, arm_id: object) -> ArmFactors | None:
        """The arm of a row of scores."""
        place = self._places.get(arm_id)
        return None if place is None else self.arms[place]

    def place(self, arm_id: object) -> int:
        """The place of an arm among all; any other row stands after them."""
        return self._places.get(arm_id, len(self.arms))

    @cached_property
    def _places(self) -> Mapping[object, int]:
        return {arm.arm_id: at for at, arm in enumerate(self.arms)}

    def analysis(self, name: str) -> Sequence[AnalysisRow]:
        """The rows of an analysis by name; none if the arms did not allow it."""
        return self.analyses.get(name, ())

    def scores_of(self, metrics: Collection[str], scope: str) -> list[AnalysisRow]:
        """Rows of scores with one of these metrics, at scopes with this prefix.

        A name that ends with a dot stands for that metric and those of its options, e.g. `auroc.`.
        """
        names = [name for name in self._metrics if {name, f"{name.partition('.')[0]}."} & {*metrics}]
        has_metric = pc.is_in(self.scores["metric"], value_set=pa.array(names, pa.string()))
        wanted = pc.and_(has_metric, pc.starts_with(self.scores["scope"], scope))
        rows: list[AnalysisRow] = self.scores.filter(wanted).to_pylist()
        return sorted(rows, key=lambda row: self.place(row["arm_id"]))

    @cached_property
    def _metrics(self) -> list[str]:
        return list(pc.unique(self.scores["metric"]).to_pylist())

    @cached_property
    def findings(self) -> list[Row]:
        """Comparisons of means over arms: questions, models, tiers, cohorts, and what was declared."""
        rows: list[Row] = self.comparisons.filter(pc.is_null(self.comparisons["arm_id"])).to_pylist()
        return rows

    def pairs(self) -> list[Row]:
        """Comparisons of two arms."""
        rows: list[Row] = self.comparisons.filter(pc.is_valid(self.comparisons["arm_id"])).to_pylist()
        return rows


def read_facts(run: Run, parts: Sequence[Run]) -> Facts:
    """Read the facts of a judged run; `parts` are the runs that it joins, or itself alone.

    InputError where analyses of the run are missing.
    """
    header = read_header(run, parts)
    rules, analyses = read_judged(run)
    batches = tables.scan(run.verdicts, schemas.VERDICTS, ["patient_id"], encoded=["patient_id"])
    patients = {patient for batch in batches for patient in pc.unique(batch["patient_id"]).to_pylist()}
    return Facts(
        **vars(header),
        scores=tables.read(run.scores, schemas.SCORES),
        comparisons=tables.read(run.comparisons, schemas.COMPARISONS),
        analyses=analyses,
        usage=usage_of(header),
        n_patients=len(patients),
        rules=rules,
        audits=tuple(entry for part in parts for entry in documents.read_audit(part)),
    )


def read_header(run: Run, parts: Sequence[Run]) -> Header:
    """Read the header of a run; `parts` are the runs that it joins, or itself alone."""
    specs = tuple(documents.read_configuration(part) for part in parts)
    manifests = tuple(documents.read_manifest(part) for part in parts)
    by_id = {arm["arm_id"]: arm for manifest in manifests for arm in manifest["arms"]}
    arms = [
        ArmFactors(**{**arm, "budget": str(arm["budget"]), "wording": str(arm.get("wording", 0))})
        for arm in by_id.values()
    ]
    header = Header(run.root.name, tuple(parts), specs, manifests, ())
    arms.sort(key=lambda arm: (arm.model in header.simulated, arm.control != "none"))
    return replace(header, arms=tuple(arms))
