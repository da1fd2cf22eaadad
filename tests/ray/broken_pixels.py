"""Copies of phantom studies between whose pixels and questions something was broken on purpose."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

Frames = NDArray[Any]  # (x, y, slice, phase), as stored
Break = Callable[[Frames], Frames]

WRONG_STUDY = "wrong_study"
WINDOW = "window"
UNTOUCHED = "untouched"
FRAMES: Mapping[str, Break] = {
    UNTOUCHED: lambda frames: frames,
    "reversed": lambda frames: frames[:, :, ::-1, ::-1],
    "slice_off": lambda frames: np.roll(frames, 1, axis=2),
    "phase_off": lambda frames: np.roll(frames, frames.shape[3] // 3, axis=3),
    "turned": lambda frames: np.rot90(frames, axes=(0, 1)),
    "mirrored": lambda frames: frames[::-1],
}
BREAKS = (*FRAMES, WINDOW, WRONG_STUDY)
_EVERY = 10  # question that is asked of another patient's study
_UNSEEN = (0.0, 65535.0)  # a window as wide as the file's numbers, as if none were set


def break_cohort(cohort: Path, out: Path) -> None:
    """Write studies and questions of a phantom cohort once untouched and once for each break.

    The ids say which: `turned-PH-0001`. Headers, captions and questions stay what they are.
    """
    ids = sorted(folder.name for folder in (cohort / "studies").iterdir())
    asked = [json.loads(line) for line in (cohort / "questions.jsonl").read_text().splitlines()]
    records = []
    for name in BREAKS:
        for study_id in ids:
            folder = out / "studies" / f"{name}-{study_id}"
            shutil.copytree(cohort / "studies" / study_id, folder)
            _rewrite(folder, name)
        for place, record in enumerate(asked):
            shown = record["study_id"]
            if name == WRONG_STUDY and place % _EVERY == 0:
                shown = ids[(ids.index(shown) + 1) % len(ids)]
            own = {part: f"{name}-{record[part]}" for part in ("qa_id", "patient_id")}
            records.append({**record, **own, "study_id": f"{name}-{shown}", "patient_id": f"{name}-{shown}"})
    (out / "questions.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def _rewrite(folder: Path, name: str) -> None:
    path = folder / "study.json"
    study = json.loads(path.read_text())
    study |= {"study_id": folder.name, "patient_id": folder.name}
    for volume in study["volumes"]:
        if name == WINDOW:
            volume["window"] = _UNSEEN
        elif name in FRAMES:
            volume["sha256"] = _changed(folder / volume["path"], volume["layout"], FRAMES[name])
    path.write_text(json.dumps(study))


def _changed(path: Path, layout: Mapping[str, Any], change: Break) -> str:
    """Write a volume with other frames under the header that it has; its new digest."""
    image = nib.load(path)
    stored = np.asarray(image.dataobj)
    frames = stored.reshape(*stored.shape[:2], layout["n_slices"], layout["n_phases"])
    nib.save(nib.Nifti1Image(change(frames).reshape(stored.shape), None, image.header), path)
    return hashlib.sha256(path.read_bytes()).hexdigest()
