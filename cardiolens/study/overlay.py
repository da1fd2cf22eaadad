"""Draw masks in colour over the frames of a study: segments of the wall, and lesions."""

import colorsys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.study.manifest import Study
from cardiolens.study.volume import Volume, read_volume
from cardiolens.study.volume_manifest import LayoutDeclaration, VolumeManifest

LABELS_NAME = "labels.json"  # beside the masks: the name of each value
LESION_COLOUR = (255, 40, 40)

Colour = tuple[int, int, int]

_OPACITY = 0.5
_TURN = 0.381966  # colour circle per value (golden ratio): neighbouring values differ clearly
_LEGEND_WIDTH, _LEGEND_HEIGHT, _SWATCH = 150, 14, 10  # pixels
_INK = (230, 230, 230)


@dataclass(frozen=True, slots=True)
class Overlay:
    """The mask of one volume, and the names of the drawn values."""

    mask: Volume
    names: Mapping[int, str]  # by mask value

    def on(self, pixels_HW: NDArray[np.uint8], idx: int) -> NDArray[np.uint8]:
        """Draw the mask over the displayed frame of a canonical index; uint8, (height, width, 3)."""
        values_HW = self.mask.displayed(self.mask.stored(idx))
        tinted = np.repeat(pixels_HW[:, :, None], 3, axis=2).astype(np.float64)
        for value in set(np.unique(values_HW).tolist()) & set(self.names):
            inside = values_HW == value
            tint = np.array(colour(value, self.names[value]))
            tinted[inside] = (1 - _OPACITY) * tinted[inside] + _OPACITY * tint
        return np.rint(tinted).astype(np.uint8)


def check_masked(study: Study) -> None:
    """Raise InputError unless some volume of a study has a mask."""
    if not any(volume.mask for volume in study.manifest.volumes):
        raise InputError(
            f"study {study.study_id} has no masks, so no segments can be shown; make a phantom with "
            "masks=true, or leave out segments=true"
        )


def read_overlay(study: Study, manifest: VolumeManifest, volume: Mapping[str, Any]) -> Overlay | None:
    """Read the overlay of one volume; None without a mask. `volume` is the volume's row of `volumes`.

    If `labels.json` beside the mask names segments, segments and lesions are drawn, else all values but 0.
    """
    if manifest.mask is None:
        return None
    layout = manifest.layout
    if manifest.declared_layout() is None:  # the layout was inferred from pixels, which a mask lacks
        layout = LayoutDeclaration(n_slices=volume["n_slices"], n_phases=volume["n_phases"])
    fields: dict[str, object] = {
        "path": manifest.mask.path,
        "sha256": manifest.mask.sha256,
        "mask": None,
        "layout": layout,
    }
    fields |= {"confirmed": ("layout",)}  # the empty end slices of a mask look like a cycle
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
        pen.text((left + _SWATCH + 4, top - 1), name, fill=_INK)
    return strip


def _is_lesion(name: str) -> bool:
    return "lesion" in name
