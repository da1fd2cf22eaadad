"""Masks drawn over frames, and a sheet of frames of one study."""

import colorsys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.dataset import Windows
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import Study, read_study
from cardiolens.study.structure import even
from cardiolens.study.volume import Volume, read_mask
from cardiolens.study.volume_manifest import VolumeManifest

LABELS_NAME = "labels.json"  # beside the masks: the name of each value
LESION_COLOUR = (255, 40, 40)

Colour = tuple[int, int, int]

_OPACITY = 0.5
_TURN = 0.381966  # colour circle per value (golden ratio): neighbouring values differ clearly


@dataclass(frozen=True, slots=True)
class Overlay:
    """The mask of one volume, and the names of the drawn values."""

    mask: Volume
    names: Mapping[int, str]  # by mask value

    def on(self, pixels_HW: NDArray[np.uint8], idx: int) -> NDArray[np.uint8]:
        """Draw the mask over the displayed frame of a canonical index; uint8, (height, width, 3)."""
        values_HW = self.mask.displayed(self.mask.frames[idx])
        tinted = np.repeat(pixels_HW[:, :, None], 3, axis=2).astype(np.float64)
        for value, name in self.names.items():
            inside = values_HW == value
            tinted[inside] = (1 - _OPACITY) * tinted[inside] + _OPACITY * np.array(colour(value, name))
        return np.rint(tinted).astype(np.uint8)


def read_overlay(study: Study, manifest: VolumeManifest) -> Overlay | None:
    """Read the overlay of one volume; None without a mask.

    If `labels.json` beside the mask names segments, segments and lesions are drawn, else all values but 0.
    """
    if manifest.mask is None:
        return None
    mask = read_mask(study.folder, manifest)
    labels = read_labels((study.folder / manifest.mask.path).with_name(LABELS_NAME))
    return Overlay(mask, visible_values(labels, np.unique(mask.in_file_order).tolist()))


def read_labels(path: Path) -> dict[int, str]:
    """Read the names of mask values; empty if the file does not exist, InputError if unreadable."""
    if not path.exists():
        return {}
    try:
        tree = read_json(path)
        return {int(value): str(name) for value, name in tree.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f'{path}: is not an object like {{"1": "name"}} ({error}); correct it') from None


def visible_values(labels: Mapping[int, str], values: Iterable[int]) -> dict[int, str]:
    """Return the values to draw, with their names."""
    labels_of = {value: labels.get(value, f"value {value:g}") for value in values if value}
    if not any("segment" in name for name in labels.values()):
        return labels_of
    return {value: name for value, name in labels_of.items() if "segment" in name or _is_lesion(name)}


def colour(value: int, name: str) -> Colour:
    """Return the colour of a value: red for lesions, else a distinct hue."""
    if _is_lesion(name):
        return LESION_COLOUR
    red, green, blue = colorsys.hsv_to_rgb(0.1 + value * _TURN % 1 * 0.85, 0.8, 1.0)  # avoids red
    return round(red * 255), round(green * 255), round(blue * 255)


def _is_lesion(name: str) -> bool:
    return "lesion" in name


STATIC_COLUMNS = 6  # for a volume without phases
GAP = 2  # pixels
LABEL_HEIGHT = 12
INK = (230, 230, 230)

LabelledFrame = tuple[str, NDArray[np.uint8]]


def contact_sheet(frames: Sequence[LabelledFrame], columns: int, tile: int) -> Image.Image:
    """Draw frames in order, `columns` per row, in labelled square tiles of `tile` pixels."""
    step_x, step_y = tile + GAP, tile + LABEL_HEIGHT + GAP
    rows = -(-len(frames) // columns)
    sheet = Image.new("RGB", (min(columns, len(frames)) * step_x + GAP, rows * step_y + GAP))
    pen = ImageDraw.Draw(sheet)
    for number, (label, pixels) in enumerate(frames):
        left, top = number % columns * step_x + GAP, number // columns * step_y + GAP
        pen.text((left, top), label, fill=INK)
        picture = ImageOps.contain(Image.fromarray(pixels), (tile, tile), Image.Resampling.BICUBIC)
        sheet.paste(picture, (left, top + LABEL_HEIGHT))
    return sheet


def study_sheet(
    folder: Path, phases: int, windows: Windows, tile: int = 120, *, anatomy: Anatomy | None = None
) -> Image.Image:
    """Draw every volume of a study folder: one row per slice from the base, one column per phase.

    `phases` is the approximate number of phases shown; end-diastole and end-systole of a cycle are among
    them. `anatomy` is that of the protocol, by default the heart's.
    """
    study = read_study(folder, anatomy=anatomy)
    sheets: list[Image.Image] = []
    for manifest, volume in zip(study.manifest.volumes, displayed_volumes(study, windows), strict=True):
        row, n_phases = volume.row, volume.row["n_phases"]
        moments = {row["es_phase"]: "ES", row["ed_phase"]: "ED"} if manifest.over_time == "cycle" else {}
        remarks = dict.fromkeys(even(n_phases, phases), "") | moments
        frames = [
            (f"{manifest.volume_id} s{idx // n_phases} p{phase} {remarks[phase]}", pixels)
            for idx, pixels in enumerate(volume.frames)
            if (phase := idx % n_phases) in remarks
        ]
        sheets.append(contact_sheet(frames, len(remarks) if len(remarks) > 1 else STATIC_COLUMNS, tile))
    stacked = Image.new("RGB", (max(sheet.width for sheet in sheets), sum(sheet.height for sheet in sheets)))
    top = 0
    for sheet in sheets:
        stacked.paste(sheet, (0, top))
        top += sheet.height
    return stacked
