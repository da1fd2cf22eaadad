"""Write an imported study: volumes, `study.json`, `proposals.json`, a contact sheet, `build.json`.

`out/studies/<id>` holds only the input of `prepare`; `out/proposals/<id>` holds files for a person, and
volumes that wait for a decision. A study appears whole or not at all.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

from cardiolens import __version__
from cardiolens.base import disk
from cardiolens.base.digest import sha256_of
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.curation.ingest.classify import Proposal
from cardiolens.curation.ingest.decisions import Choices
from cardiolens.curation.ingest.frame_records import Image, Stack
from cardiolens.curation.ingest.ids import PASSES, Pseudonyms, age_band, removed, sex, tesla, vendor
from cardiolens.curation.ingest.orient import Volume, affine
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.curation.ingest.study import Imported
from cardiolens.study.anatomy import SHORT_AXIS
from cardiolens.study.displayed import refused_volumes
from cardiolens.study.manifest import MANIFEST_NAME, StudyManifest, read_study
from cardiolens.study.overlay import study_sheet

BUILD_NAME, PROPOSALS_NAME, REJECTS_NAME = "build.json", "proposals.json", "rejects.jsonl"
SHEET_NAME = "sheet.png"
_SHEET_PHASES = 8
_SHEAR = 1e-3  # cosine of two axes from which they are not at right angles


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of one study below `out`."""

    studies: Path
    proposals: Path
    drafts: Path

    @classmethod
    def of(cls, out: Path, study_id: str) -> "Places":
        return cls(out / "studies" / study_id, out / "proposals" / study_id, out / ".drafts" / study_id)


def write_study(
    out: Path,
    study_id: str,
    images: Sequence[Image],
    imported: Imported,
    *,
    names: Pseudonyms,
    provenance: dict[str, Any],
    rejects: Sequence[dict[str, Any]],
    choices: Choices,
) -> dict[str, Any]:
    """Write all files of one study, and return the content of its `build.json`."""
    places = Places.of(out, study_id)
    disk.remove_tree(places.drafts)
    study, notes = places.drafts / "study", places.drafts / "proposals"
    study.mkdir(parents=True)
    notes.mkdir()
    accepted, waiting = (
        [volume for volume in imported.volumes if volume.proposal.status == status]
        for status in ("taken", "waits")
    )
    entries = {
        id(volume.stack): _write_volume(study, volume, volume.proposal.volume_id) for volume in accepted
    }
    for prefix, volumes in (("waits", waiting), ("seen", imported.left_out_volumes)):
        for volume in volumes:
            name = f"{prefix}_{_label(imported, volume.proposal)}"
            entries[id(volume.stack)] = _write_volume(notes, volume, name)
    refused = ""
    if accepted:
        manifest = _manifest(
            study_id, images[0], [entries[id(volume.stack)] for volume in accepted], names, provenance
        )
        StudyManifest.model_validate_json(manifest)
        disk.write_draft(study / MANIFEST_NAME, manifest.encode())
        refused = _draw_sheet(study, notes / SHEET_NAME)
    disk.write_draft(notes / PROPOSALS_NAME, _json(_proposals(study_id, imported, entries)).encode())
    build = {
        "schema": "build-1",
        "stage": "intake",
        "tool_version": __version__,
        **provenance,
        "study_id": study_id,
        "patient_id": names.patient(images[0].identity),
        "frames": len(images),
        "volumes": sorted(volume.proposal.volume_id for volume in accepted),
        "waiting": sorted(volume.proposal.volume_id for volume in waiting),
        "decisions": _decisions(imported, choices),
        "flags": _open_flags(imported),
        "prepare_refuses": refused or None,
        "left_out": dict(sorted(Counter(str(reason) for _, reason, _ in imported.left_out).items())),
        "passes": sorted({tag for image in images for tag in image.tags} & PASSES.keys()),
        "removed": removed(images),
        "set": _of_set(images[0]),
    }
    disk.write_draft(notes / REJECTS_NAME, json_lines(rejects).encode("utf-8", "surrogatepass"))
    disk.write_draft(notes / BUILD_NAME, _json(build).encode())
    _publish(places, has_study=bool(accepted))
    return build


def _open_flags(imported: Imported) -> list[str]:
    """Return the flags of a study that no confirmation answers."""
    flags: set[Flag] = set()
    for proposal in (volume.proposal for volume in imported.volumes):
        answered = proposal.confirmed and proposal.sequence != "perfusion"
        flags |= set() if answered else {*proposal.flags} & ({Flag.TIMES} if proposal.confirmed else {*Flag})
    return sorted(flags)


