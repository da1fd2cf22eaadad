"""Skeletons of `study.json` and `questions.jsonl` for a person to fill in."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say, shown_word
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.dataset import DatasetSpec
from cardiolens.curation.ingest.conventions import legal_volumes
from cardiolens.curation.ingest.write import json_lines, json_text
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.study.anatomy import sequences
from cardiolens.study.manifest import MANIFEST_NAME
from cardiolens.study.orientation import displays_by_affine

QUESTIONS_NAME = "questions.jsonl"
EXAMPLE, EXAMPLE_FILE = "S001", "lge_sax.nii.gz"  # if there are no files yet
_ENDINGS = (".nii", ".nii.gz")
_PROTOCOL: str = DatasetSpec.model_fields["protocol"].default

Entry = dict[str, Any]


class Words(Spec):
    """Options of `init`."""

    out: GivenPath


def write_skeletons(out: Path) -> int:
    """Write a `study.json` for every folder of NIfTI files in `out/studies`, and `out/questions.jsonl`.

    Fields that only a person can fill stay empty, and readers refuse empty fields. InputError if any of the
    files exists.
    """
    files = _files(out / "studies") or {EXAMPLE: [EXAMPLE_FILE]}
    studies = {name: _study(out / "studies" / name, paths) for name, paths in files.items()}
    texts = {out / "studies" / name / MANIFEST_NAME: json_text(study) for name, study in studies.items()}
    catalogue = load_catalogue(_PROTOCOL)
    lines = [line for study in studies.values() for line in _questions(study, catalogue)]
    texts[out / QUESTIONS_NAME] = json_lines(lines)
    for path in texts:
        if path.is_symlink() or path.exists():
            raise InputError(
                f"{path}: exists already, and init overwrites nothing; move it, or name another out"
            )
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            disk.create(path, text.encode())
    except OSError as error:
        raise RunError(
            f"out={out}: cannot be written ({error.strerror}); existing files are unchanged"
        ) from error
    _report(out, studies, len(lines))
    return 0


def _files(root: Path) -> dict[str, list[str]]:
    """List the NIfTI files of each study folder; omit folders without any."""
    try:
        folders = [folder for folder in root.iterdir() if folder.is_dir()] if root.exists() else []
        files = {folder.name: sorted(filter(_is_volume, os.listdir(folder))) for folder in sorted(folders)}
    except OSError as error:
        raise InputError(
            f"{root}: cannot be read ({error.strerror}); expected folders of NIfTI files"
        ) from None
    return {name: paths for name, paths in files.items() if paths and not is_housekeeping(name)}


def _is_volume(name: str) -> bool:
    return name.lower().endswith(_ENDINGS) and not is_housekeeping(name)


def _study(folder: Path, paths: Sequence[str]) -> Entry:
    volumes = [_volume(path) for path in paths]
    for path, transform in displays_by_affine(folder, volumes).items():
        volumes[paths.index(path)]["display_transform"] = transform.model_dump(exclude_defaults=True)
    head = {"schema": "study-1", "study_id": folder.name, "patient_id": "", "cohort": []}
    return head | {"volumes": volumes}


def _volume(path: str) -> Entry:
    sequence, view = legal_volumes().get(path.lower().partition(".")[0], ("", ""))
    entry: Entry = {"sequence": sequence, "view": view, "path": path, "spatial_order": "unknown"}
    if not sequence or sequences()[sequence].over_time != "nothing":
        entry |= {"spacing_mm": None, "layout": {"order": "slice_major", "n_slices": None, "n_phases": None}}
    return entry | {"display_transform": {}}


def _questions(study: Entry, catalogue: Catalogue) -> Iterator[Entry]:
    """Yield an unanswered question for each subtask that applies to the study's sequences."""
    present = {volume["sequence"] for volume in study["volumes"]} | {"multi"}
    for subtask in catalogue.subtasks.values():
        if subtask.sequence in present and subtask.parent is None and subtask.answer_type != "report":
            yield {"study": study["study_id"], "subtask": subtask.id, "answer": [], "evidence": []}


def _report(out: Path, studies: Mapping[str, Entry], n_questions: int) -> None:
    volumes = [volume for study in studies.values() for volume in study["volumes"]]
    n_unnamed = sum(not volume["sequence"] for volume in volumes)
    n_shown = sum(bool(volume["display_transform"]) for volume in volumes)
    say(f"{len(studies)} study.json below {out / 'studies'}, {n_questions} questions in {QUESTIONS_NAME}")
    say("fill in each study.json: patient_id; spatial_order of short axes: base_to_apex or apex_to_base")
    if n_unnamed:
        say(f"fill in sequence and view of {n_unnamed} volumes; their file names state neither")
    say(f"display_transform of {n_shown} volumes is by their affines; look at all (jobs/show_study.py)")
    say("fill in the answer of each question, in the catalogue's letters; delete what nobody can answer")
    say(
        f"next: python -m cardiolens.prepare dataset=real {shown_word('dataset.studies', out / 'studies')} "
        f"{shown_word('dataset.questions', out / QUESTIONS_NAME)}"
    )
