"""Tiny study folders for tests: NIfTI files and manifests that hold until a test breaks them."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

from cardiolens.config.dataset import Windows
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.cohort import current_cohort, write_cohort
from cardiolens.study.group import Outcome, prepare_group

WINDOWS = Windows(pct=(1.0, 99.0))

_BASE = np.array([0.6, -0.61, 0.5]) / np.linalg.norm([0.6, -0.61, 0.5])  # RAS+, of a typical heart
_UP = np.array([0, 0.6, 0.8]) - _BASE * (np.array([0, 0.6, 0.8]) @ _BASE)
_UP /= np.linalg.norm(_UP)
_LEFT = np.cross(_UP, -_BASE)
# Displayed without a transform: i runs down, j to the patient's left; slices run from base to apex.
SHORT_AXIS_AFFINE = np.eye(4)
SHORT_AXIS_AFFINE[:3, :3] = np.column_stack([-2 * _UP, 2 * _LEFT, -10 * _BASE])


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_nifti(path: Path, voxels: np.ndarray, affine: np.ndarray | None = None) -> str:
    """Write voxels of any axes and return the file's hash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nib.Nifti1Image(voxels, SHORT_AXIS_AFFINE if affine is None else affine)
    nib.save(image, path)
    return sha256(path)


def voxels(n_slices: int = 3, n_phases: int = 4, size: tuple[int, int] = (6, 5), seed: int = 7) -> np.ndarray:
    """A flattened slice-major volume (i, j, Z) of noise."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 1000, (*size, n_slices * n_phases)).astype(np.int16)


def volume(
    folder: Path, array: np.ndarray | None = None, volume_id: str = "cine_sax", **changes: Any
) -> dict[str, Any]:
    """Write a volume and return its manifest entry, 3 slices x 4 phases unless changed."""
    prefix, view = volume_id.split("_")
    path = changes.pop("path", f"{volume_id}.nii.gz")
    array = voxels() if array is None else array
    entry = {
        "volume_id": volume_id,
        "sequence": {"perf": "perfusion"}.get(prefix, prefix),
        "view": view,
        "path": path,
        "shape": list(array.shape),
        "spacing_mm": [2.0, 2.0, 10.0],
        "layout": {"order": "slice_major", "n_slices": 3, "n_phases": 4},
        "spatial_order": "base_to_apex",
        "sha256": write_nifti(folder / path, array),
    }
    return entry | changes


def study(folder: Path, *volumes: dict[str, Any], **changes: Any) -> Path:
    """Write the manifest of a study folder; without volumes it has one of `volume`."""
    manifest = {
        "schema": "study-1",
        "study_id": folder.name,
        "patient_id": f"patient-{folder.name}",
        "cohort": ["full"],
        "volumes": list(volumes) or [volume(folder)],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.json").write_text(json.dumps(manifest | changes))
    return folder


def published(
    store: Path,
    folders: Sequence[Path],
    part: str = "part-1.parquet",
    windows: Windows = WINDOWS,
    anatomy: Anatomy | None = None,
) -> list[Outcome]:
    """Prepare studies into one part, in this process, and publish exactly those that can be."""
    outcomes = prepare_group(store, part, folders, windows, anatomy=anatomy)
    studies = {outcome.name: outcome.record for outcome in outcomes if outcome.record}
    write_cohort(store, current_cohort(store, windows, anatomy).model_copy(update={"studies": studies}))
    return outcomes
