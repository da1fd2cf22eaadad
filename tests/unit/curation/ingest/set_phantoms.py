"""Phantom hearts in the layouts of public sets, and what an import must find in them."""

import hashlib
import json
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.curation.ingest.frame_records import Identity
from cardiolens.curation.ingest.ids import public_pseudonyms
from cardiolens.curation.ingest.import_run import ingest
from tests.support.sets.set_export import subject_of, truth_of
from tests.support.sets.set_writers import SETS, SetFormat, Subject

HEARTS = ("PH-NORMAL", "PH-ICM-LAD", "PH-HCM-ASH")
EVERY_VIEW = SetFormat(("cine_sax", "lge_sax", "t2_sax", "cine_4ch"), lambda *_: None, lambda _: "")


def hearts(names: tuple[str, ...] = HEARTS) -> list[Subject]:
    """Render hearts once, in all views that any set shows."""
    return [subject_of(name, PhantomSpec(), EVERY_VIEW, number) for number, name in enumerate(names, start=1)]


def write_set(subjects: list[Subject], form: str, folder: Path) -> list[dict[str, Any]]:
    """Write the hearts as a set, and return the truth of each."""
    trimmed = [SETS[form].of(subject) for subject in subjects]
    SETS[form].write(folder, trimmed)
    return [truth_of(HEARTS[subject.number - 1], SETS[form].name(subject), subject) for subject in trimmed]


def imported_set(source: Path, out: Path, **options: Any) -> Path:
    ingest(IngestSpec(source=source, out=out, **options))
    return out


def study_of(out: Path, form: str, subject: str) -> Path:
    """The folder of a subject's study."""
    return out / "studies" / public_pseudonyms(form).study(Identity(subject, subject, "", ""))


def manifest_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "study.json").read_text())


def volume_of(folder: Path, name: str) -> dict[str, Any]:
    return next(volume for volume in manifest_of(folder)["volumes"] if volume["volume_id"] == name)


def frames_of_file(path: Path) -> list[str]:
    """Digests of the frames of a written volume, slice by slice from the first."""
    voxels = np.asarray(nib.load(path).dataobj)
    voxels = voxels[..., None] if voxels.ndim == 3 else voxels
    frames = voxels.transpose(2, 3, 1, 0)
    return [
        hashlib.sha256(np.ascontiguousarray(frame, "<i2").tobytes()).hexdigest()
        for line in frames
        for frame in line
    ]


def proposals_of(out: Path, folder: Path) -> list[dict[str, Any]]:
    path = out / "proposals" / folder.name / "proposals.json"
    return json.loads(path.read_text())["proposals"]
