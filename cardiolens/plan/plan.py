"""The plan of a sweep: its requests on disk, and what they amount to before any engine is touched."""

import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.config.arms import Arm, arms
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.digest import digest_of_tree, sha256_of
from cardiolens.errors import InputError
from cardiolens.models.chat import Chat
from cardiolens.models.identity import Identity, identify
from cardiolens.models.tokens import EstimatedTokens, TokenCounter
from cardiolens.plan.cache import Written, digest_of_inputs, keep, kept
from cardiolens.plan.columns import RequestColumns
from cardiolens.plan.control import Subject, donors
from cardiolens.plan.patients import check_patients
from cardiolens.plan.requests import Frames, ModelPlanner, Question
from cardiolens.prompts.question import AskedQuestion, report_fields
from cardiolens.prompts.template import check_folder
from cardiolens.record.places import Run, Store, deciding, run_of
from cardiolens.select.feature_store import read_features
from cardiolens.select.route import Route
from cardiolens.select.sight import Sight, sights_of
from cardiolens.study.cohort import COHORT_NAME
from cardiolens.study.shards import read_digests, read_volumes
from cardiolens.study.structure import StudyStructure, structures
from cardiolens.tables import OVERFLOW, PLANNED
from cardiolens.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.tasks.questions import read_questions

PART_ROWS = 4_096


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep whose requests are written: what is asked, by whom, on which studies."""

    spec: SweepSpec
    run: Run
    store: Store
    arms: tuple[Arm, ...]
    identities: Mapping[str, Identity]  # by model name
    study_ids: tuple[str, ...]
    volumes: pa.Table  # of these studies
    questions_sha256: str
    protocol: str  # its name, also where a folder was configured
    catalogue_sha256: str
    status_counts: Mapping[str, int]
    most_frames: Mapping[str, int]  # that one request shows, by model name
    seconds: float

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

    `models`: the names of some of its models, as if the others were not there; None for all.
    """
    started = time.monotonic()
    store, run = Store(spec.store), run_of(spec)
    catalogue = load_catalogue(spec.dataset.protocol)
    if spec.templates is not None:
        check_folder(spec.templates)
    prepared = read_volumes(store.root)
    volumes, study_ids = _limited(prepared, spec.limit)
    sights = sights_of(spec)
    questions = read_questions(spec.dataset.questions, catalogue)
    check_patients(spec.dataset.questions, questions, prepared)
    _write_once(questions, store.questions)  # whole, for the judge
    subjects = _Subjects(store, volumes, _chosen(spec, questions, catalogue, volumes, study_ids), sights)
    questions_sha256 = sha256_of(spec.dataset.questions)
    inputs = [deciding(spec), sha256_of(store.root / COHORT_NAME), questions_sha256, catalogue.sha256]
    inputs += [] if spec.templates is None else [digest_of_tree(spec.templates)]
    inputs += [sight.key for sight in sights]
    all_arms = arms(spec)
    chosen = [model for model in spec.model if models is None or model.name in models]
    identities = {model.name: identify(model, store.models) for model in chosen}
    written: dict[str, Written] = {}
    for model in chosen:
        own = [arm for arm in all_arms if arm.model.name == model.name]
        digest = digest_of_inputs(*inputs, identities[model.name].model_key)
        written[model.name] = _plan_model(spec, own, identities[model.name], subjects, digest)
    return Plan(
        spec=spec,
        run=run,
        store=store,
        arms=tuple(arm for arm in all_arms if arm.model.name in identities),
        identities=identities,
        study_ids=study_ids,
        volumes=volumes,
        questions_sha256=questions_sha256,
        protocol=catalogue.protocol,
        catalogue_sha256=catalogue.sha256,
        status_counts=sum((made.status_counts for made in written.values()), Counter()),
        most_frames={name: made.most_frames for name, made in written.items()},
        seconds=time.monotonic() - started,
    )


@dataclass(frozen=True, slots=True)
class _Subjects:
    """What a plan is about: prepared studies and the questions on each."""

    store: Store
    volumes: pa.Table
    questions: Mapping[str, Sequence[Question]]
    sights: Sequence[Sight]  # of the selectors that look at frames


def _plan_model(
    spec: SweepSpec, arms: Sequence[Arm], identity: Identity, subjects: _Subjects, digest: str
) -> Written:
    """Write the requests of one model; what an earlier plan wrote from the same inputs is kept."""
    model = arms[0].model
    folder = run_of(spec).requests(model.name)
    found = kept(folder, digest)
    if found is not None:
        return found
    written = _write(ModelPlanner(spec, model, identity, arms, _counter(model, identity)), folder, subjects)
    keep(folder, digest, written)
    return written


def _counter(model: ModelSpec, identity: Identity) -> TokenCounter | None:
    """What counts the tokens of a model's prompts; None where nothing can."""
    if identity.folder is not None:
        return Chat(identity.folder, model.template_options, trust_remote_code=model.trust_remote_code)
    if model.estimates_tokens:
        assert model.image_tokens is not None
        return EstimatedTokens(model.image_tokens)
    return None


