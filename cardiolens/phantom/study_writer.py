"""Write one phantom study: volumes, masks and JSON files (protocol 9 stage 0, 10.5)."""

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.phantom import codes, signal
from cardiolens.phantom.planes import Size, Vector, affine
from cardiolens.phantom.render import Rendered
from cardiolens.phantom.sampler import Study
from cardiolens.protocol.tasks.truth import Details, Truth

_DISPLAY = {"transpose": True, "flip_rows": True, "flip_cols": False}
_LAYER_MM = 8.0
_DECIMALS = 6  # for computed header values: linear algebra may round differently between machines
_COMPUTED = ("pixdim", "srow_x", "srow_y", "srow_z", "quatern_b", "quatern_c", "quatern_d")
_OFFSETS = ("qoffset_x", "qoffset_y", "qoffset_z")


def write_volume(folder: Path, rendered: Rendered, size: Size) -> dict[str, Any]:
    """Write one volume and its mask, if any, and return its entry in `study.json`."""
    code = rendered.view.code
    step, gap = _step(rendered)
    matrix = affine(rendered.planes, size.pixels, size.spacing_mm, step)
    name = f"{code}.nii.gz"
    entry: dict[str, Any] = {
        "volume_id": code,
        "sequence": rendered.view.sequence,
        "view": rendered.view.view,
        "path": name,
        "shape": [size.pixels, size.pixels, len(rendered.frames)],
        "spacing_mm": [size.spacing_mm, size.spacing_mm, gap],
        "layout": {
            "order": "slice_major" if rendered.phases > 1 else "static",
            "n_slices": len(rendered.planes),
            "n_phases": rendered.phases,
        },
        "spatial_order": "unknown" if rendered.view.kind == "long_axis" else "base_to_apex",
        "key_layers": None,
        "ed_phase": 0,
        "es_phase": rendered.es_phase,
        "layout_source": "declared",
        "display_transform": _DISPLAY,
        "sha256": _write(folder / name, nifti_bytes(stored(rendered.frames), matrix)),
    }
    if rendered.view.sequence == "perfusion":
        entry["t_on"], entry["t_peak"] = signal.first_pass(rendered.phases)
    if rendered.masks is not None:
        path = f"masks/{name}"
        entry["mask"] = {
            "path": path,
            "sha256": _write(folder / path, nifti_bytes(stored(rendered.masks), matrix)),
        }
    return entry


def write_records(
    folder: Path,
    study: Study,
    volumes: list[dict[str, Any]],
    reports: Mapping[str, Mapping[str, Any]],
    patient_id: str,
) -> None:
    """Write `study.json`, `truth.json`, `params.json` and `report.json` of a study."""
    manifest = {
        "schema": "study-1",
        "study_id": study.study_id,
        "patient_id": patient_id,
        "cohort": ["full", "public"] if study.public else ["full"],
        "species": "phantom",
        "report_id": None,
        "volumes": volumes,
    }
    made_of = {
        "schema": "params-1",
        "study_id": study.study_id,
        "seed": study.seed,
        "archetype": study.archetype,
        "variant": study.variant,
        "parameters": asdict(study.parameters),
    }
    _write_json(folder / "study.json", manifest)
    _write_json(folder / "truth.json", truth_record(study.study_id, study.truth))
    _write_json(folder / "params.json", made_of)
    _write_json(
        folder / "report.json", {"schema": "report-1", "study_id": study.study_id, "reports": reports}
    )


def truth_record(study_id: str, truth: Truth) -> dict[str, Any]:
    """Return a truth as a `truth-1` record (protocol, stage 3)."""
    tree = asdict(truth)
    details = {"details": tree["details"]} if truth.details != Details() else {}
    return {
        "schema": "truth-1",
        "study_id": study_id,
        "segments": {str(number): segment for number, segment in enumerate(tree["segments"], start=1)},
        "chambers": tree["chambers"],
        "valves": {"av": tree["av_valves"], "outflow": tree["outflow"]},
        "pericardium": tree["pericardium"],
        "lge": tree["lge"],
        "perfusion": tree["perfusion"],
        "oedema": tree["oedema"],
        "diagnosis": {"etiology": truth.etiology, "subtype": truth.subtype, "source": "phantom"},
        **details,
        "indeterminate": list(truth.indeterminate),
        "provenance": {},
    }


def write_labels(folder: Path) -> None:
    """Write `labels.json`, the name of every mask value."""
    _write_json(folder / "masks" / "labels.json", {str(code): name for code, name in codes.labels().items()})


def _step(rendered: Rendered) -> tuple[Vector, float]:
    """Return the vector from one slice to the next in heart coordinates, and its length in mm."""
    first = rendered.planes[0]
    if len(rendered.planes) > 1:
        between = np.array(rendered.planes[1].centre) - np.array(first.centre)
    else:
        between = _LAYER_MM * np.cross(first.down, first.right)
    x, y, z = (round(float(part), 9) for part in between)
    return (x, y, z), round(float(np.sqrt(x * x + y * y + z * z)), 6)


def _write(path: Path, content: bytes) -> str:
    disk.write_draft(path, content)
    return hashlib.sha256(content).hexdigest()


def _write_json(path: Path, tree: Any) -> None:
    disk.write_draft(path, (json.dumps(tree, indent=1, ensure_ascii=False) + "\n").encode())


def stored(frames: NDArray[np.generic]) -> NDArray[np.generic]:
    """Convert displayed frames (frame, row, column) to stored axes (column, row from the bottom, frame)."""
    return np.ascontiguousarray(frames[:, ::-1, :].transpose(2, 1, 0))


def nifti_bytes(volume_IJK: NDArray[np.generic], affine: NDArray[np.float64]) -> bytes:
    """Return a volume as the bytes of a `.nii.gz` file, in mm and scanner coordinates."""
    image = nib.Nifti1Image(volume_IJK, affine)
    image.header.set_xyzt_units("mm")
    image.set_qform(affine, code="scanner")
    image.set_sform(affine, code="scanner")
    for name in (*_COMPUTED, *_OFFSETS):
        image.header[name] = np.round(image.header[name], _DECIMALS) + 0.0  # no negative zero
    return gzipped(image.to_bytes())


def gzipped(content: bytes) -> bytes:
    """Gzip without compression, which saves little on noise, and without a time."""
    return gzip.compress(content, compresslevel=0, mtime=0)
