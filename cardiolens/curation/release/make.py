"""Make a release: questions and studies under new ids, cohorts by patient, an index and a card.

One heart under two patients, and a study of a public set (a folder of its studies, as the import makes it),
are refused until somebody names them, by a digest of all of them, so one more asks again.
"""

import json
import secrets
import uuid
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.digest import digest_of, sha256_of
from cardiolens.base.errors import InputError
from cardiolens.config.conf_names import INDEX, SCHEMA
from cardiolens.curation.questions.stage_files import write_lines
from cardiolens.curation.release.card import card, counted
from cardiolens.curation.release.identity_report import check_identities
from cardiolens.curation.release.kept_record import kept_manifest, kept_question
from cardiolens.curation.release.nifti_copy import copy_of
from cardiolens.curation.release.question_table import QUESTIONS, SHOWN, read_contents, write_tables
from cardiolens.curation.release.release_words import Release
from cardiolens.curation.release.verify import index_of
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.questions import GivenQuestion, given_questions
from cardiolens.study.manifest import MANIFEST_NAME, Study, read_studies
from cardiolens.study.same_pixels import HashedFrames, hashes_of, same_studies

_DIGITS = 16  # of the digest that names duplicates


def check_duplicates(spec: Release, studies: Mapping[str, Study]) -> dict[str, Any]:
    """Return the facts of perceptual hashes; InputError where duplicates are not named."""
    frames = _hashed(studies.values())
    if n_blank := len(studies) - len({study for study, _ in frames.volumes}):
        say(f"{n_blank} studies have no frame with a picture, and are not compared with others")
    patient = {name: study.manifest.patient_id for name, study in studies.items()}
    within = [
        f"{first} and {second}: {count} frames"
        for (first, second), count in sorted(same_studies(frames, frames).items())
        if first < second and patient[first] != patient[second]
    ]
    public = [
        f"{first} and {second} of {folder}: {count} frames"
        for folder in spec.known
        for (first, second), count in sorted(
            same_studies(frames, _hashed(read_studies(folder, "known").values())).items()
        )
    ]
    lines = within + public
    if lines and (digest := digest_of(lines)[:_DIGITS]) != spec.duplicates:
        report = spec.out.with_name(f"{spec.out.name}-duplicates.txt")
        disk.write_text(report, "".join(f"{line}\n" for line in lines))
        raise InputError(
            f"{len(within)} pairs of studies of several patients show the same pictures, and {len(public)} a "
            f"study of a public set; {report} has them; leave one of each out, or, if that is as it should "
            f"be, add duplicates={digest}"
        )
    return {
        "frames": len(frames.volumes),
        "pairs": len(within),
        "known_sets": len(spec.known),
        "known_pairs": len(public),
    }


def _hashed(studies: Iterable[Study]) -> HashedFrames:
    return HashedFrames.of([row for study in studies for row in hashes_of(study)])


Record = dict[str, Any]


def release(spec: Release) -> int:
    """Write a release and return 0; InputError if it would have no questions, or may name somebody."""
    if spec.out.exists() and (not spec.out.is_dir() or any(spec.out.iterdir())):
        raise InputError(f"out={spec.out}: is not an empty folder; give a new one")
    catalogue = load_catalogue(spec.protocol)
    questions = _released_questions(spec, catalogue)
    studies = _studies(spec, {row.question.study_id for row in questions})
    n_confirmed = check_identities(spec, catalogue, questions, studies)
    perceptual = check_duplicates(spec, studies)
    with disk.draft_folder(spec.out) as draft:
        facts = _write(spec, draft, catalogue, questions, studies, perceptual=perceptual)
    if n_confirmed:
        say(f"{n_confirmed} texts that may name somebody were confirmed to name nobody")
    for cohort, counts in facts["cohorts"].items():
        say(f"{cohort}: {', '.join(f'{count} {what}' for what, count in counts.items())}")
    say(
        f"release: {spec.out}; publish the digest of its index elsewhere; where it arrives: cardiolens "
        f"release verify=<path to {spec.out.name}> sha256={sha256_of(spec.out / INDEX)}"
    )
    place = spec.out if "/" in str(spec.out) else f"./{spec.out}"  # a name alone is one of conf/dataset
    say(f"sweep it: cardiolens sweep dataset={place} 'model=[...]'")
    return 0


class _NewId(NamedTuple):
    """The new ids of a study and of its patient, and the patient's cohort."""

    study: str
    patient: str
    cohort: str


def _new_ids(spec: Release, studies: Mapping[str, Study]) -> dict[str, _NewId]:
    """Draw new ids by the old id of each study, in an order that reveals nothing of the old ones.

    The secret of the order is kept nowhere.
    """
    secret = secrets.token_hex(16)
    patient_of = {name: study.manifest.patient_id for name, study in studies.items()}
    cohort_of, patients = _cohorts(spec.cohorts, set(patient_of.values()), secret)
    if empty := sorted(spec.cohorts.keys() - set(cohort_of.values())):
        raise InputError(
            f"cohorts: {empty[0]} would hold none of the {len(patients)} patients; give it a larger share"
        )
    ordered = sorted(studies, key=lambda study_id: _digest(secret, study_id))
    return {
        name: _NewId(f"{spec.name}-{number:04d}", patients[patient_of[name]], cohort_of[patient_of[name]])
        for number, name in enumerate(ordered, start=1)
    }