def _limited(volumes: pa.Table, limit: int | None) -> tuple[pa.Table, tuple[str, ...]]:
    """The first studies in order of study_id: a larger limit contains a smaller one."""
    study_ids = tuple(sorted(set(volumes["study_id"].to_pylist())))[:limit]
    kept = pc.is_in(volumes["study_id"], pa.array(study_ids, pa.string()))
    return volumes.filter(kept), study_ids


def _chosen(
    spec: SweepSpec, table: pa.Table, catalogue: Catalogue, volumes: pa.Table, study_ids: Sequence[str]
) -> dict[str, list[Question]]:
    """Questions by study, as the plan may see them."""
    if unknown := [name for name in spec.subtask if name not in catalogue.subtasks]:
        raise InputError(f"subtask: {unknown[0]!r} is not one of {', '.join(catalogue.subtasks)}")
    chosen: dict[str, list[Question]] = {study_id: [] for study_id in study_ids}
    table = table.filter(pc.is_in(table["study_id"], pa.array(study_ids, pa.string())))
    donor = _donors(table, volumes) if "other_patient" in spec.control else {}
    for row in table.drop_columns(["answer", "reference", "patient_id"]).to_pylist():
        if not spec.subtask or row["subtask"] in spec.subtask:
            chosen[row["study_id"]].append(_question(row, catalogue, donor.get(row["qa_id"])))
    if not any(chosen.values()):
        raise InputError(
            f"{spec.dataset.questions}: has no question on the {len(study_ids)} prepared studies"
            f"{' for subtask ' + ', '.join(spec.subtask) if spec.subtask else ''}; check dataset and subtask"
        )
    return chosen


def _donors(questions: pa.Table, volumes: pa.Table) -> dict[str, str]:
    """Whose frames stand in for each question's own; here alone the plan looks at answers."""
    by_subtask: dict[str, list[Subject]] = {}
    for row in questions.select(["subtask", "qa_id", "study_id", "patient_id", "answer"]).to_pylist():
        answer = tuple(row.pop("answer") or ())
        by_subtask.setdefault(row.pop("subtask"), []).append(Subject(**row, answer=answer))
    known = structures(volumes)
    return {qa_id: study for group in by_subtask.values() for qa_id, study in donors(group, known).items()}


def _write_once(questions: pa.Table, folder: Path) -> None:
    """Replace the store's questions if they changed."""
    old = tables.parts(folder)
    if len(old) != 1 or not tables.read_part(old[0], tables.QUESTIONS).equals(questions):
        tables.replace(folder, questions, tables.QUESTIONS)


def _question(row: dict[str, object], catalogue: Catalogue, donor: str | None) -> Question:
    subtask = catalogue[str(row["subtask"])]
    options = tuple((option["key"], option["text"]) for option in row["options"])  # type: ignore[attr-defined]
    asked = AskedQuestion(
        subtask=subtask.id,
        sequence=subtask.sequence,
        question=str(row["question"]),
        answer_type=subtask.answer_type,
        options=options,
        exclusive=subtask.exclusive,
        checklist=subtask.checklist,
        fields=report_fields(subtask, catalogue),
    )
    return Question(str(row["qa_id"]), str(row["study_id"]), asked, Route.of(subtask), donor)


def _write(planner: ModelPlanner, folder: Path, subjects: _Subjects) -> Written:
    """Write one model's requests in parts that hold whole studies."""
    shutil.rmtree(folder, ignore_errors=True)
    counts: Counter[str] = Counter()
    most_frames = 0
    for number, columns in enumerate(_parts(planner, subjects)):
        tables.write_part(folder, columns.table(), tables.REQUESTS, f"part-{number:05d}.parquet")
        counts += columns.status_counts()
        most_frames = max(most_frames, columns.most_frames)
    return Written(counts, most_frames)


def _parts(planner: ModelPlanner, subjects: _Subjects) -> Iterator[RequestColumns]:
    columns = RequestColumns()
    known = structures(subjects.volumes)

    def frames_of(study_id: str) -> Frames:
        root, rows = subjects.store.root, _of_study(subjects.volumes, known[study_id])
        features = {sight.encoder: read_features(root, rows, sight) for sight in subjects.sights}
        return Frames(known[study_id], read_digests(root, rows), features)

    for study_id in known:
        if not subjects.questions[study_id]:
            continue
        planner.add_study(columns, study_id, subjects.questions[study_id], frames_of)
        if len(columns) >= PART_ROWS:
            yield columns
            columns = RequestColumns()
    if len(columns):
        yield columns


def _of_study(volumes: pa.Table, structure: StudyStructure) -> pa.Table:
    return volumes.filter(pc.equal(volumes["study_id"], structure.study_id))
