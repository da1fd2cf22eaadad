"""Inputs of planning: a sweep's questions, studies and templates, read and checked before any decision."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base import stage_versions
from cardiolens.base.digest import digest_of, digest_of_tree, sha256_of
from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import nearest_first
from cardiolens.config.plugins import code_of, plugins_of
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import PACKAGED
from cardiolens.inference.plan.few_shot import Row, check_examples, lending, training_patients
from cardiolens.inference.plan.frame_views import donors
from cardiolens.inference.plan.request import PlannedQuestion
from cardiolens.protocol.prompts.case_prompts import CaseText, read_told, told_path
from cardiolens.protocol.prompts.template import check_folder, template_folders
from cardiolens.protocol.select.feature_store import KEY
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.quantity import PHASE
from cardiolens.protocol.tasks.question_evidence import check_evidence_slices, evidence_of
from cardiolens.protocol.tasks.questions import (
    LESION,
    TWIN,
    GivenQuestion,
    given_questions,
    is_twin,
    original_of,
    questions_table,
)
from cardiolens.storage.places import Store, deciding
from cardiolens.study.anatomy import check_heart
from cardiolens.study.cohort import COHORT_NAME, read_cohort
from cardiolens.study.shards import read_volumes
from cardiolens.study.structure import structures

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a plan, shared by all models."""

    store: Store
    catalogue: Catalogue
    study_ids: tuple[str, ...]
    volumes: pa.Table  # of these studies, and of those that lend examples
    question_table: pa.Table  # with every column, for the judge
    questions_sha256: str  # of the questions file
    evidence: pa.Table  # for people; planning never uses it
    questions: Mapping[str, Sequence[PlannedQuestion]]  # by study
    fingerprint: str  # digest of everything that decides the requests, but for the model
    examples_kept: int  # patients who lend examples and are not asked


def read_inputs(spec: SweepSpec) -> Inputs:
    """Read the inputs of a sweep; InputError if questions, templates or subtasks cannot be used."""
    store, path = Store(spec.store), spec.dataset.questions
    catalogue = load_catalogue(spec.dataset.protocol)
    templates = template_folders(spec.templates, spec.dataset.protocol)
    for folder in templates:
        check_folder(folder)
    prepared = _with_twins_for(spec, read_volumes(store.root))
    _check_organ(store, catalogue, spec)
    training = training_patients(spec, prepared)
    volumes, study_ids = _limited(prepared, spec.limit, training)
    rows = [
        row
        for row in given_questions(path, catalogue)
        if LESION in spec.control or not is_twin(row.question.study_id)
    ]
    patients = dict(zip(prepared["study_id"].to_pylist(), prepared["patient_id"].to_pylist(), strict=True))
    allow_unverified = "unverified" in spec.dataset.allow
    table = questions_table(path, rows, catalogue, patients, allow_unverified=allow_unverified)
    _check_patients(path, rows, patients)
    check_evidence_slices(path, rows, prepared)
    lend = lending(spec, table, prepared, training, catalogue)
    questions = _chosen(spec, table, catalogue, volumes, study_ids, lend=lend)
    every = [question for group in questions.values() for question in group]
    lent = {example.qa_id: example for question in every for example in question.examples}
    _check_asked(spec, [*every, *lent.values()], catalogue)
    check_examples(spec, every, training)
    questions_sha256 = sha256_of(path)
    further = {*study_ids, *(study_id for question in every for study_id in question.further_studies)}
    return Inputs(
        store=store,
        catalogue=catalogue,
        study_ids=study_ids,
        volumes=prepared.filter(_is_in(prepared["study_id"], frozenset(further))),
        question_table=table,
        questions_sha256=questions_sha256,
        evidence=evidence_of([row.question for row in rows], path.parent),
        questions=questions,
        fingerprint=digest_of(
            [
                stage_versions.PLAN,
                deciding(spec),
                sha256_of(store.root / COHORT_NAME),
                questions_sha256,
                catalogue.sha256,
                [catalogue.anatomy.digest, dict(catalogue.paper_points)],
                [digest_of_tree(folder) for folder in templates],
                KEY,
                None if spec.dataset.source is None else sha256_of(told_path(path)),
                [code_of(group, word) for group, word in plugins_of(spec, ("selectors", "controls"))],
            ]
        ),
        examples_kept=len(training),
    )


def _with_twins_for(spec: SweepSpec, volumes: pa.Table) -> pa.Table:
    """Return the volumes without those of twins, unless control lesion asks about them."""
    is_of_twin = pc.match_substring_regex(volumes["study_id"], TWIN)
    if LESION not in spec.control:
        return volumes.filter(pc.invert(is_of_twin))
    if not pc.any(is_of_twin).as_py():
        log.warning(
            "control lesion: no study has a twin without its lesion, so it asks nothing; phantoms have twins "
            "with dataset.phantom.also=[twins]"
        )
    return volumes


def _check_organ(store: Store, catalogue: Catalogue, spec: SweepSpec) -> None:
    """Raise InputError if studies and questions are not about the same anatomy."""
    cohort = read_cohort(store.root)
    if cohort is not None and cohort.organ != catalogue.anatomy:
        raise InputError(
            f"{store.root}: its studies were prepared as {cohort.organ.words}, and dataset.protocol="
            f"{spec.dataset.protocol} is about {catalogue.anatomy.words}, or its anatomy changed since; "
            "expected one anatomy; prepare again, or correct dataset.protocol"
        )
    for model in spec.model:
        if model.source.startswith(PACKAGED):  # trained on phantoms of the heart
            check_heart(catalogue.anatomy, f"model {model.name}")