def _of_set(image: Image) -> dict[str, Any] | None:
    """Return the layout of a study, its own name for the patient's disease, and what it measured."""
    if not image.of_set:
        return None
    measured = {"lv_edv_ml": image.person.lv_edv_ml, "lv_esv_ml": image.person.lv_esv_ml}
    return {"layout": image.of_set, "group": image.person.group, **measured}


def _draw_sheet(study: Path, path: Path) -> str:
    """Draw the contact sheet of a study as `prepare` reads it; return why `prepare` refuses the study."""
    try:
        study_sheet(study, _SHEET_PHASES, Windows()).save(path)
    except InputError as error:
        return str(error)
    return ""


def hold_refused(out: Path, study_id: str, imported: Imported) -> bool:
    """Let the volumes of a written study that `prepare` refuses wait for a person; return if any does."""
    refused = refused_volumes(read_study(Places.of(out, study_id).studies), Windows())
    for number, volume in enumerate(imported.volumes):
        why = refused.get(volume.proposal.volume_id) if volume.proposal.status == "taken" else None
        if why is None:
            continue
        waiting = volume.proposal.left_out(Reason.CONTRADICTED, why, waits=True)
        imported.volumes[number] = replace(volume, proposal=waiting)
        imported.proposals = [waiting if each.stack is volume.stack else each for each in imported.proposals]
        imported.left_out += [(image, Reason.CONTRADICTED, why) for image in volume.stack.images()]
    return bool(refused)


def _decisions(imported: Imported, choices: Choices) -> dict[str, Any]:
    """Count the choices that fit a stack and those applied; list refused choices with their reasons."""
    fit = sum(proposal.stack_id in choices for proposal in imported.proposals)
    return {"fit": fit, "applied": fit - len(imported.refused), "refused": imported.refused}


def is_whole(folder: Path, build: dict[str, Any]) -> bool:
    """Return whether all files that a `build.json` lists exist."""
    study = folder.parents[1] / "studies" / folder.name
    needed = [folder / REJECTS_NAME, folder / PROPOSALS_NAME]
    needed += (
        [study / MANIFEST_NAME, *(study / f"{name}.nii" for name in build["volumes"])]
        if build["volumes"]
        else []
    )
    return all(path.is_file() for path in needed)


def _publish(places: Places, *, has_study: bool) -> None:
    for target in (places.proposals, places.studies):
        disk.remove_tree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
    if has_study:
        disk.rename(places.drafts / "study", places.studies)
    disk.rename(places.drafts / "proposals", places.proposals)
    disk.remove_tree(places.drafts)


def _write_volume(folder: Path, volume: Volume, name: str) -> dict[str, Any]:
    """Write a volume as (column, row, slice, phase), and return its entry for study.json."""
    stack, proposal = volume.stack, volume.proposal
    path = folder / f"{name}.nii"
    voxels = _write_nifti(path, stack, volume.values, volume.slope, volume.intercept)
    gap, spacing = stack.step, stack.first.spacing
    entry: dict[str, Any] = {
        "volume_id": proposal.volume_id,
        "sequence": proposal.sequence,
        "view": proposal.view,
        "path": path.name,
        "shape": list(voxels.shape),
        "spacing_mm": [round(float(length), 6) for length in (spacing[1], spacing[0], gap)],
        "layout": {
            "order": "slice_major" if stack.n_phases > 1 else "static",
            "n_slices": stack.n_slices,
            "n_phases": stack.n_phases,
        },
        "spatial_order": "base_to_apex" if proposal.view == SHORT_AXIS and volume.ordered else "unknown",
        "key_layers": None,
        "ed_phase": volume.ed_phase,
        "es_phase": volume.es_phase,
        "layout_source": "declared",
        "display_transform": volume.transform.model_dump(),
        "sha256": sha256_of(path),
    }
    if volume.masks is not None:
        entry["mask"] = _write_mask(folder, volume, name)
    if proposal.confirmed:
        entry["confirmed"] = ["display"]
    if volume.t_on is not None:
        entry |= {"t_on": volume.t_on, "t_peak": volume.t_peak}
    return entry


