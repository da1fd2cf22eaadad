"""The plan of a sweep: its requests on disk and their counts, before any engine is touched.

Three steps: read the inputs of the sweep (`inputs`), find the models with requests to make because
something that decides them changed, and write these part by part, by one process per core. The number of
questions per study alone decides which studies share a part. So every part can be made anywhere and in any
order, and the plan is the same byte for byte.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base import disk
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm, arms
from cardiolens.inference.models.chat import Chat, TokenCounter
from cardiolens.inference.models.identity import Identity, identify
from cardiolens.inference.models.token_counts import EstimatedTokens, ModelError, fault_of
from cardiolens.inference.plan.few_shot import write_examples
from cardiolens.inference.plan.frame_views import StudyFrames
from cardiolens.inference.plan.inputs import Inputs, read_inputs
from cardiolens.inference.plan.planner import ModelPlanner
from cardiolens.inference.plan.request import PlannedQuestion, Request, table_of
from cardiolens.protocol.dialogue.chain_tables import write_chains
from cardiolens.protocol.select.feature_store import read_features
from cardiolens.runtime.processes import spread
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run, Store, run_of
from cardiolens.storage.schemas import OVERFLOW, PLANNED
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.shards import FrameParts
from cardiolens.study.structure import structures

log = logging.getLogger(__name__)

PART_ROWS = 4_096
_WORTH = 60_000  # requests; starting a process takes about as long as planning 20,000
_NOTE = "plan.json"  # of a finished plan; without it a plan is unfinished


class PlanTotals(NamedTuple):
    """Counts of the requests written for one model."""

    status_counts: Counter[str]
    most_frames: int  # the largest number of frames in one request that is sent


class _Part(NamedTuple):
    """A part to make, with the data of its own studies, so that no process holds the data of all studies."""

    model: str  # name
    number: int  # from 0
    questions: Mapping[str, Sequence[PlannedQuestion]]  # by study
    volumes: pa.Table  # of these studies, of their donors (control other_patient), of their examples


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep with its requests written: its arms, models, questions and studies."""

    spec: SweepSpec
    run: Run
    store: Store
    arms: tuple[Arm, ...]
    identities: Mapping[str, Identity]  # by model name; only models that could be planned
    study_ids: tuple[str, ...]
    volumes: pa.Table  # of these studies
    questions_sha256: str
    protocol: str  # the protocol's name, even if a folder was configured
    catalogue_sha256: str
    status_counts: Mapping[str, int]
    most_frames: Mapping[str, int]  # the largest number of frames in one request that is sent, by model
    seconds: float
    failed: Mapping[str, str]  # reason by model that could not be planned; empty without `keep_going`
    examples_kept: int = 0  # patients of the cohort `train`, who lend examples and are not asked

    @property
    def asked(self) -> int:
        return sum(self.status_counts.values())

    @property
    def overflow(self) -> int:
        return self.status_counts.get(OVERFLOW, 0)

    @property
    def planned(self) -> int:
        return self.status_counts.get(PLANNED, 0)

    @property
    def skipped(self) -> int:
        return self.asked - self.planned - self.overflow


def plan(spec: SweepSpec, models: Collection[str] | None = None) -> Plan:
    """Write the `requests` of a sweep; studies must have been prepared, engines are not touched.

    `models` restricts the plan to models of these names; None for all. ModelError if the files, template or
    processor of a model cannot be used; with `keep_going` the model is left out instead.
    """
    started = time.monotonic()
    inputs, run = read_inputs(spec), run_of(spec)
    _replace_changed(inputs.store.questions, inputs.question_table, schemas.QUESTIONS)
    if inputs.evidence.num_rows or inputs.store.evidence.exists():
        _replace_changed(inputs.store.evidence, inputs.evidence, schemas.EVIDENCE)
    sweep_arms = tuple(arm for arm in arms(spec) if models is None or arm.model.name in models)
    arms_of = {name: list(own) for name, own in groupby(sweep_arms, lambda arm: arm.model.name)}
    identities: dict[str, Identity] = {}
    failed: dict[str, str] = {}
    for name, of_model in arms_of.items():
        with _left_out(spec, name, failed), fault_of(name):
            identities[name] = identify(of_model[0].model, inputs.store.models)
    totals_of = _requests(spec, inputs, run, arms_of, identities, failed=failed)
    if not totals_of:
        raise InputError(f"no model of this sweep can be planned: {next(iter(failed.values()))}")
    return Plan(
        spec=spec,
        run=run,
        store=inputs.store,
        arms=tuple(arm for arm in sweep_arms if arm.model.name in totals_of),
        identities={name: identities[name] for name in identities if name in totals_of},
        study_ids=inputs.study_ids,
        volumes=inputs.volumes,
        questions_sha256=inputs.questions_sha256,
        protocol=inputs.catalogue.protocol,
        catalogue_sha256=inputs.catalogue.sha256,
        status_counts=sum((totals.status_counts for totals in totals_of.values()), Counter()),
        most_frames={name: totals.most_frames for name, totals in totals_of.items()},
        seconds=time.monotonic() - started,
        failed=failed,
        examples_kept=inputs.examples_kept,
    )