def _line(row: GivenQuestion, ids: Mapping[str, _NewId]) -> Record:
    """Return a question under new ids, without its evidence and verifiers' names."""
    new, record = ids[row.question.study_id], kept_question(row, "questions")
    if "study" in record:
        return record | {"study": new.study}
    qa_id = f"{new.study}:{row.question.subtask}"
    return record | {"qa_id": qa_id, "study_id": new.study, "patient_id": new.patient}


def _write(
    spec: Release,
    out: Path,
    catalogue: Catalogue,
    rows: Sequence[GivenQuestion],
    studies: Mapping[str, Study],
    *,
    perceptual: Record,
) -> Record:
    """Write all files of a release to a folder, the index last, and return its facts."""
    ids = _new_ids(spec, studies)
    for name, new in ids.items():
        _write_study(studies[name], out / "studies" / new.study, new)
    facts: Record = {
        "schema": SCHEMA,
        "name": spec.name,
        "number": spec.number,
        "licence": spec.licence,
        "canary": f"cardiolens canary {uuid.uuid4()}",
        "protocol": catalogue.protocol,
        "catalogue_sha256": catalogue.sha256,
        "made_by": f"cardiolens {version('cardiolens')}",
        "unverified_allowed": spec.allow_unverified,
    }
    lines = [_line(row, ids) | {"canary": facts["canary"]} for row in rows]
    lines.sort(key=lambda line: (line.get("study") or line["study_id"], line["subtask"]))
    write_lines(out / QUESTIONS, lines)
    if Path(spec.protocol).is_dir():
        disk.copy_tree(Path(spec.protocol), out / "protocol")
    contents = read_contents(out, catalogue)
    facts |= counted(contents) | {"perceptual": perceptual, "frames": SHOWN if spec.frames else None}
    write_tables(out, contents, catalogue, canary=facts["canary"], frames=spec.frames)
    disk.write_text(out / "README.md", card(facts, catalogue))
    if spec.links is not None:  # which study and patient a new id stands for
        patients = {name: study.manifest.patient_id for name, study in studies.items()}
        links = [
            {"id": new.study, "study": old, "patient": patients[old], "patient_id": new.patient}
            for old, new in ids.items()
        ]
        write_lines(spec.links, links)
    disk.write_text(out / INDEX, json.dumps({**facts, "files": index_of(out)}, indent=1) + "\n")
    return facts


def _write_study(study: Study, folder: Path, new: _NewId) -> None:
    """Write a study under new ids: its manifest without report id, and files without free text."""
    ids = {"study_id": new.study, "patient_id": new.patient, "cohort": [new.cohort]}
    manifest = kept_manifest(study) | ids
    for entry, volume in zip(manifest["volumes"], study.manifest.volumes, strict=True):
        entry["path"], entry["sha256"] = _copy(study.folder / volume.path, folder, volume.volume_id)
        if volume.mask is not None:
            path, digest = _copy(study.folder / volume.mask.path, folder, f"{volume.volume_id}_mask")
            entry["mask"] = {"path": path, "sha256": digest}
    disk.write_text(folder / MANIFEST_NAME, json.dumps(manifest, indent=1) + "\n")


def _copy(source: Path, folder: Path, name: str) -> tuple[str, str]:
    """Write a file without free text; return its new name and digest."""
    path = folder / f"{name}{'.nii.gz' if source.name.endswith('.gz') else '.nii'}"
    disk.write_draft(path, copy_of(source))
    return path.name, sha256_of(path)


def _released_questions(spec: Release, catalogue: Catalogue) -> list[GivenQuestion]:
    """Return the questions to release; InputError if unverified ones are not allowed."""
    rows = list(given_questions(spec.questions, catalogue))
    chosen = [row for row in rows if spec.references or row.question.reference is None]
    if len(chosen) < len(rows):
        say(
            f"{len(rows) - len(chosen)} reports as questions are left out; "
            "references=true releases their text"
        )
    unverified = [row for row in chosen if not row.question.verified]
    if unverified and not spec.allow_unverified:
        raise InputError(
            f"{spec.questions} line {unverified[0].number}: nobody verified this answer, nor "
            f"{len(unverified) - 1} others; review them (python -m cardiolens.review), or add "
            "allow_unverified=true, which the card says"
        )
    if not chosen:
        raise InputError(f"{spec.questions}: holds no question to release")
    return chosen


def _studies(spec: Release, study_ids: set[str]) -> dict[str, Study]:
    """Return the studies of the questions, by id; other studies are left out."""
    studies = read_studies(spec.studies, "studies")
    if missing := sorted(study_ids - studies.keys()):
        raise InputError(
            f"studies={spec.studies}: {len(missing)} studies of questions are not there, e.g. {missing[0]}"
        )
    if n_others := len(studies) - len(study_ids):
        say(f"{n_others} studies without a question are left out")
    return {name: studies[name] for name in sorted(study_ids)}


def _cohorts(
    shares: Mapping[str, float], patients: Iterable[str], secret: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the cohort and the new id of each patient, in an order that reveals no old ids."""
    ordered = sorted(patients, key=lambda patient_id: _digest(secret, patient_id))
    bounds, total = [], 0.0
    for name, share in shares.items():
        total += share
        bounds.append((name, round(total * len(ordered))))
    cohort_of = {
        patient_id: next(name for name, end in bounds if place < end)
        for place, patient_id in enumerate(ordered)
    }
    return cohort_of, {patient_id: f"P{place:04d}" for place, patient_id in enumerate(ordered, start=1)}


def _digest(secret: str, name: str) -> str:
    return sha256(f"{secret}|{name}".encode()).hexdigest()
