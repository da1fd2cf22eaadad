"""The data of a page: records, scores, analyses and usage of one run, or of several merged runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from statistics import fmean
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


def usage_of(
    parts: Sequence[Run], specs: Sequence[SweepSpec], manifests: Sequence[Mapping[str, Any]]
) -> tuple[Usage, ...]:
    """Usage of all models of all runs, one entry per model; its runs are joined, of two stores too."""
    places: dict[str, list[tuple[Run, Path]]] = {}  # with the folder of completions
    for run, spec, manifest in zip(parts, specs, manifests, strict=True):
        for model, facts in manifest["models"].items():
            folder = Store(spec.store).completions(str(facts["model_key"]))
            places.setdefault(model, []).append((run, folder))
    return tuple(_usage(model, of_model) for model, of_model in places.items())


def _usage(model: str, places: Sequence[tuple[Run, Path]]) -> Usage:
    requests = pa.concat_tables(
        tables.read(run.requests(model), schemas.REQUESTS, ["request_key", "status"]) for run, _ in places
    )
    keys = pc.unique(requests.filter(pc.equal(requests["status"], "planned"))["request_key"])
    folders = dict.fromkeys(folder for _, folder in places)
    stored = pa.concat_tables(tables.read(folder, schemas.COMPLETIONS, _COLUMNS) for folder in folders)
    final = finals(stored.filter(pc.is_in(stored["request_key"], value_set=keys)))
    sums = {name: pc.sum(final[name]).as_py() or 0 for name in _COLUMNS[3:]}
    last_at = pc.max(final["written_at"]).as_py()
    return Usage(model, requests.num_rows, len(keys), final.num_rows, last_at=last_at, **sums)


@dataclass(frozen=True, slots=True)
class ChoiceCounts:
    """Counts over the questions of one arm with a reader that requests frames."""

    arm_id: str
    asked: int  # questions
    requests: float  # for frames, mean of a question
    frames: float  # shown with the question, mean over questions reached; NaN without any
    refused: float  # names that were no frame to show, mean of a question
    unanswered: int  # questions without a legal request for frames, or not reached


def choices_of(parts: Sequence[Run], manifests: Sequence[Mapping[str, Any]]) -> tuple[ChoiceCounts, ...]:
    """Counts per arm with a reader that chooses frames; empty if none does."""
    by_arm: dict[str, list[_Question]] = {}
    for run, manifest in zip(parts, manifests, strict=True):
        questions = _questions(run)
        for model in manifest["models"] if questions else ():
            requests = tables.read(run.requests(model), schemas.REQUESTS, ["arm_id", "request_key"])
            chains = requests.filter(pc.is_in(requests["request_key"], value_set=pa.array(list(questions))))
            for row in chains.to_pylist():
                by_arm.setdefault(row["arm_id"], []).append(questions[row["request_key"]])
    return tuple(_counts(arm_id, questions) for arm_id, questions in by_arm.items())


@dataclass(slots=True)
class _Question:
    """One chain: its requests for frames, the names refused in them, and the frames beside the question."""

    requests: int = 0
    refused: int = 0
    frames: int | None = None


def _questions(run: Run) -> dict[str, _Question]:
    """The chains of a run that request frames, by request_key."""
    stages = tables.read(run.seen, schemas.SEEN, ["request_key", "frames", "not_shown", "status"])
    questions: dict[str, _Question] = {}
    for row in stages.to_pylist():
        if row["frames"] is None:  # a chain whose frames the plan knew
            continue
        question = questions.setdefault(row["request_key"], _Question())
        if row["not_shown"] is not None:
            question.requests += 1
            question.refused += row["not_shown"]
        elif row["status"] is not None:
            question.frames = len(row["frames"])
    return questions


def _counts(arm_id: str, questions: Sequence[_Question]) -> ChoiceCounts:
    frames = [question.frames for question in questions if question.frames is not None]
    return ChoiceCounts(
        arm_id=arm_id,
        asked=len(questions),
        requests=fmean(question.requests for question in questions),
        frames=fmean(frames) if frames else float("nan"),
        refused=fmean(question.refused for question in questions),
        unanswered=len(questions) - len(frames),
    )


@dataclass(frozen=True)
class Header:
    """Name, specs, manifests and arms of a run; `manifests` and `specs` have one entry per run."""

    name: str
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


@dataclass(frozen=True)
class Facts(Header):
    """The data that sections of a page are made of."""

    scores: pa.Table
    comparisons: pa.Table
    analyses: Analyses
    usage: tuple[Usage, ...]
    choices: tuple[ChoiceCounts, ...]  # of arms whose readers chose their frames
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
    return Facts(
        **{field.name: getattr(header, field.name) for field in fields(Header)},
        scores=tables.read(run.scores, schemas.SCORES),
        comparisons=tables.read(run.comparisons, schemas.COMPARISONS),
        analyses=analyses,
        usage=usage_of(parts, header.specs, header.manifests),
        choices=choices_of(parts, header.manifests),
        n_patients=_n_patients(run),
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
    header = Header(run.root.name, specs, manifests, tuple(arms))
    arms.sort(key=lambda arm: (arm.model in header.simulated, arm.control != "none"))
    return replace(header, arms=tuple(arms))


def _n_patients(run: Run) -> int:
    column = "patient_id"
    batches = tables.scan(run.verdicts, schemas.VERDICTS, [column], encoded=[column])
    return len({patient for batch in batches for patient in pc.unique(batch[column]).to_pylist()})