def _requests(
    spec: SweepSpec,
    inputs: Inputs,
    run: Run,
    arms_of: Mapping[str, Sequence[Arm]],
    identities: Mapping[str, Identity],
    *,
    failed: dict[str, str],
) -> dict[str, PlanTotals]:
    """Return the counts of each model's requests; write those that its folder does not hold yet."""
    decided_by = {name: digest_of([inputs.fingerprint, each.model_key]) for name, each in identities.items()}
    plans = {name: _kept(run.requests(name), decided_by[name]) for name in identities}
    totals_of = {name: totals for name, totals in plans.items() if totals is not None}
    new = [name for name in identities if name not in totals_of]
    for name in new:
        disk.remove_tree(run.requests(name))
    n_requests = sum(len(arms_of[name]) for name in new) * sum(map(len, inputs.questions.values()))
    maker = _Maker(spec, run, arms_of, identities, inputs.catalogue.anatomy)
    parts = _parts({name: len(arms_of[name]) for name in new}, inputs)
    try:
        with closing(spread(maker, parts, worth=n_requests >= _WORTH)) as outcomes:
            for name, of_model in groupby(outcomes, key=itemgetter(0)):
                results = [result for _, result in of_model]
                with _left_out(spec, name, failed):
                    totals_of[name] = _summed(results)
                    _keep(run.requests(name), decided_by[name], totals_of[name])
    finally:
        for name in set(new) - totals_of.keys():  # half a plan would be taken for a whole one
            disk.remove_tree(run.requests(name))
    return totals_of


def _summed(parts: Sequence[PlanTotals | ModelError]) -> PlanTotals:
    """Add the counts of the parts of one model; raise the error of one that could not be made."""
    counts = list[PlanTotals]()
    for part in parts:
        if isinstance(part, ModelError):
            raise part
        counts.append(part)
    status_counts = sum((part.status_counts for part in counts), Counter[str]())
    return PlanTotals(status_counts, max((part.most_frames for part in counts), default=0))


def _divided(n_arms: int, questions: Mapping[str, Sequence[PlannedQuestion]]) -> Iterator[list[str]]:
    """Divide the studies, in order, into parts of at least PART_ROWS requests; the last may be smaller."""
    rows, study_ids = 0, list[str]()
    for study_id, study_questions in questions.items():
        if not study_questions:
            continue
        study_ids.append(study_id)
        rows += len(study_questions) * n_arms
        if rows >= PART_ROWS:
            yield study_ids
            rows, study_ids = 0, []
    if study_ids:
        yield study_ids


def _parts(n_arms: Mapping[str, int], inputs: Inputs) -> Iterator[_Part]:
    """Yield the parts of each model, by its number of arms, with questions and volumes of their studies."""
    studies = inputs.volumes["study_id"]
    for model, n_arms_of_model in n_arms.items():
        for number, study_ids in enumerate(_divided(n_arms_of_model, inputs.questions)):
            questions = {study_id: inputs.questions[study_id] for study_id in study_ids}
            every = (question for group in questions.values() for question in group)
            needed = {*study_ids, *(study_id for question in every for study_id in question.further_studies)}
            volumes = inputs.volumes.filter(pc.is_in(studies, pa.array(sorted(needed), pa.string())))
            yield _Part(model, number, questions, volumes)


