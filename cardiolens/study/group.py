"""Prepare a group of studies into one part of the shards: their frames as displayed to models."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.blood_pool import cycle_of, size_doubts, with_cycle
from cardiolens.study.cohort import StudyRecord, state_of
from cardiolens.study.manifest import Study, read_study, shown_name
from cardiolens.study.orientation import StudyOrientation
from cardiolens.study.shards import PartWriter, frames_table, part_writer
from cardiolens.study.times import FirstPass, central_mean, first_pass, heart_curve
from cardiolens.study.volume import Volume, naming_file, read_volume, small
from cardiolens.study.volume_manifest import VolumeManifest
from cardiolens.study.windowing import GreyScale, grey_scale

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DisplayedVolume:
    """A volume: its row of `volumes` (without part and row group), and its frames as displayed."""

    row: Row
    frames: NDArray[np.uint8]  # (frame, row, column), in canonical order
    n_bytes: int  # read from disk
    warnings: tuple[str, ...]
    found: tuple[str, ...]  # facts that the manifest left open, derived from pixels, in words


def displayed_volumes(study: Study, windows: Windows) -> Iterator[DisplayedVolume]:
    """Yield the volumes of a study, one in memory at a time; InputError names the file."""
    return map(_display_of(study, windows), study.manifest.volumes)


def refused_volumes(study: Study, windows: Windows) -> dict[str, str]:
    """Return the volumes of a study that cannot be displayed, each with the reason."""
    display = _display_of(study, windows)
    refused: dict[str, str] = {}
    for manifest in study.manifest.volumes:
        try:
            display(manifest)
        except InputError as error:
            refused[manifest.volume_id] = str(error)
    return refused


def _display_of(study: Study, windows: Windows) -> Callable[[VolumeManifest], DisplayedVolume]:
    """Return the function that displays a volume of a study, by what its volumes show together."""
    orientation, cycle = StudyOrientation(study), cycle_of(study)

    def display(manifest: VolumeManifest) -> DisplayedVolume:
        name = manifest.volume_id
        warnings = [*orientation.doubts(manifest), *size_doubts(manifest, cycle)]
        manifest, *findings = with_cycle(manifest, cycle)
        volume = read_volume(study.folder, manifest)
        scale = scale_of(volume, windows)
        frames = np.stack([volume.displayed(scale.show(frame)) for frame in volume.frames])
        row = _volume_row(study, volume, scale, frames)
        if manifest.over_time == "first_pass" and manifest.t_on is None:
            passage, place = _passage(volume)
            row |= {"t_on": passage.t_on, "t_peak": passage.t_peak}
            findings.append(f"{name}: t_on is {passage.t_on} and t_peak {passage.t_peak}, {place}")
            if not passage.bolus_found:
                by_default = f"t_on {passage.t_on}, t_peak {passage.t_peak} by default"
                warnings.append(f"{name}: no_bolus_found: {by_default}")
        return DisplayedVolume(
            row=row,
            frames=frames,
            n_bytes=volume.n_bytes,
            warnings=tuple(warnings),
            found=tuple(filter(None, findings)),
        )

    return display


def scale_of(volume: Volume, windows: Windows) -> GreyScale:
    """Return the grey scale in which a volume is displayed; InputError names the file."""
    manifest = volume.manifest
    window_pct = windows.of(manifest.sequence, manifest.volume_id)
    with naming_file(manifest.path):
        return grey_scale(volume.in_file_order, window_pct, volume.slope, volume.inter, manifest.window)


def _passage(volume: Volume) -> tuple[FirstPass, str]:
    """Return the first pass of a perfusion series, and where it was measured."""
    n_phases = volume.grid.shape[1]
    curve = heart_curve([[small(frame) * volume.slope for frame in phases] for phases in volume.grid])
    if curve is not None:
        return first_pass(curve), "measured in the heart, where most contrast washes in and out"
    means = [central_mean(volume.displayed(frame)) * volume.slope for frame in volume.frames]
    curve = [statistics.fmean(means[phase::n_phases]) for phase in range(n_phases)]
    return first_pass(curve), "measured in the middle of the frames: contrast washes in and out nowhere"


def _volume_row(study: Study, volume: Volume, scale: GreyScale, frames: NDArray[np.uint8]) -> Row:
    manifest, owner = volume.manifest, study.manifest
    n_slices, n_phases = volume.grid.shape[:2]
    _, height, width = frames.shape
    return {
        "study_id": owner.study_id,
        "patient_id": owner.patient_id,
        "cohort": list(owner.cohort),
        "species": owner.species,
        "volume_id": manifest.volume_id,
        "sequence": manifest.sequence,
        "view": manifest.view,
        "n_slices": n_slices,
        "n_phases": n_phases,
        "height": height,
        "width": width,
        "spacing_mm": list(manifest.spacing_mm),
        "spatial_order": manifest.known_order,
        **manifest.timing()._asdict(),
        "t_on": manifest.t_on,
        "t_peak": manifest.t_peak,
        "window_low": scale.low,
        "window_high": scale.high,
        "source_sha256": volume.sha256,
    }


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one study: a record if the study is in the shards, else an error."""

    name: str  # study_id, or the folder's name if the manifest is unreadable
    record: StudyRecord | None = None
    error: str = ""
    n_bytes: int = 0  # read from disk


def prepare_group(
    store: Path,
    part: str,
    folders: Sequence[Path],
    windows: Windows,
    *,
    roots: Sequence[Path] = (),
    anatomy: Anatomy | None = None,
) -> list[Outcome]:
    """Prepare studies one after the other into one part.

    `roots` are folders that symbolic links of studies may lead into; `anatomy` is that of the protocol, by
    default the heart's.
    """
    with part_writer(store, part) as writer:
        return [_attempt(writer, folder, windows, roots, anatomy) for folder in folders]


def _attempt(
    writer: PartWriter, folder: Path, windows: Windows, roots: Sequence[Path], anatomy: Anatomy | None
) -> Outcome:
    name, n_bytes = shown_name(folder), 0
    rows, warnings, findings = list[Row](), list[str](), list[str]()
    try:
        study = read_study(folder, roots, anatomy)
        name, state = study.study_id, state_of(study)  # the next run notices a change during reading
        for volume in displayed_volumes(study, windows):
            rows.append(writer.write(volume.row, frames_table(volume.row, volume.frames)))
            warnings += volume.warnings
            findings += volume.found
            n_bytes += volume.n_bytes
    except InputError as error:
        return Outcome(name, error=str(error))
    writer.rows += rows
    record = StudyRecord(
        part=writer.part,
        state=state,
        subgroups=study.manifest.subgroups,
        warnings=tuple(warnings),
        found=tuple(findings),
    )
    return Outcome(name, record, n_bytes=n_bytes)
