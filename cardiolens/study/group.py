"""Prepare a group of studies into one part of the shards: their frames as displayed to models."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from cardiolens.base import stage_versions
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.storage import schemas
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.blood_pool import cycle_of, size_doubts, with_cycle
from cardiolens.study.cohort import Cohort, StudyRecord, read_cohort, state_of
from cardiolens.study.manifest import Study, read_study, shown_name
from cardiolens.study.orientation import StudyOrientation
from cardiolens.study.shards import PartWriter, part_writer, pixel_digest
from cardiolens.study.structure import small
from cardiolens.study.times import FirstPass, central_mean, first_pass, heart_curve
from cardiolens.study.volume import Volume, read_volume
from cardiolens.study.volume_manifest import VolumeManifest
from cardiolens.study.windowing import GreyScale, grey_scale

VolumeRow = dict[str, object]


@dataclass(frozen=True, slots=True)
class DisplayedVolume:
    """A volume: its row of `volumes` (without part and row group) and its rows of `frames`."""

    row: VolumeRow
    frames: pa.Table
    n_bytes: int  # read from disk
    warnings: tuple[str, ...]
    found: tuple[str, ...]  # facts that the manifest left open, derived from pixels, in words


def displayed_volumes(study: Study, windows: Windows) -> Iterator[DisplayedVolume]:
    """Yield the volumes of a study, one in memory at a time; InputError names the file."""
    display = _display_of(study, windows)
    return (display(manifest) for manifest in study.manifest.volumes)


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
        warnings = [*orientation.doubts(manifest), *size_doubts(manifest, cycle)]
        volume = read_volume(study.folder, manifest)
        timed, finding = with_cycle(manifest, volume.layout.n_phases, cycle)
        volume = replace(volume, manifest=timed)
        window_pct = windows.of(manifest.sequence, manifest.volume_id)
        try:
            scale = grey_scale(volume.in_file_order, window_pct, volume.slope, volume.inter, manifest.window)
        except InputError as error:
            raise InputError(f"{manifest.path}: {error}") from None
        passage, place = _passage(volume)
        found = [finding] if finding else []
        if passage is not None:
            on, peak = passage.t_on, passage.t_peak
            found += [f"{manifest.volume_id}: t_on is {on} and t_peak {peak}, {place}"] if place else []
            if not passage.bolus_found:
                warnings.append(f"{manifest.volume_id}: no_bolus_found: t_on {on}, t_peak {peak} by default")
        return DisplayedVolume(
            row=_volume_row(study, volume, scale, passage),
            frames=_frames(study.study_id, volume, scale),
            n_bytes=volume.n_bytes,
            warnings=tuple(warnings),
            found=tuple(found),
        )

    return display


def _passage(volume: Volume) -> tuple[FirstPass | None, str]:
    """Return the first pass of a perfusion series and where it was found; "" if it was declared."""
    manifest = volume.manifest
    if manifest.over_time != "first_pass":
        return None, ""
    if manifest.t_on is not None and manifest.t_peak is not None:
        return FirstPass(manifest.t_on, manifest.t_peak, bolus_found=True), ""
    slices, phases = range(volume.layout.n_slices), range(volume.layout.n_phases)
    series = [[volume.stored(s * len(phases) + p) for p in phases] for s in slices]
    curve = heart_curve([[small(frame) * volume.slope for frame in beats] for beats in series])
    place = "measured in the heart, where most contrast washes in and out"
    if curve is None:
        curve = [
            statistics.fmean(
                central_mean(volume.displayed(of_slice[p])) * volume.slope for of_slice in series
            )
            for p in phases
        ]
        place = "measured in the middle of the frames: contrast washes in and out nowhere"
    return first_pass(curve), place


def _volume_row(study: Study, volume: Volume, scale: GreyScale, passage: FirstPass | None) -> VolumeRow:
    manifest, about = volume.manifest, study.manifest
    timing = manifest.timing(volume.layout)
    height, width = volume.displayed_shape
    return {
        "study_id": about.study_id,
        "patient_id": about.patient_id,
        "cohort": list(about.cohort),
        "species": about.species,
        "volume_id": manifest.volume_id,
        "sequence": manifest.sequence,
        "view": manifest.view,
        "n_slices": volume.layout.n_slices,
        "n_phases": volume.layout.n_phases,
        "height": height,
        "width": width,
        "spacing_mm": list(manifest.spacing_mm),
        "spatial_order": manifest.known_order,
        "key_layers": list(timing.key_layers),
        "ed_phase": timing.ed_phase,
        "es_phase": timing.es_phase,
        "t_on": None if passage is None else passage.t_on,
        "t_peak": None if passage is None else passage.t_peak,
        "window_low": scale.low,
        "window_high": scale.high,
        "source_sha256": volume.sha256,
    }


def _frames(study_id: str, volume: Volume, scale: GreyScale) -> pa.Table:
    """Return the rows of `frames` in canonical order; all pixels, (frame, H, W), share one buffer."""
    n, (height, width) = volume.layout.n_frames, volume.displayed_shape
    pixels_FHW = np.empty((n, height, width), np.uint8)
    for idx in range(n):
        pixels_FHW[idx] = volume.displayed(scale.show(volume.stored(idx)))
    indices = np.arange(n, dtype=np.int32)
    columns = {
        "study_id": pa.repeat(study_id, n),
        "volume_id": pa.repeat(volume.manifest.volume_id, n),
        "idx": indices,
        "slice": indices // volume.layout.n_phases,
        "phase": indices % volume.layout.n_phases,
        "height": np.full(n, height, np.int32),
        "width": np.full(n, width, np.int32),
        "channels": np.ones(n, np.int32),
        "pixels": _binary(pixels_FHW),
        "digest": [pixel_digest(frame.data, height, width, 1) for frame in pixels_FHW],
    }
    return pa.table(columns, schema=schemas.FRAMES)


def _binary(pixels_FHW: np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]) -> pa.Array:
    """Return frames as an Arrow binary column without copying."""
    n, height, width = pixels_FHW.shape
    if pixels_FHW.size > np.iinfo(np.int32).max:
        raise InputError(
            f"{n} frames of {height} x {width} pixels; expected less than 2 GiB per volume; split the volume"
        )
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(height * width)
    return pa.Array.from_buffers(pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(pixels_FHW)])


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


def current_cohort(store: Path, windows: Windows, anatomy: Anatomy | None = None) -> Cohort:
    """Read the cohort of a store; empty if there is none, or if windows, version or anatomy differ."""
    cohort = read_cohort(store)
    new = Cohort(
        version=stage_versions.PREPARED,
        window_pct=windows.pct,
        windows=windows.by_name,
        studies={},
        failed={},
        anatomy=None if anatomy == heart() else anatomy,
    )
    facts = [(each.display, each.version, each.anatomy) for each in (cohort, new) if each is not None]
    return cohort if cohort is not None and facts[0] == facts[1] else new


def _attempt(
    writer: PartWriter, folder: Path, windows: Windows, roots: Sequence[Path], anatomy: Anatomy | None
) -> Outcome:
    name = shown_name(folder)
    try:
        study = read_study(folder, roots, anatomy)
        name, state = study.study_id, state_of(study)  # the next run notices a change during reading
        warnings: list[str] = []
        found: list[str] = []
        n_bytes = 0
        for volume in displayed_volumes(study, windows):
            writer.add(volume.row, volume.frames)
            warnings += volume.warnings
            found += volume.found
            n_bytes += volume.n_bytes
        writer.end_study(keep=True)
    except InputError as error:
        writer.end_study(keep=False)
        return Outcome(name, error=str(error))
    record = StudyRecord(
        part=writer.part,
        state=state,
        subgroups=study.manifest.subgroups,
        warnings=tuple(warnings),
        found=tuple(found),
    )
    return Outcome(name, record, n_bytes=n_bytes)


def by_pixels(studies: Sequence[Study], target: int) -> Iterator[list[Study]]:
    """Split studies, in order, into groups of at most `target` pixels and at least one study."""
    group: list[Study] = []
    filled = 0
    for study in studies:
        n_pixels = study.n_pixels
        if group and filled + n_pixels > target:
            yield group
            group, filled = [], 0
        group.append(study)
        filled += n_pixels
    if group:
        yield group