@dataclass
class _Maker:
    """Makes one part after another in a process, and keeps the token counter of the last model."""

    spec: SweepSpec
    run: Run
    arms_of: Mapping[str, Sequence[Arm]]  # by model name
    identities: Mapping[str, Identity]
    anatomy: Anatomy
    counted: str = ""  # model of the last part
    counter: TokenCounter | None = None  # of that model
    failure: ModelError | None = None  # why that model cannot be asked

    def __call__(self, part: _Part) -> tuple[str, PlanTotals | ModelError]:
        """Write one part; return its model, and its counts or why the model cannot be asked."""
        try:
            return part.model, self._write(part, self._planned(part))
        except ModelError as error:
            self.failure = error
            return part.model, error

    def _planned(self, part: _Part) -> list[Request]:
        """Plan the requests of a part."""
        arms, identity = self.arms_of[part.model], self.identities[part.model]
        model = arms[0].model
        if self.counted != part.model:
            self.counted, self.counter, self.failure = part.model, None, None
            self.counter = _counter(model, identity.folder)
        if self.failure is not None:
            raise self.failure
        frames_of = self._opener(part.volumes)
        planner = ModelPlanner(self.spec, model, identity, arms, self.counter, frames_of=frames_of)
        return list(planner.requests(chain.from_iterable(part.questions.values())))

    def _write(self, part: _Part, requests: Sequence[Request]) -> PlanTotals:
        """Write the requests of a part with their chains and examples; return their counts."""
        path = self.run.requests(part.model) / f"part-{part.number:05d}.parquet"
        chains = {request.request_key: request.chain for request in requests if request.chain is not None}
        examples = {request.request_key: request.examples for request in requests if request.examples}
        write_chains(path, chains)
        write_examples(path, examples)
        tables.write_part(path.parent, table_of(requests), schemas.REQUESTS, path.name)
        sent = (request.most_frames for request in requests if request.status == PLANNED)
        return PlanTotals(Counter(request.status for request in requests), max(sent, default=0))

    def _opener(self, volumes: pa.Table) -> Callable[[str], StudyFrames]:
        """Return the function that opens the frames of a study of these volumes."""
        looks = any(selector.looks_at_pixels for selector in self.spec.selector)
        structure_of, parts = structures(volumes, self.anatomy), FrameParts(self.spec.store)

        def opened(study_id: str) -> StudyFrames:
            rows = volumes.filter(pc.equal(volumes["study_id"], study_id))
            features = read_features(self.spec.store, rows, self.anatomy) if looks else None
            return StudyFrames(structure_of[study_id], parts.digests(rows), features)

        return opened


def _counter(model: ModelSpec, folder: Path | None) -> TokenCounter | None:
    """Return the token counter of a model's prompts; None if nothing can count them."""
    if folder is not None:
        with fault_of(model.name):
            return Chat(folder, model)
    if model.estimates_tokens and model.image_tokens is not None:
        return EstimatedTokens(model.image_tokens)
    return None


@contextmanager
def _left_out(spec: SweepSpec, model: str, failed: dict[str, str]) -> Iterator[None]:
    """Record the ModelError of a block in `failed` and go on without the model, with `keep_going`."""
    try:
        yield
    except ModelError as error:
        if not spec.keep_going:
            raise
        if model in spec.compared:
            raise InputError(f"primary compares {model}, which cannot be asked: {error}") from error
        log.warning("model %s is left out: %s", model, error)
        failed[model] = str(error)


def _kept(folder: Path, fingerprint: str) -> PlanTotals | None:
    """Return the totals of the plan in a folder; None unless it is whole and made from these inputs."""
    try:
        note = read_json(folder / _NOTE)
        if (note["fingerprint"], note["parts"]) != (fingerprint, _sizes(folder)):
            return None
        return PlanTotals(Counter(note["status_counts"]), note["most_frames"])
    except (OSError, ValueError, LookupError, TypeError):  # no note, or a foreign file
        return None


def _keep(folder: Path, fingerprint: str, totals: PlanTotals) -> None:
    note = {"fingerprint": fingerprint, "parts": _sizes(folder), **totals._asdict()}
    disk.write_text(folder / _NOTE, json.dumps(note, indent=1) + "\n")


def _sizes(folder: Path) -> dict[str, int]:
    return {part.name: part.stat().st_size for part in tables.parts(folder)}


def _replace_changed(folder: Path, table: pa.Table, schema: pa.Schema) -> None:
    """Replace a table of the store that the judge and people read, if it changed."""
    old = tables.parts(folder)
    if len(old) != 1 or not tables.read_part(old[0], schema).equals(table):
        tables.replace(folder, table, schema)
