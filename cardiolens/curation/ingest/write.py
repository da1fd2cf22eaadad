"""Write an imported study: volumes, `study.json`, `proposals.json`, a contact sheet, `build.json`.

`out/studies/<id>` holds only the input of `prepare`; `out/proposals/<id>` holds files for a person, and
volumes that wait for a decision. A study appears whole or not at all.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
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
from cardiolens.curation.ingest.export_files import Rejects, path_below, reject
from cardiolens.curation.ingest.frame_records import Frame, Stack
from cardiolens.curation.ingest.ids import age_band, removed, sex, tesla, vendor
from cardiolens.curation.ingest.orient import affine
from cardiolens.curation.ingest.pixels import stacked, stacked_masks
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.curation.ingest.study import Imported, Task
from cardiolens.study.anatomy import SHORT_AXIS
from cardiolens.study.group import refused_volumes
from cardiolens.study.manifest import MANIFEST_NAME, read_study
from cardiolens.study.overlay import study_sheet

BUILD_NAME, PROPOSALS_NAME, REJECTS_NAME = "build.json", "proposals.json", "rejects.jsonl"
SHEET_NAME = "sheet.png"
_SHEET_PHASES = 8
_SHEAR = 1e-3  # cosine of two axes from which they are not at right angles
_PREFIX = {"waits": "waits", "left_out": "seen"}  # of files for a person, by status

Entry = dict[str, Any]


def write_study(task: Task, imported: Imported) -> tuple[Entry, Rejects]:
    """Write all files of one study; return the content of its `build.json`, and its rejects."""
    out, study_id, names = task.spec.out, task.study_id, task.names
    drafts = out / ".drafts" / study_id
    disk.remove_tree(drafts)
    study, notes = drafts / "studies", drafts / "proposals"
    study.mkdir(parents=True)
    notes.mkdir()
    listed: list[Entry] = []
    accepted: list[Entry] = []
    for number, proposal in enumerate(imported.proposals, start=1):
        is_taken = proposal.status == "taken"
        name = proposal.volume_id if is_taken else f"{_PREFIX[proposal.status]}_{number:03d}"
        entry = _write_volume(study if is_taken else notes, proposal, name)
        listed.append(_proposal(proposal, entry))
        accepted += [entry] * is_taken
    if accepted:
        disk.write_draft(study / MANIFEST_NAME, _manifest(task, accepted).encode())
        try:
            study_sheet(study, _SHEET_PHASES, Windows()).save(notes / SHEET_NAME)  # as `prepare` reads it
        except InputError:
            if not _hold_refused(study, imported):
                raise
            return write_study(task, imported)
    tree = {"schema": "proposals-1", "study_id": study_id, "proposals": listed}
    disk.write_draft(notes / PROPOSALS_NAME, json_text(tree).encode())
    rejects: Rejects = []
    for image, reason, detail in imported.unused():
        file = names.file(path_below(image.place, task.spec.source))
        rejects.append(reject(file, reason, frame=image.frame, detail=detail, study_id=study_id))
    fit, image = sum(each.stack_id in task.choices for each in imported.proposals), task.images[0]
    measured = {"lv_edv_ml": image.person.lv_edv_ml, "lv_esv_ml": image.person.lv_esv_ml}
    build = {
        "schema": "build-1",
        "stage": "intake",
        "tool_version": __version__,
        **task.provenance,
        "study_id": study_id,
        "patient_id": names.patient(image.identity),
        "frames": len(task.images),
        "volumes": sorted(str(entry["volume_id"]) for entry in accepted),
        "waiting": sorted(each.volume_id for each in imported.proposals if each.status == "waits"),
        "decisions": {"fit": fit, "applied": fit - len(imported.refused), "refused": imported.refused},
        "flags": _open_flags(imported),
        "left_out": dict(sorted(Counter(line["reason"] for line in rejects).items())),
        "removed": removed(task.images),
        "set": {"layout": image.of_set, "group": image.person.group, **measured} if image.of_set else None,
    }
    disk.write_draft(notes / REJECTS_NAME, json_lines(rejects).encode("utf-8", "surrogatepass"))
    disk.write_draft(notes / BUILD_NAME, json_text(build).encode())
    targets = {folder: out / folder.name / study_id for folder in (notes, study)}
    for target in targets.values():
        disk.remove_tree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
    for folder in (study, notes) if accepted else (notes,):  # build.json comes last
        disk.rename(folder, targets[folder])
    disk.remove_tree(drafts)
    return build, rejects


def _open_flags(imported: Imported) -> list[str]:
    """Return the flags of a study that no confirmation answers: of a first pass, its times."""
    flags: set[Flag] = set()
    for proposal in (each for each in imported.proposals if each.status != "left_out"):
        if not proposal.confirmed:
            flags |= set(proposal.flags)
        elif proposal.sequence == "perfusion":
            flags |= {Flag.TIMES} & set(proposal.flags)
    return sorted(flags)


def _hold_refused(study: Path, imported: Imported) -> bool:
    """Let the volumes of a study that `prepare` refuses wait for a person; return if any does."""
    refused = refused_volumes(read_study(study), Windows())
    imported.proposals = [
        each.left_out(Reason.CONTRADICTED, refused[each.volume_id], waits=True)
        if each.status == "taken" and each.volume_id in refused
        else each
        for each in imported.proposals
    ]
    return bool(refused)


def is_whole(folder: Path, build: Entry) -> bool:
    """Return whether all files that a `build.json` lists exist."""
    study = folder.parents[1] / "studies" / folder.name
    files = [study / MANIFEST_NAME, *(study / f"{name}.nii" for name in build["volumes"])]
    needed = [folder / REJECTS_NAME, folder / PROPOSALS_NAME, *(files if build["volumes"] else [])]
    return all(path.is_file() for path in needed)


def _write_volume(folder: Path, proposal: Proposal, name: str) -> Entry:
    """Write a volume as (column, row, slice, phase), and return its entry for study.json."""
    stack, path = proposal.stack, folder / f"{name}.nii"
    shape = _write_nifti(path, stack, *stacked(stack))
    lengths = (stack.first.spacing[1], stack.first.spacing[0], stack.step)
    entry: Entry = {
        "volume_id": proposal.volume_id,
        "sequence": proposal.sequence,
        "view": proposal.view,
        "path": path.name,
        "shape": shape,
        "spacing_mm": [round(float(length), 6) for length in lengths],
        "layout": {
            "order": "slice_major" if stack.n_phases > 1 else "static",
            "n_slices": stack.n_slices,
            "n_phases": stack.n_phases,
        },
        "spatial_order": "base_to_apex" if proposal.view == SHORT_AXIS and proposal.ordered else "unknown",
        "ed_phase": None,
        "es_phase": None,
        "display_transform": proposal.transform.model_dump(),
        "sha256": sha256_of(path),
        **proposal.times,
    }
    if proposal.labels:
        mask_path = folder / "masks" / f"{name}.nii"
        mask_path.parent.mkdir(exist_ok=True)
        _write_nifti(mask_path, stack, stacked_masks(stack), 1.0, 0.0)
        digest = sha256_of(mask_path)
        entry["mask"] = {"path": f"masks/{mask_path.name}", "sha256": digest, "labels": proposal.labels}
    return entry | ({"confirmed": ["display"]} if proposal.confirmed else {})


def _write_nifti(path: Path, stack: Stack, values: Frame, slope: float, intercept: float) -> list[int]:
    """Write values (slice, phase, row, column) as (column, row, slice, phase); return that shape."""
    voxels = values.transpose(3, 2, 0, 1)
    voxels = voxels[..., 0] if stack.n_phases == 1 else voxels
    matrix = affine(stack)
    image = nib.Nifti1Image(np.asfortranarray(voxels), matrix, dtype=voxels.dtype)
    image.header.set_xyzt_units("mm")
    code = "scanner" if stack.placed else "unknown"
    image.set_sform(matrix, code=code)
    if _is_sheared(matrix):
        image.set_qform(None, code=0)
    else:
        image.set_qform(matrix, code=code)
    image.header.set_slope_inter(slope, intercept)
    header = image.header.copy()
    header["vox_offset"], header["magic"] = 352, b"n+1"  # nibabel's writer would rescale the voxels
    disk.write_draft(path, bytes(header.binaryblock) + b"\0" * 4 + bytes(voxels.tobytes(order="F")))
    return list(voxels.shape)


def _is_sheared(matrix: Any) -> bool:
    """Return whether slices are shifted against each other, which a qform cannot say."""
    directions = matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0)
    return bool(np.abs(directions[:, 2] @ directions[:, :2]).max() > _SHEAR)


def _manifest(task: Task, volumes: Sequence[Entry]) -> str:
    """Return the text of study.json; facts that are not known are left out."""
    image = task.images[0]
    person = image.person
    facts = {
        "sex": sex(person),
        "age_band": age_band(person),
        "vendor": vendor(person),
        "field_tesla": tesla(person),
        "site": person.site or None,
        "height_cm": person.height_cm,
        "weight_kg": person.weight_kg,
    }
    head: Entry = {
        "schema": "study-1",
        "study_id": task.study_id,
        "patient_id": task.names.patient(image.identity),
        "cohort": task.spec.cohort or [image.of_set] * bool(image.of_set),
    }
    head |= {name: value for name, value in facts.items() if value is not None}
    return json_text(head | {"volumes": sorted(volumes, key=lambda volume: str(volume["volume_id"]))})


def _proposal(proposal: Proposal, entry: Entry) -> Entry:
    """Return the entry of a proposal for proposals.json."""
    stack = proposal.stack
    witnesses = [
        {"about": subject, **asdict(witness), "reliability": round(witness.reliability, 3)}
        for subject, witness in proposal.witnesses
    ]
    return {
        "stack": proposal.stack_id,
        "status": proposal.status,
        "reason": None if proposal.reason is None else str(proposal.reason),
        "sequence": proposal.sequence,
        "declared": None if stack.first.declared is None else stack.first.declared.sequence,
        "view": proposal.view,
        "volume_id": proposal.volume_id or None,
        "confidence": round(proposal.confidence, 4),
        "flags": list(proposal.flags),
        "witnesses": witnesses,
        "alternatives": {name: round(p, 4) for name, p in sorted(proposal.alternatives.items())},
        "component": proposal.component or None,
        "series": stack.series,
        "slices": stack.n_slices,
        "phases": stack.n_phases,
        "along_normal": stack.along_normal,
        "places_mm": {name: list(mm) for name, mm in stack.first.places_mm.items()},
        "masked": any(image.mask is not None for image in stack.images()),
        "entry": entry,
    }


def json_lines(lines: Sequence[dict[str, Any]]) -> str:
    """Return JSON Lines."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def json_text(tree: object) -> str:
    """Return indented JSON."""
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"
