"""Read the frames of the files that a layout names, with their masks and facts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from cardiolens.curation.ingest.image import Image
from cardiolens.curation.ingest.layouts.assignment import Assignment
from cardiolens.curation.ingest.layouts.information import Facts
from cardiolens.curation.ingest.names import natural
from cardiolens.curation.ingest.nifti.exported_files import FEWEST_PHASES, ExportedFile, Frames, NiftiSource
from cardiolens.curation.ingest.nifti.file_scans import read_scans
from cardiolens.curation.ingest.nifti.mask_links import link_masks
from cardiolens.curation.ingest.nifti.nifti_file import SPACING_FLAGS
from cardiolens.curation.ingest.nifti.sidecar import Sidecar
from cardiolens.curation.ingest.nifti.sidecar_files import sidecar_of
from cardiolens.curation.ingest.nifti.study_frames import add_study
from cardiolens.curation.ingest.reasons import Reason


def add_frames_of_layout(
    source: NiftiSource,
    assignment: Assignment,
    sidecars: Mapping[str, tuple[str, Sidecar]],
    frames: Frames,
) -> Frames:
    """Read the frames of the images that a layout names, with their masks and facts."""
    paths = [path for path in sorted(assignment.roles, key=natural) if path in source.files]
    ways = [(source.files[path], False, assignment.roles[path].rule) for path in paths]
    scans = read_scans(paths, ways)
    files: dict[str, list[ExportedFile]] = defaultdict(list)
    masks: dict[str, list[ExportedFile]] = defaultdict(list)
    for number, path in enumerate(paths, start=1):
        role, scanned = assignment.roles[path], scans[path]
        if isinstance(scanned, tuple):
            frames.rejects.append((path, 0, *scanned))
            continue
        if scanned.few_values and not role.is_mask:
            frames.rejects.append((path, 0, Reason.MASK, "by its values, where the layout expects an image"))
            continue
        sidecar = sidecar_of(path, sidecars, frames)
        file = ExportedFile(path, role.name, scanned, sidecar, role.subject, role.study, number, role=role)
        (masks if role.is_mask else files)[role.study].append(file)
    for study, members in files.items():
        facts = assignment.facts_of(members[0].patient)
        moments = {name: phase for name, phase in (("ED", facts.ed), ("ES", facts.es)) if phase is not None}
        volumes = {file.name.folder for file in members if "cine" in file.name.base}
        add_study(members, dict.fromkeys(volumes, moments), frames)
        link_masks(members, masks.pop(study, []), frames, assignment)
        _add_facts(members, facts, frames)
        image_path = next((file.path for file in members if file.path in frames.images), "")
        for path in facts.files:
            frames.used[path] = image_path
    frames.rejects += [
        (file.path, 0, Reason.MASK, "without an image") for group in masks.values() for file in group
    ]
    frames.rejects += [
        (path, 0, Reason.NOT_OF_LAYOUT, "") for path in source.files if path not in assignment.roles
    ]
    frames.rejects += [
        (path, 0, Reason.NOT_OF_LAYOUT, "")
        for path in source.sidecars
        if path not in frames.used and not any(path == reject[0] for reject in frames.rejects)
    ]
    return frames


def _add_facts(files: Sequence[ExportedFile], facts: Facts, frames: Frames) -> None:
    """Add what information files tell of a subject to its frames, and flags for what they contradict."""
    for file in files:
        images = frames.images.get(file.path)
        if not images or file.role is None:
            continue
        flags = list(facts.doubts)
        phases = file.scan.grid[1]
        if phases > 1 and any(moment is not None and moment > phases for moment in (facts.ed, facts.es)):
            flags.append("ed_es_beyond_the_phases")
        if phases > FEWEST_PHASES and facts.phases not in (None, phases):
            flags.append("phases_contradicted")
        if facts.slice_mm is not None and not np.isclose(facts.slice_mm, file.scan.lengths[2], rtol=0.02):
            flags.append(SPACING_FLAGS[0])
        if file.role.first_is_ed and phases > 1 and not any(image.moment == "ED" for image in images):
            images = [image if image.frame % phases else replace(image, moment="ED") for image in images]
        frames.images[file.path] = [_with_facts(image, facts, flags) for image in images]


def _with_facts(image: Image, facts: Facts, flags: Sequence[str]) -> Image:
    assert image.reading is not None
    reading = replace(image.reading, flags=(*image.reading.flags, *flags))
    person = facts.person.completed_by(image.person)
    layout = "" if image.declared is None else image.declared.layout
    return replace(image, reading=reading, person=person, of_set=layout)
