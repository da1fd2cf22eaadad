"""The plan of a sweep: its requests on disk and their counts, before any engine is touched.

Three parts: what the sweep is about is read (`inputs`), whose requests must be made is decided by their
fingerprints (`cache`), and those are made (`planner`) and written.
"""

import logging
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.config.arms import Arm, arms
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.errors import InputError
from cardiolens.models.chat import Chat
from cardiolens.models.fault import BlamingCounter, ModelError, fault_of
from cardiolens.models.identity import Identity, identify
from cardiolens.models.tokens import EstimatedTokens, TokenCounter
from cardiolens.plan.cache import Written, cached, keep
from cardiolens.plan.columns import RequestColumns
from cardiolens.plan.inputs import Inputs, read_inputs
from cardiolens.plan.planner import ModelPlanner, StudyFrames
from cardiolens.record.chain import offer_row, write_chains
from cardiolens.record.places import Run, Store, run_of
from cardiolens.select.feature_store import read_features
from cardiolens.study.shards import read_digests
from cardiolens.study.structure import StudyStructure, structures
from cardiolens.tables import OVERFLOW, PLANNED

PART_ROWS = 4_096

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep whose requests are written: its arms, models, questions and studies."""

    spec: SweepSpec
    run: Run
    store: Store
    arms: tuple[Arm, ...]
    identities: Mapping[str, Identity]  # by model name, of those that could be planned
    study_ids: tuple[str, ...]
    volumes: pa.Table  # of these studies
    questions_sha256: str
    protocol: str  # its name, also where a folder was configured
    catalogue_sha256: str
    status_counts: Mapping[str, int]
    most_frames: Mapping[str, int]  # that one request shows, by model name
    seconds: float
    failed: Mapping[str, str]  # reason, by model that could not be planned; with `keep_going` alone

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

    `models`: the names of some of its models, as if the others were not there; None for all. ModelError for
    one whose files, template or processor cannot be used; with `keep_going` it is left out instead.
    """
    started = time.monotonic()
    inputs, run = read_inputs(spec), run_of(spec)
    _write_questions(inputs)
    wanted = tuple(arm for arm in arms(spec) if models is None or arm.model.name in models)
    chosen = {arm.model.name: arm.model for arm in wanted}
    identities: dict[str, Identity] = {}
    written: dict[str, Written] = {}
    failed: dict[str, str] = {}
    for name, model in chosen.items():
        with _left_out(spec, name, failed), fault_of(name):
            identities[name] = identify(model, inputs.store.models)
    for name, identity in identities.items():
        own = [arm for arm in wanted if arm.model.name == name]
        with _left_out(spec, name, failed):
            written[name] = _requests(spec, identity, own, inputs, run.requests(name))
    if not written:
        raise InputError(f"no model of this sweep can be planned: {next(iter(failed.values()))}")
    return Plan(
        spec=spec,
        run=run,
        store=inputs.store,
        arms=tuple(arm for arm in wanted if arm.model.name in written),
        identities={name: identities[name] for name in written},
        study_ids=inputs.study_ids,
        volumes=inputs.volumes,
        questions_sha256=inputs.fingerprint.questions,
        protocol=inputs.catalogue.protocol,
        catalogue_sha256=inputs.catalogue.sha256,
        status_counts=sum((made.status_counts for made in written.values()), Counter()),
        most_frames={name: made.most_frames for name, made in written.items()},
        seconds=time.monotonic() - started,
        failed=failed,
    )


@contextmanager
def _left_out(spec: SweepSpec, model: str, failed: dict[str, str]) -> Iterator[None]:
    """Note the ModelError of a block where the sweep keeps going without that model."""
    try:
        yield
    except ModelError as error:
        if not spec.keep_going:
            raise
        if model in spec.compared:
            raise InputError(f"primary compares {model}, which cannot be asked: {error}") from error
        log.warning("model %s is left out: %s", model, error)
        failed[model] = str(error)


def _requests(
    spec: SweepSpec, identity: Identity, own: Sequence[Arm], inputs: Inputs, folder: Path
) -> Written:
    """The requests of the one model that these arms have, made unless they are in its folder already."""
    model = own[0].model
    mark = replace(inputs.fingerprint, model_key=identity.model_key)
    found = cached(folder, mark)
    if found is None:
        try:
            counter = _counter(model, identity)
            found = _write(ModelPlanner(spec, model, identity, own, counter), folder, inputs)
        except ModelError:
            shutil.rmtree(folder, ignore_errors=True)  # half of a plan would be taken for all of it
            raise
        keep(folder, mark, found)
    return found


def _counter(model: ModelSpec, identity: Identity) -> TokenCounter | None:
    """The counter of tokens of a model's prompts; None where nothing can count them."""
    if identity.folder is not None:
        with fault_of(model.name):
            chat = Chat.of(model, identity.folder)
        return BlamingCounter(model.name, chat)
    if model.estimates_tokens:
        assert model.image_tokens is not None
        return EstimatedTokens(model.image_tokens)
    return None


def _write_questions(inputs: Inputs) -> None:
    """Replace the store's questions, and their evidence, if they changed: the judge and people read them."""
    _replace_changed(inputs.store.questions, inputs.question_table, tables.QUESTIONS)
    if inputs.evidence.num_rows or inputs.store.evidence.exists():
        _replace_changed(inputs.store.evidence, inputs.evidence, tables.EVIDENCE)


def _replace_changed(folder: Path, table: pa.Table, schema: pa.Schema) -> None:
    old = tables.parts(folder)
    if len(old) != 1 or not tables.read_part(old[0], schema).equals(table):
        tables.replace(folder, table, schema)


def _write(planner: ModelPlanner, folder: Path, inputs: Inputs) -> Written:
    """Write one model's requests in parts that hold whole studies."""
    shutil.rmtree(folder, ignore_errors=True)
    counts: Counter[str] = Counter()
    most_frames = 0
    for number, columns in enumerate(_parts(planner, inputs)):
        part = folder / f"part-{number:05d}.parquet"
        write_chains(part, columns.stages, columns.choices, [*map(offer_row, columns.offers.values())])
        tables.write_part(folder, columns.table(), tables.REQUESTS, part.name)
        counts += columns.status_counts()
        most_frames = max(most_frames, columns.most_frames)
    return Written(counts, most_frames)


def _parts(planner: ModelPlanner, inputs: Inputs) -> Iterator[RequestColumns]:
    columns = RequestColumns()
    known = structures(inputs.volumes)

    def frames_of(study_id: str) -> StudyFrames:
        root, rows = inputs.store.root, _of_study(inputs.volumes, known[study_id])
        features = {sight.encoder: read_features(root, rows, sight) for sight in inputs.sights}
        return StudyFrames(known[study_id], read_digests(root, rows), features)

    for study_id in known:
        if not inputs.questions[study_id]:
            continue
        planner.add_study(columns, study_id, inputs.questions[study_id], frames_of)
        if len(columns) >= PART_ROWS:
            yield columns
            columns = RequestColumns()
    if len(columns):
        yield columns


def _of_study(volumes: pa.Table, structure: StudyStructure) -> pa.Table:
    return volumes.filter(pc.equal(volumes["study_id"], structure.study_id))