def _write_mask(folder: Path, volume: Volume, name: str) -> dict[str, Any]:
    """Write the mask of a volume on the same grid, and return its entry."""
    assert volume.masks is not None
    path = folder / "masks" / f"{name}.nii"
    path.parent.mkdir(exist_ok=True)
    _write_nifti(path, volume.stack, volume.masks, 1.0, 0.0)
    labels = next(image.mask.labels for image in volume.stack.images() if image.mask is not None)
    return {"path": f"masks/{path.name}", "sha256": sha256_of(path), "labels": labels}


def _write_nifti(path: Path, stack: Stack, values: Any, slope: float, intercept: float) -> Any:
    """Write values (slice, phase, row, column) as (column, row, slice, phase), and return them so."""
    voxels = values.transpose(3, 2, 0, 1)
    voxels = voxels[..., 0] if stack.n_phases == 1 else voxels
    image = nib.Nifti1Image(np.asfortranarray(voxels), affine(stack), dtype=voxels.dtype)
    image.header.set_xyzt_units("mm")
    code = "scanner" if stack.placed else "unknown"
    image.set_sform(affine(stack), code=code)
    if _is_sheared(affine(stack)):
        image.set_qform(None, code=0)
    else:
        image.set_qform(affine(stack), code=code)
    image.header.set_slope_inter(slope, intercept)
    disk.write_draft(path, _nifti_bytes(image, voxels))
    return voxels


def _is_sheared(matrix: Any) -> bool:
    """Return whether slices are shifted against each other, which a qform cannot say."""
    directions = matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0)
    return bool(np.abs(directions[:, 2] @ directions[:, :2]).max() > _SHEAR)


def _nifti_bytes(image: nib.Nifti1Image, voxels: Any) -> bytes:
    """Serialise header and voxels as stored; nibabel's writer would rescale them."""
    header = image.header.copy()
    header["vox_offset"] = 352
    header["magic"] = b"n+1"
    return bytes(header.binaryblock) + b"\0" * 4 + bytes(voxels.tobytes(order="F"))


def _label(imported: Imported, proposal: Proposal) -> str:
    return f"{[id(each.stack) for each in imported.proposals].index(id(proposal.stack)) + 1:03d}"


def _manifest(
    study_id: str, image: Image, volumes: list[dict[str, Any]], names: Pseudonyms, provenance: dict[str, Any]
) -> str:
    facts = {
        "sex": sex(image.person),
        "age_band": age_band(image.person),
        "vendor": vendor(image.person),
        "field_tesla": tesla(image.person),
        "site": image.person.site or None,
        "height_cm": image.person.height_cm,
        "weight_kg": image.person.weight_kg,
    }
    return _json(
        {
            "schema": "study-1",
            "study_id": study_id,
            "patient_id": names.patient(image.identity),
            "cohort": provenance["options"]["cohort"] or [image.of_set] * bool(image.of_set),
            "species": "human",
            "report_id": None,
            **{name: value for name, value in facts.items() if value is not None},
            "volumes": sorted(volumes, key=lambda volume: str(volume["volume_id"])),
        }
    )


def _proposals(study_id: str, imported: Imported, entries: dict[int, dict[str, Any]]) -> dict[str, Any]:
    volumes = {id(volume.stack): volume for volume in imported.volumes}
    listed = []
    for proposal in imported.proposals:
        volume = volumes.get(id(proposal.stack))
        decided, stack = proposal if volume is None else volume.proposal, proposal.stack
        listed.append(
            {
                "stack": proposal.stack_id,
                "proposal": f"{study_id}-{_label(imported, proposal)}",
                "status": decided.status,
                "reason": None if decided.reason is None else str(decided.reason),
                "sequence": decided.sequence,
                "declared": None if stack.first.declared is None else stack.first.declared.sequence,
                "view": decided.view,
                "volume_id": decided.volume_id or None,
                "confidence": round(decided.confidence, 4),
                "flags": list(decided.flags),
                "witnesses": [{"about": about, **witness.record()} for about, witness in decided.witnesses],
                "alternatives": {name: round(p, 4) for name, p in sorted(decided.alternatives.items())},
                "component": decided.component or None,
                "series": stack.series,
                "slices": stack.n_slices,
                "phases": stack.n_phases,
                "along_normal": stack.along_normal,
                "places_mm": {name: list(mm) for name, mm in stack.first.places_mm.items()},
                "masked": any(image.mask is not None for image in stack.images()),
                "entry": entries.get(id(proposal.stack)),
            }
        )
    return {"schema": "proposals-1", "study_id": study_id, "proposals": listed}


def json_lines(lines: Sequence[dict[str, Any]]) -> str:
    """Return JSON Lines."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _json(tree: object) -> str:
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"
