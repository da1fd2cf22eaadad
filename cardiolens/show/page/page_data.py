"""The data of a page: records, scores, analyses and usage of one run, or of several merged runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
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

_OF_CHAINS = (("requests", "sum"), ("refused", "sum"), ("frames", "max"))  # numbers of a chain, of its stages
_COLUMNS = (
    *("request_key", "status", "written_at"),
    *("prompt_tokens", "cached_tokens", "output_tokens", "seconds"),
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests and tokens of one model."""

    model: str
    asked: int  # questions, counted once per arm
    unique: int  # distinct requests planned
    answered: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    seconds: float  # summed over requests, which overlap in time
    last_at: datetime | None = None  # when the last of its replies came


def usage_of(header: "Header") -> tuple[Usage, ...]:
    """Usage of each model over all runs that asked it, of two stores too."""
    models = dict.fromkeys(model for manifest in header.manifests for model in manifest["models"])
    return tuple(_usage(model, list(header.runs_of(model))) for model in models)


def _usage(model: str, runs: Sequence[tuple[Run, Path]]) -> Usage:
    requests = pa.concat_tables(
        tables.read(run.requests(model), schemas.REQUESTS, ["request_key", "status"]) for run, _ in runs
    )
    keys = pc.unique(requests.filter(pc.equal(requests["status"], "planned"))["request_key"])
    folders = dict.fromkeys(folder for _, folder in runs)
    stored = pa.concat_tables(tables.read(folder, schemas.COMPLETIONS, _COLUMNS) for folder in folders)
    final = finals(stored.filter(pc.is_in(stored["request_key"], value_set=keys)))
    sums = {name: pc.sum(final[name]).as_py() or 0 for name in _COLUMNS[3:]}
    last_at = pc.max(final["written_at"]).as_py()
    return Usage(model, requests.num_rows, len(keys), final.num_rows, last_at=last_at, **sums)


def choices_of(parts: Sequence[Run], manifests: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Numbers of each arm with a reader that chose its frames.

    By arm: the questions asked, and those without a legal request for frames or not reached; means over
    questions of requests for frames, of names refused in them, and of frames shown with the question.
    """
    found = [
        questions
        for run, manifest in zip(parts, manifests, strict=True)
        for questions in _chosen(run, manifest["models"])
    ]
    if not found:
        return []
    means = [(name, "mean") for name, _ in _OF_CHAINS]
    counts = [([], "count_all"), ("frames", "count")]
    by_arm = pa.concat_tables(found).group_by("arm_id").aggregate([*counts, *means])
    return [
        {
            "arm_id": row["arm_id"],
            "asked": row["count_all"],
            "unanswered": row["count_all"] - row["frames_count"],
            **{name: row[f"{name}_mean"] for name, _ in _OF_CHAINS},
        }
        for row in by_arm.to_pylist()
    ]


def _chosen(run: Run, models: Iterable[str]) -> Iterator[pa.Table]:
    """Yield the questions of each model in which its reader chose the frames, with their numbers by arm."""
    seen = tables.read(run.seen, schemas.SEEN, ["request_key", "frames", "not_shown", "status"])
    seen = seen.filter(pc.is_valid(seen["frames"]))  # the plan knew those of any other chain
    is_request = pc.is_valid(seen["not_shown"])
    is_question = pc.and_(pc.invert(is_request), pc.is_valid(seen["status"]))
    stages = {
        "request_key": seen["request_key"],
        "requests": pc.cast(is_request, pa.int64()),
        "refused": pc.fill_null(seen["not_shown"], 0),
        "frames": pc.if_else(is_question, pc.list_value_length(seen["frames"]), pa.scalar(None, pa.int32())),
    }
    chains = pa.table(stages).group_by("request_key").aggregate([*_OF_CHAINS])
    chains = chains.rename_columns([*stages])
    for model in models if chains.num_rows else ():
        asked = tables.read(run.requests(model), schemas.REQUESTS, ["arm_id", "request_key"])
        yield asked.join(chains, "request_key", join_type="inner")


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
    usage: tuple[Usage, ...]
    choices: tuple[Row, ...]  # of arms whose readers chose their frames
    n_patients: int
    rules: str  # version of the rules that judged the run
    audits: tuple[AuditedModel, ...] = ()  # of replies that a person read, by model

    @property
    def is_synthetic(self) -> bool:
        """Return whether the cohort, or one of several runs', is made of phantoms."""
        return any(spec.dataset.phantom is not None for spec in self.specs)

    @property
    def is_unfinished(self) -> bool:
        """Return whether a request of a model has no final answer."""
        return any(usage.answered < usage.unique for usage in self.usage)

    @property
    def patients_in_words(self) -> str:
        """How many patients have a verdict; pictures of a public benchmark stand in their place."""
        what = "picture" if self.specs[0].dataset.has_pictures else "patient"
        return f"{self.n_patients:,} {what}{'' if self.n_patients == 1 else 's'}"

    @property
    def packaged(self) -> tuple[str, ...]:
        """Models with weights in this package: they were trained on phantoms."""
        models = (model for spec in self.specs for model in spec.model)
        return tuple(dict.fromkeys(model.name for model in models if model.source.startswith("packaged/")))

    def most(self, name: str) -> int:
        """The largest number of that name in a manifest; runs seen as one asked the same questions."""
        return max(int(manifest.get(name, 0)) for manifest in self.manifests)

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

    def scores_of(self, metrics: Sequence[str] | None, scope: str) -> list[AnalysisRow]:
        """Rows of scores with one of these metrics (None: any), at scopes with this prefix."""
        mask = pc.starts_with(self.scores["scope"], scope)
        if metrics is not None:
            has_metric = pc.is_in(self.scores["metric"], value_set=pa.array(list(metrics), pa.string()))
            mask = pc.and_(mask, has_metric)
        rows: list[AnalysisRow] = self.scores.filter(mask).to_pylist()
        return sorted(rows, key=lambda row: self.place(row["arm_id"]))

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
        choices=tuple(choices_of(parts, header.manifests)),
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
