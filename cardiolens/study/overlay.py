"""Masks drawn over frames, and a sheet of frames of one study."""

import colorsys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.dataset import Windows
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import Study, read_study
from cardiolens.study.shards import shaped
from cardiolens.study.structure import even
from cardiolens.study.volume import Volume, read_volume
from cardiolens.study.volume_manifest import VolumeManifest

LABELS_NAME = "labels.json"  # beside the masks: the name of each value
LESION_COLOUR = (255, 40, 40)

Colour = tuple[int, int, int]

_OPACITY = 0.5
_TURN = 0.381966  # colour circle per value (golden ratio): neighbouring values differ clearly
_LEGEND_WIDTH, _LEGEND_HEIGHT, _SWATCH = 150, 14, 10  # pixels


@dataclass(frozen=True, slots=True)
class Overlay:
    """The mask of one volume, and the names of the drawn values."""

    mask: Volume
    names: Mapping[int, str]  # by mask value

    def on(self, pixels_HW: NDArray[np.uint8], idx: int) -> NDArray[np.uint8]:
        """Draw the mask over the displayed frame of a canonical index; uint8, (height, width, 3)."""
        values_HW = self.mask.displayed(self.mask.stored(idx))
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
    fields = {
        **{"path": manifest.mask.path, "sha256": manifest.mask.sha256, "mask": None},
        "confirmed": ("layout",),  # the empty end slices of a mask look like a cycle
    }
    mask = read_volume(study.folder, manifest.model_copy(update=fields))
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
    labels_of = {value: labels.get(value, f"value {value}") for value in values if value}
    if not any("segment" in name for name in labels.values()):
        return labels_of
    return {value: name for value, name in labels_of.items() if "segment" in name or _is_lesion(name)}


def colour(value: int, name: str) -> Colour:
    """Return the colour of a value: red for lesions, else a distinct hue."""
    if _is_lesion(name):
        return LESION_COLOUR
    red, green, blue = colorsys.hsv_to_rgb(0.1 + value * _TURN % 1 * 0.85, 0.8, 1.0)  # avoids red
    return round(red * 255), round(green * 255), round(blue * 255)


def legend(names: Mapping[int, str], width: int) -> Image.Image:
    """Draw swatches with names, as many per row as fit; lesions share one swatch."""
    entries = {colour(value, name): "lesion" if _is_lesion(name) else name for value, name in names.items()}
    columns = max(width // _LEGEND_WIDTH, 1)
    strip = Image.new("RGB", (width, -(-len(entries) // columns) * _LEGEND_HEIGHT))
    pen = ImageDraw.Draw(strip)
    for number, (tint, name) in enumerate(entries.items()):
        left, top = number % columns * _LEGEND_WIDTH + 2, number // columns * _LEGEND_HEIGHT + 2
        pen.rectangle(((left, top), (left + _SWATCH, top + _SWATCH)), fill=tint)
        pen.text((left + _SWATCH + 4, top - 1), name, fill=INK)
    return strip


def _is_lesion(name: str) -> bool:
    return "lesion" in name


STATIC_COLUMNS = 6  # for a volume without phases
GAP = 2  # pixels
LABEL_HEIGHT = 12
INK = (230, 230, 230)

LabelledFrame = tuple[str, NDArray[np.uint8]]  # the pixels are grey, or (height, width, 3) in colour


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
    folder: Path,
    phases: int,
    windows: Windows,
    tile: int = 120,
    *,
    segments: bool = False,
    anatomy: Anatomy | None = None,
) -> Image.Image:
    """Draw every volume of a study folder: one row per slice from the base, one column per phase.

    `phases` is the approximate number of phases shown. `segments` draws masks in colour, with a legend;
    InputError if the study has no masks. `anatomy` is that of the protocol, by default the heart's.
    """
    study = read_study(folder, anatomy=anatomy)
    if segments and not any(volume.mask for volume in study.manifest.volumes):
        raise InputError(
            f"study {study.study_id} has no masks, so no segments can be shown; make a phantom with "
            "masks=true, or leave out segments=true"
        )
    sheets: list[Image.Image] = []
    names: dict[int, str] = {}
    for manifest, volume in zip(study.manifest.volumes, displayed_volumes(study, windows), strict=True):
        overlay = read_overlay(study, manifest) if segments else None
        names |= {} if overlay is None else overlay.names
        remarks = _remarks_by_phase(volume.row, phases, manifest.over_time)
        frames = list(_labelled_frames(volume.frames, remarks, overlay))
        sheets.append(contact_sheet(frames, len(remarks) if len(remarks) > 1 else STATIC_COLUMNS, tile))
    if names:
        sheets.append(legend(dict(sorted(names.items())), max(sheet.width for sheet in sheets)))
    return _stacked(sheets)


def _remarks_by_phase(volume: Mapping[str, Any], phases: int, over_time: str) -> dict[int, str]:
    """Return evenly spread phases with a remark; ED and ES of a cycle are always among them."""
    moments = {volume["es_phase"]: "ES", volume["ed_phase"]: "ED"} if over_time == "cycle" else {}
    return dict.fromkeys(even(volume["n_phases"], phases), "") | moments


def _labelled_frames(
    frames: pa.Table, remarks: Mapping[int, str], overlay: Overlay | None
) -> Iterator[LabelledFrame]:
    """Yield the frames at the phases with a remark, from rows of `frames` of one volume."""
    for row in frames.to_pylist():
        if row["phase"] in remarks:
            pixels = shaped(row["pixels"], row["height"], row["width"], row["channels"])
            label = f"{row['volume_id']} s{row['slice']} p{row['phase']} {remarks[row['phase']]}"
            yield label, pixels if overlay is None else overlay.on(pixels, row["idx"])


def _stacked(sheets: Sequence[Image.Image]) -> Image.Image:
    stacked = Image.new("RGB", (max(sheet.width for sheet in sheets), sum(sheet.height for sheet in sheets)))
    top = 0
    for sheet in sheets:
        stacked.paste(sheet, (0, top))
        top += sheet.height
    return stacked
