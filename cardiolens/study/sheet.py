"""Draw contact sheets: the displayed frames of a study, with a selection marked."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from cardiolens.config.dataset import Windows
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.displayed import displayed_volumes
from cardiolens.study.layout import even
from cardiolens.study.manifest import read_study
from cardiolens.study.overlay import Overlay, check_masked, legend, read_overlay

STATIC_COLUMNS = 6  # columns for a volume without phases
GAP = 2  # pixels
LABEL_HEIGHT = 12
MARK = (255, 190, 0)
INK = (230, 230, 230)

Place = tuple[str, int, int]  # volume_id, slice rank, phase


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """One displayed frame, its place, and a remark (ED, ES) for the label or a caption in its stead."""

    place: Place
    pixels_HW: NDArray[np.uint8]  # grey, or (height, width, 3) in colour
    remark: str = ""
    caption: str = ""

    @property
    def label(self) -> str:
        if self.caption:
            return self.caption
        volume_id, rank, phase = self.place
        return f"{volume_id} s{rank} p{phase} {self.remark}"


def contact_sheet(
    frames: Sequence[ShownFrame], marked: Collection[Place] = (), columns: int = 8, tile: int = 120
) -> Image.Image:
    """Draw frames in order, `columns` per row, in labelled square tiles; marked places are boxed.

    `tile` is the side of a tile in pixels.
    """
    step_x, step_y = tile + GAP, tile + LABEL_HEIGHT + GAP
    rows = -(-len(frames) // columns)
    sheet = Image.new("RGB", (min(columns, len(frames)) * step_x + GAP, rows * step_y + GAP))
    pen = ImageDraw.Draw(sheet)
    for number, frame in enumerate(frames):
        left, top = number % columns * step_x + GAP, number // columns * step_y + GAP
        chosen = frame.place in marked
        pen.text((left, top), frame.label, fill=MARK if chosen else INK)
        picture = _fitted(frame.pixels_HW, tile)
        sheet.paste(picture, (left, top + LABEL_HEIGHT))
        if chosen:
            corner = (left + picture.width - 1, top + LABEL_HEIGHT + picture.height - 1)
            pen.rectangle(((left, top + LABEL_HEIGHT), corner), outline=MARK, width=2)
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
    if segments:
        check_masked(study)
    sheets: list[Image.Image] = []
    names: dict[int, str] = {}
    for manifest, volume in zip(study.manifest.volumes, displayed_volumes(study, windows), strict=True):
        frames = list(shown_frames(volume.row, volume.frames, phases, manifest.over_time))
        overlay = read_overlay(study, manifest, volume.row) if segments else None
        if overlay is not None:
            frames = [_under(overlay, frame, volume.row) for frame in frames]
            names |= overlay.names
        n_phases = len({phase for (_, _, phase) in (frame.place for frame in frames)})
        sheets.append(contact_sheet(frames, columns=n_phases if n_phases > 1 else STATIC_COLUMNS, tile=tile))
    if names:
        sheets.append(legend(dict(sorted(names.items())), max(sheet.width for sheet in sheets)))
    return _stacked(sheets)


def _under(overlay: Overlay, frame: ShownFrame, volume: Mapping[str, Any]) -> ShownFrame:
    _, rank, phase = frame.place
    return replace(frame, pixels_HW=overlay.on(frame.pixels_HW, rank * volume["n_phases"] + phase))


def shown_frames(
    volume: Mapping[str, Any], frames: pa.Table, phases: int, over_time: str
) -> Iterator[ShownFrame]:
    """Yield frames of one volume at evenly spread phases; ED and ES phases of a cycle are always among them.

    `volume` is the volume's row of `volumes`; `frames` are the volume's rows of `frames`.
    """
    remarks = {volume["es_phase"]: "ES", volume["ed_phase"]: "ED"} if over_time == "cycle" else {}
    phases_wanted = {*even(volume["n_phases"], phases), *remarks}
    for row in frames.to_pylist():
        if row["phase"] in phases_wanted:
            pixels_HW = np.frombuffer(row["pixels"], np.uint8).reshape(row["height"], row["width"])
            place = (row["volume_id"], row["slice"], row["phase"])
            yield ShownFrame(place, pixels_HW, remarks.get(row["phase"], ""))


def _fitted(pixels_HW: NDArray[np.uint8], tile: int) -> Image.Image:
    height, width = pixels_HW.shape[:2]
    scale = tile / max(height, width)
    size = (max(round(width * scale), 1), max(round(height * scale), 1))
    return Image.fromarray(pixels_HW).resize(size, Image.Resampling.BICUBIC)


def _stacked(sheets: Sequence[Image.Image]) -> Image.Image:
    stacked = Image.new("RGB", (max(sheet.width for sheet in sheets), sum(sheet.height for sheet in sheets)))
    top = 0
    for sheet in sheets:
        stacked.paste(sheet, (0, top))
        top += sheet.height
    return stacked
