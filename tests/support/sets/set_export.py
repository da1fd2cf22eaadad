"""Write a phantom cohort as a public set would be downloaded: `export/`, with `truth.jsonl` beside it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.phantom_cohort import planned
from cardiolens.phantom.planes import sizes, views
from cardiolens.phantom.render import render
from cardiolens.phantom.roster import study
from cardiolens.phantom.signal import appearance
from tests.support.sets.set_volume import SetVolume, set_volume
from tests.support.sets.set_writers import SETS, SetFormat, Subject


def make_set(spec: PhantomSpec, form: str, folder: Path) -> None:
    """Make `folder/export/` and `folder/truth.jsonl`; the folder must be absent or empty.

    All subjects are held in memory, as tables list them all: some 3 MB each in the small size.
    """
    ids, chosen = planned(spec, folder), SETS[form]
    with disk.draft_folder(folder) as draft, disk.open_text(draft / "truth.jsonl") as lines:
        (draft / "export").mkdir()
        subjects = [subject_of(study_id, spec, chosen, number) for number, study_id in enumerate(ids, 1)]
        chosen.write(draft / "export", subjects)
        for study_id, subject in zip(ids, subjects, strict=True):
            record = truth_of(study_id, chosen.name(subject), subject)
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")


def subject_of(study_id: str, spec: PhantomSpec, form: SetFormat, number: int) -> Subject:
    """Render the views of one study."""
    phantom, size = study(spec.seed, study_id), sizes()[spec.size]
    heart, look = Heart(phantom.parameters), appearance(spec.difficulty, phantom.seed, size.spacing_mm)
    volumes = {
        name: set_volume(render(heart, views()[name], size, look=look, seed=phantom.seed, masks=True), size)
        for name in form.views
    }
    truth = phantom.truth
    return form.of(Subject(number, volumes, truth.etiology, truth.subtype, phantom.parameters.bsa))


def truth_of(study_id: str, name: str, subject: Subject) -> dict[str, Any]:
    """Return what an import must find: frames from the base, lengths, ED and ES, group and body."""
    return {
        "study_id": study_id,
        "subject": name,
        "group": subject.group,
        "etiology": subject.etiology,
        "subtype": subject.subtype,
        "apex_first": subject.apex_first,
        "height_cm": subject.height_cm,
        "weight_kg": subject.weight_kg,
        "volumes": {view: _volume(volume) for view, volume in subject.volumes.items()},
    }


def _volume(volume: SetVolume) -> dict[str, Any]:
    frames = volume.voxels.transpose(2, 3, 1, 0)  # slices from the base, phases, rows, columns
    return {
        "slices": frames.shape[0],
        "phases": frames.shape[1],
        "spacing_mm": list(volume.spacing_mm),
        "ed": 0,
        "es": volume.es,
        "frames": [_digest(frame) for line in frames for frame in line],
    }


def _digest(frame: NDArray[np.int16]) -> str:
    return hashlib.sha256(np.ascontiguousarray(frame, "<i2").tobytes()).hexdigest()
