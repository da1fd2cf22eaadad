"""Write a study of a release: its manifest under new ids, and files without free text."""

import json
from pathlib import Path
from typing import Any

from cardiolens.base.digest import sha256_of
from cardiolens.base.untrusted.files import read_json
from cardiolens.curation.release.clean import without_text
from cardiolens.storage import tables
from cardiolens.study.manifest import MANIFEST_NAME, Study


def write_study(study: Study, folder: Path, patient: str, cohort: str) -> None:
    """Write a study under new ids: its manifest without report id, and files without free text."""
    manifest: dict[str, Any] = read_json(study.folder / MANIFEST_NAME)
    manifest = {name: value for name, value in manifest.items() if name != "report_id"}
    manifest |= {"study_id": folder.name, "patient_id": patient, "cohort": [cohort]}
    for entry, volume in zip(manifest["volumes"], study.manifest.volumes, strict=True):
        entry["path"], entry["sha256"] = _copy(study.folder / volume.path, folder, volume.volume_id)
        if volume.mask is not None:
            path, digest = _copy(study.folder / volume.mask.path, folder, f"{volume.volume_id}_mask")
            entry["mask"] = {"path": path, "sha256": digest}
    tables.write_text(folder / MANIFEST_NAME, json.dumps(manifest, indent=1) + "\n")


def _copy(source: Path, folder: Path, name: str) -> tuple[str, str]:
    """Write a file without free text; return its new name and digest."""
    path = folder / f"{name}{'.nii.gz' if source.name.endswith('.gz') else '.nii'}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(without_text(source))
    return path.name, sha256_of(path)
