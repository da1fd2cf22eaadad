"""Join the files of a study to volumes: copies are rejected, phases in files of their own make one volume."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cardiolens.curation.ingest.axis_order import cycles
from cardiolens.curation.ingest.nifti.exported_files import FEWEST_PHASES, ExportedFile, Frames
from cardiolens.curation.ingest.nifti.frame_record import frame_record, phases_declared
from cardiolens.curation.ingest.nifti.time_in_names import is_one_phase
from cardiolens.curation.ingest.reasons import Reason


def add_study(
    files: Sequence[ExportedFile], moments: Mapping[str, Mapping[str, int]], frames: Frames
) -> None:
    """Add the frames of one study: reject copies, join phases that are separate files."""
    unique: list[ExportedFile] = []
    # moments that names of copies declare, by file and phase
    declared_moments: dict[tuple[str, int], str] = {}
    for file in sorted(files, key=lambda file: (-len(file.scan.digests), file.number)):
        twin = next((candidate for candidate in unique if _is_part(file, candidate)), None)
        if twin is None:
            unique.append(file)
            continue
        if file.name.moment and twin.scan.grid[1] > 1:
            phase = twin.scan.digests.index(file.scan.digests[0]) % twin.scan.grid[1]
            declared_moments[twin.path, phase] = file.name.moment
        frames.rejects.append((file.path, 0, Reason.DUPLICATE, "its frames are in another file"))
    families: dict[tuple[Any, ...], list[ExportedFile]] = defaultdict(list)
    for file in sorted(unique, key=lambda file: file.number):
        families[_family(file)].append(file)
    for family in families.values():
        for part in _parts(family):
            add_images(part, moments.get(part[0].name.folder, {}), declared_moments, frames)


def _is_part(one: ExportedFile, other: ExportedFile) -> bool:
    """Return whether another file holds all frames of a file at the same position."""
    if not set(one.scan.digests) <= set(other.scan.digests):
        return False
    first, second = one.scan.affine, other.scan.affine
    if first is None or second is None:
        return first is second
    along = np.cross(first[:3, 0], first[:3, 1])
    return bool(np.allclose(first[:3, :2], second[:3, :2], atol=1e-3)) and bool(along.any())


def _family(file: ExportedFile) -> tuple[Any, ...]:
    """Return the key that single-phase files of one volume share; other files get a unique key."""
    alone = file.scan.grid[1] > 1 or not is_one_phase(file.name)
    affine = () if file.scan.affine is None else tuple(np.round(file.scan.affine, 3).ravel())
    return (file.path,) if alone else (file.name.folder, file.name.base, file.scan.grid, affine)


def _parts(family: Sequence[ExportedFile]) -> list[list[ExportedFile]]:
    """Return the family as one part, sorted by phase, if no phase repeats; else one part per file."""
    keys = [_order(file) for file in family]
    if len(set(keys)) == len(keys):
        return [[file for _, file in sorted(zip(keys, family, strict=True), key=lambda pair: pair[0])]]
    return [[file] for file in family]


def _order(file: ExportedFile) -> tuple[int, int]:
    moments = {"ED": 0, "": 1, "ES": 2}
    return (0 if file.name.phase is None else file.name.phase, moments[file.name.moment])


def add_images(
    part: Sequence[ExportedFile],
    declared: Mapping[str, int],
    declared_moments: Mapping[tuple[str, int], str],
    frames: Frames,
) -> None:
    """Add the frames of one file, or of files with one phase each."""
    first = part[0]
    joined = len(part) > 1
    cyclic = _cycles(part) if joined else first.scan.axes.cyclic
    n_phases = len(part) if joined else first.scan.grid[1]
    series = f"{first.name.folder}/{first.name.base}" if joined else first.path
    numbers = [file.name.phase for file in part if file.name.phase is not None]
    is_short = len(numbers) >= FEWEST_PHASES and max(numbers) - min(numbers) >= len(part)
    is_short |= FEWEST_PHASES <= n_phases < phases_declared(first.sidecar)
    for rank, file in enumerate(part):
        n_slices, own, _, _ = file.scan.grid
        images = []
        for index in range(n_slices * own):
            slice_number, within = divmod(index, own)
            phase = rank if joined else within
            number = file.name.phase if joined else phase + 1
            moment = (
                file.name.moment if joined or n_phases == 1 else declared_moments.get((file.path, phase), "")
            )
            moment = next((name for name, at in declared.items() if at == number and n_phases > 1), moment)
            at = (slice_number, phase, n_phases)
            images.append(frame_record(file, series, index, at, moment, cyclic=cyclic, is_short=is_short))
        frames.images[file.path] = images


def _cycles(part: Sequence[ExportedFile]) -> bool:
    """Return whether single-phase files form a cycle: few always do, many must end as they began."""
    if len(part) < FEWEST_PHASES:
        return True
    return cycles([file.scan.middle for file in part if file.scan.middle is not None])
