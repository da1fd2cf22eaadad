"""Prepare a group of studies into one part of the shards: their frames as displayed to models."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from cardiolens.base import stage_versions
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.storage import schemas, tables
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.blood_pool import cycle_of, size_doubts, with_cycle
from cardiolens.study.cohort import Cohort, StudyRecord, read_cohort, state_of
from cardiolens.study.manifest import Study, read_study, shown_name
from cardiolens.study.orientation import StudyOrientation
from cardiolens.study.shards import PartWriter, part_writer, pixel_digest
from cardiolens.study.structure import small
from cardiolens.study.times import FirstPass, central_mean, first_pass, heart_curve
from cardiolens.study.volume import Volume, naming_file, read_volume
from cardiolens.study.volume_manifest import VolumeManifest
from cardiolens.study.windowing import GreyScale, grey_scale

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class DisplayedVolume:
    """A volume: its row of `volumes` (without part and row group) and its rows of `frames`."""

    row: Row
    frames: pa.Table
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
        warnings = [*orientation.doubts(manifest), *size_doubts(manifest, cycle)]
        manifest, *findings = with_cycle(manifest, cycle)
        volume = read_volume(study.folder, manifest)
        window_pct = windows.of(manifest.sequence, manifest.volume_id)
        with naming_file(manifest.path):
            scale = grey_scale(volume.in_file_order, window_pct, volume.slope, volume.inter, manifest.window)
        passage, place = _passage(volume)
        if passage is not None and place:
            findings.append(
                f"{manifest.volume_id}: t_on is {passage.t_on} and t_peak {passage.t_peak}, {place}"
            )
        if passage is not None and not passage.bolus_found:
            times = f"t_on {passage.t_on}, t_peak {passage.t_peak} by default"
            warnings.append(f"{manifest.volume_id}: no_bolus_found: {times}")
        return DisplayedVolume(
            row=_volume_row(study, volume, scale, passage),
            frames=_frames(study.study_id, volume, scale),
            n_bytes=volume.n_bytes,
            warnings=tuple(warnings),
            found=tuple(filter(None, findings)),
        )

    return display


def _passage(volume: Volume) -> tuple[FirstPass | None, str]:
    """Return the first pass of a perfusion series and where it was found; "" if it was declared."""
    manifest = volume.manifest
    if manifest.over_time != "first_pass":
        return None, ""
    if manifest.t_on is not None and manifest.t_peak is not None:
        return FirstPass(manifest.t_on, manifest.t_peak, bolus_found=True), ""
    n_phases = volume.layout.n_phases
    frames = [volume.stored(idx) for idx in range(volume.layout.n_frames)]
    shrunk = [small(frame) * volume.slope for frame in frames]
    curve = heart_curve([shrunk[at : at + n_phases] for at in range(0, len(shrunk), n_phases)])
    if curve is not None:
        return first_pass(curve), "measured in the heart, where most contrast washes in and out"
    means = [central_mean(volume.displayed(frame)) * volume.slope for frame in frames]
    curve = [statistics.fmean(means[phase::n_phases]) for phase in range(n_phases)]
    return first_pass(curve), "measured in the middle of the frames: contrast washes in and out nowhere"


def _volume_row(study: Study, volume: Volume, scale: GreyScale, passage: FirstPass | None) -> Row:
    manifest, owner = volume.manifest, study.manifest
    timing = manifest.timing(volume.layout)
    height, width = volume.displayed_shape
    return {
        "study_id": owner.study_id,
        "patient_id": owner.patient_id,
        "cohort": list(owner.cohort),
        "species": owner.species,
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
    """Return the rows of `frames` in canonical order."""
    height, width = volume.displayed_shape
    rows: list[Row] = []
    for idx in range(volume.layout.n_frames):
        rank, phase = divmod(idx, volume.layout.n_phases)
        pixels = volume.displayed(scale.show(volume.stored(idx))).tobytes()
        rows.append(
            {
                **{"study_id": study_id, "volume_id": volume.manifest.volume_id},
                **{"idx": idx, "slice": rank, "phase": phase},
                **{"height": height, "width": width, "channels": 1},
                "pixels": pixels,
                "digest": pixel_digest(pixels, height, width, 1),
            }
        )
    return tables.from_rows(rows, schemas.FRAMES)


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
        findings: list[str] = []
        n_bytes = 0
        for volume in displayed_volumes(study, windows):
            writer.add(volume.row, volume.frames)
            warnings += volume.warnings
            findings += volume.found
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
        found=tuple(findings),
    )
    return Outcome(name, record, n_bytes=n_bytes)