def _limited(
    volumes: pa.Table, limit: int | None, training: frozenset[str]
) -> tuple[pa.Table, tuple[str, ...]]:
    """Keep the first studies by study_id, so that a larger limit includes the studies of a smaller one.

    Patients of the cohort for `training` lend examples and are not asked.
    """
    if training:
        volumes = volumes.filter(pc.invert(_is_in(volumes["patient_id"], training)))
    studies = sorted(set(volumes["study_id"].to_pylist()))
    counted = set([study for study in studies if not is_twin(study)][:limit])
    study_ids = tuple(study for study in studies if original_of(study) in counted)
    return volumes.filter(_is_in(volumes["study_id"], study_ids)), study_ids


def _is_in(column: pa.ChunkedArray, values: Sequence[str] | frozenset[str]) -> pa.ChunkedArray:
    return pc.is_in(column, pa.array(sorted(values), pa.string()))


def _check_patients(path: Path, rows: Sequence[GivenQuestion], patients: Mapping[str, str]) -> None:
    """Raise InputError if the patient of a question is not that of its study; no message names a patient.

    Questions on studies that are not prepared are not asked; a warning counts them.
    """
    for row in rows:
        question = row.question
        if not row.is_compact and patients.get(question.study_id, question.patient_id) != question.patient_id:
            raise InputError(
                f"{path}: {question.qa_id}: its patient_id is not that of study {question.study_id} in "
                "study.json, and intervals and controls go by patient; correct the one that is wrong"
            )
    absent = Counter(row.question.study_id for row in rows if row.question.study_id not in patients)
    if absent:
        counts = absent.total(), len(absent), next(iter(absent))
        log.warning("%s: questions not asked: %d, as studies are not prepared: %d, e.g. %s", path, *counts)


def _check_asked(spec: SweepSpec, questions: Sequence[PlannedQuestion], catalogue: Catalogue) -> None:
    """Raise InputError for questions that cannot be asked in the sweep's answer format, captions or wordings.

    A prompt asks for letters alone where JSON is wanted; or for the number of a phase where captions do not
    number phases, or name their moments.
    """
    most = max(spec.wording)
    for question in questions:
        subtask = question.subtask
        if spec.answer_format == "json" and subtask.letters_first:
            raise InputError(
                f"answer_format json: subtask {subtask.id} of {' and '.join(catalogue.asked_by[subtask.id])} "
                "is asked for its letters first; give letters or choice, or leave that protocol out"
            )
        if spec.caption != "view" and subtask.quantity is not None and subtask.quantity.unit == PHASE:
            why = "names its moment" if spec.caption == "full" else "does not number phases"
            raise InputError(
                f"caption={spec.caption}: subtask {subtask.id} asks for the number of a phase, and that "
                f"caption {why}; give caption=view, or leave the subtask out"
            )
        if most > len(subtask.wordings):
            raise InputError(
                f"wording {most}: subtask {subtask.id} has {len(subtask.wordings)} wordings besides its own; "
                "leave it out of wording, or add to the protocol's data files"
            )
        if most and question.asked.question != subtask.question:
            raise InputError(
                f"wording {most}: {question.qa_id} asks in words of its own, for which the protocol has no "
                "other wording; leave out wording"
            )


def _chosen(
    spec: SweepSpec,
    table: pa.Table,
    catalogue: Catalogue,
    volumes: pa.Table,
    study_ids: Sequence[str],
    *,
    lend: Callable[[str, str | None], tuple[PlannedQuestion, ...]],
) -> dict[str, list[PlannedQuestion]]:
    """Return the chosen questions by study, without answers; InputError if there are none."""
    if unknown := [name for name in spec.subtask if name not in catalogue.subtasks]:
        raise InputError(f"subtask: {unknown[0]!r} is not one of {', '.join(catalogue.subtasks)}")
    rows = table.filter(_is_in(table["study_id"], study_ids)).drop_columns(["reference"]).to_pylist()
    may_lend = (row for row in rows if not is_twin(row["study_id"]))
    donor = donors(may_lend, structures(volumes)) if "other_patient" in spec.control else {}
    case_texts: Mapping[str, CaseText] = {}
    if spec.dataset.source is not None:
        golds = {prompt.gold for prompt in spec.prompt}
        case_texts = read_told(spec.dataset.questions, golds, modalities=spec.caption == "full")
    chosen: dict[str, list[PlannedQuestion]] = {study_id: [] for study_id in study_ids}
    for row in _matching(spec, rows):
        question = replace(
            PlannedQuestion.of(row, catalogue),
            donor=donor.get(row["qa_id"]),
            case=case_texts.get(row["study_id"]),
            examples=lend(row["subtask"], row["patient_id"]),
        )
        chosen[row["study_id"]].append(question)
    if not any(chosen.values()):
        raise InputError(
            f"{spec.dataset.questions}: has no question on the {len(study_ids)} prepared studies"
            f"{' for subtask ' + ', '.join(spec.subtask) if spec.subtask else ''}"
            "; check dataset and subtask"
        )
    return chosen


def _matching(spec: SweepSpec, rows: Sequence[Row]) -> list[Row]:
    """Return the questions of the subtasks and items of a sweep; InputError for an item that is none."""
    rows = [row for row in rows if not spec.subtask or row["subtask"] in spec.subtask]
    ids = {row["qa_id"] for row in rows}
    for name in spec.item:
        if name not in ids:
            raise InputError(
                f"item: {name!r} is none of the {len(ids)} questions of this sweep; expected a qa_id, e.g. "
                f"{', '.join(nearest_first(name, sorted(ids))[:3])}; correct item, or widen subtask "
                "and limit"
            )
    return [row for row in rows if not spec.item or row["qa_id"] in spec.item]
