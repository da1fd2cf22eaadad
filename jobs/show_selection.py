"""Show the frames that selectors choose from one study: one picture per subtask, or JSON Lines (format=json).

    python jobs/show_selection.py study=path/to/folder subtask=[C06,L02] selector=[clinical] budget=[8,16]

`study` is a study folder, or the name of a folder in the dataset's `studies`. Pictures go to the folder
`out`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Literal

from PIL import Image, ImageColor, ImageDraw, ImageFont

from cardiolens.base.errors import InputError
from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import SWEEP_OPTIONS
from cardiolens.config.compose import read_spec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.feature_store import LookedAt, Pixels, look_at
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.anatomy import anatomy_of
from cardiolens.study.manifest import MANIFEST_NAME, Study, read_study
from cardiolens.study.structure import StudyStructure, VolumeStructure


class Words(Spec):
    """Words of the script, beside those of a sweep."""

    study: str  # the folder of the study, or the name of a folder in the dataset's `studies`
    format: Literal["picture", "json"] = "picture"
    out: GivenPath = Path("outputs/selection")  # of pictures


_WIDTH = 1200
_MARGIN = 12
_INSTEAD = "substituted:"
_CELL = 8
_THUMB = 60
_LINE = 16
_GREYS = 24  # grey levels of the palette; few, for small files
_PAPER, _INK, _GRID, _ED = "#ffffff", "#202020", "#d8d8d8", "#9a9a9a"
_STEPS = ("#1b6ca8", "#d1495b", "#edae49", "#66a182")  # by the step of the rule that chose the frame


@dataclass(frozen=True, slots=True)
class Panel:
    """One titled selection."""

    title: str
    selection: Selection


def picture(structure: StudyStructure, panels: Sequence[Panel], pixels: Pixels) -> Image.Image:
    """Draw panels below each other: grids of the volumes that any panel shows, then the chosen frames."""
    volume_ids = {frame.volume_id for panel in panels for frame in panel.selection.frames}
    listed = next(iter(structure.volumes.values())).anatomy.volume_ids
    volumes = [structure.volumes[name] for name in listed if name in volume_ids]
    heights = [_panel_height(panel, volumes) for panel in panels]
    image = Image.new("RGB", (_WIDTH, sum(heights) + _MARGIN), _PAPER)
    draw = ImageDraw.Draw(image)
    top = _MARGIN
    for panel, height in zip(panels, heights, strict=True):
        _text(draw, _MARGIN, top, f"{panel.title}: {_summary(panel.selection)}", size=15)
        below = _draw_grids(draw, top + _LINE + 6, volumes, panel.selection.frames)
        _draw_frames(image, draw, below, panel.selection.frames, pixels)
        top += height
    return image.quantize(palette=_palette(), dither=Image.Dither.NONE)


def _palette() -> Image.Image:
    greys = [round(255 * grey / (_GREYS - 1)) for grey in range(_GREYS) for _ in "rgb"]
    colours = [part for colour in (*_STEPS, _GRID, _ED, _INK) for part in ImageColor.getrgb(colour)]
    palette = Image.new("P", (1, 1))
    palette.putpalette(greys + colours)
    return palette


def _summary(selection: Selection) -> str:
    if selection.skipped is not None:
        return f"skipped: {selection.skipped}"
    return ", ".join([f"{len(selection.frames)} frames", *selection.flags])


def _rows_of_grids(volumes: Sequence[VolumeStructure]) -> list[list[VolumeStructure]]:
    """Group volumes into rows that fit the width."""
    rows: list[list[VolumeStructure]] = [[]]
    for volume in volumes:
        if rows[-1] and sum(map(_grid_width, [*rows[-1], volume])) > _WIDTH - 2 * _MARGIN:
            rows.append([])
        rows[-1].append(volume)
    return rows


def _grid_width(volume: VolumeStructure) -> int:
    return max(volume.n_phases * _CELL, 110) + 2 * _MARGIN


def _row_height(row: Iterable[VolumeStructure]) -> int:
    return _LINE + max((volume.n_slices * _CELL for volume in row), default=0) + _MARGIN


def _panel_height(panel: Panel, volumes: Sequence[VolumeStructure]) -> int:
    lines = -(-len(panel.selection.frames) // _per_line())
    grids = sum(map(_row_height, _rows_of_grids(volumes)))
    return _LINE + 6 + grids + lines * (_THUMB + _LINE) + 2 * _MARGIN


def _per_line() -> int:
    return (_WIDTH - 2 * _MARGIN) // (_THUMB + 4)


def _draw_grids(
    draw: ImageDraw.ImageDraw, top: int, volumes: Sequence[VolumeStructure], frames: Sequence[Frame]
) -> int:
    for row in _rows_of_grids(volumes):
        left = _MARGIN
        for volume in row:
            _text(draw, left, top, f"{volume.volume_id}  {volume.n_slices} x {volume.n_phases}")
            _draw_grid(draw, (left, top + _LINE), volume, frames)
            left += _grid_width(volume)
        top += _row_height(row)
    return top


def _draw_grid(
    draw: ImageDraw.ImageDraw, corner: tuple[int, int], volume: VolumeStructure, frames: Iterable[Frame]
) -> None:
    """Draw slices down, first slice first; phases across, ED outlined darker."""
    steps = {frame.idx: frame.step for frame in frames if frame.volume_id == volume.volume_id}
    for idx in range(volume.n_frames):
        rank, phase = divmod(idx, volume.n_phases)
        x, y = corner[0] + phase * _CELL, corner[1] + rank * _CELL
        fill = _STEPS[(steps[idx] - 1) % len(_STEPS)] if idx in steps else _PAPER
        outline = _ED if volume.over_time == "cycle" and phase == volume.ed_phase else _GRID
        draw.rectangle((x, y, x + _CELL - 1, y + _CELL - 1), fill=fill, outline=outline)


def _draw_frames(
    image: Image.Image, draw: ImageDraw.ImageDraw, top: int, frames: Sequence[Frame], pixels: Pixels
) -> None:
    for place, frame in enumerate(frames):
        line, column = divmod(place, _per_line())
        x, y = _MARGIN + column * (_THUMB + 4), top + line * (_THUMB + _LINE)
        shown = Image.fromarray(pixels[frame.volume_id][frame.idx])
        shown.thumbnail((_THUMB, _THUMB), Image.Resampling.BICUBIC)
        image.paste(shown, (x, y))
        view = frame.volume_id.partition("_")[2]
        _text(draw, x, y + _THUMB, f"{place + 1}. {view} {frame.slice}/{frame.phase}", size=11)


def _text(draw: ImageDraw.ImageDraw, x: int, y: int, text: str, size: int = 12) -> None:
    draw.text((x, y), text, fill=_INK, font=ImageFont.load_default(size))


@dataclass(frozen=True, slots=True)
class ShownSelection:
    """One selection with its subtask, selector and budget."""

    study_id: str
    subtask: str
    selector: SelectorSpec
    seed: int | None
    budget: int
    selection: Selection

    @property
    def title(self) -> str:
        seed = "" if self.seed is None else f"@{self.seed}"
        return f"{self.selector.name}{seed}, {self.budget}"

    def record(self) -> dict[str, object]:
        """The `selection-1` record, with the reason if skipped."""
        flags, skipped = self.selection.flags, self.selection.skipped
        lines = (f"{f.volume_id}|{f.idx}" for f in self.selection.frames)
        fields = {
            "schema": "selection-1",
            "study_id": self.study_id,
            "subtask": self.subtask,
            "selector": self.selector.name,
            "K": self.budget,
            "seed": self.seed,
            "frames": [
                {"volume": f.volume_id, "idx": f.idx, "slice": f.slice, "phase": f.phase, "step": f.step}
                for f in self.selection.frames
            ],
            "short": "short" in flags,
            "degraded": "degraded" in flags,
            "substituted": [flag.removeprefix(_INSTEAD) for flag in flags if flag.startswith(_INSTEAD)],
            "no_temporal_evidence": "no_temporal_evidence" in flags,
            "sha256": sha256("\n".join(lines).encode()).hexdigest(),
        }
        return fields if skipped is None else {**fields, "skipped": skipped}


def find_study(name: str, spec: SweepSpec) -> Study:
    """Read a study by its folder path, or by folder name in the dataset's `studies`."""
    folders = [Path(name), spec.dataset.studies / name]
    for folder in folders:
        if name and (folder / MANIFEST_NAME).is_file():
            return read_study(folder, spec.dataset.roots, anatomy_of(spec.dataset.protocol))
    places = " nor in ".join(str(folder) for folder in folders)
    raise InputError(f"study {name!r}: no {MANIFEST_NAME} in {places}; give the path of a study folder")


def records(study: Study, spec: SweepSpec) -> Iterator[dict[str, object]]:
    """Return one record per subtask, selector and budget."""
    seen = look_at(study, study.anatomy.windows(spec.dataset.display))
    return (panel.record() for panel in _shown(seen, spec))


def draw(study: Study, spec: SweepSpec, folder: Path) -> list[Path]:
    """Write one picture per subtask, `<study>-<subtask>.png`."""
    study_view = look_at(study, study.anatomy.windows(spec.dataset.display))
    panels: dict[str, list[Panel]] = {}
    for panel in _shown(study_view, spec):
        panels.setdefault(panel.subtask, []).append(Panel(panel.title, panel.selection))
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{study.study_id}-{subtask}.png" for subtask in panels]
    for path, panel_group in zip(paths, panels.values(), strict=True):
        picture(study_view.structure, panel_group, study_view.pixels).save(path, optimize=True)
    return paths


def _shown(seen: LookedAt, spec: SweepSpec) -> Iterator[ShownSelection]:
    catalogue = load_catalogue(spec.dataset.protocol)
    features = seen.features() if any(selector.looks_at_pixels for selector in spec.selector) else None
    subtasks: Sequence[str] = spec.subtask or tuple(catalogue.subtasks)
    seeded = [(selector, seed) for selector in spec.selector for seed in selector.seeds or (None,)]
    for subtask, (selector, seed), budget in product(subtasks, seeded, spec.budget):
        if not isinstance(budget, int):
            raise InputError(f"budget {budget}: tokens depend on a model; give a number of frames here")
        asked = catalogue[subtask]
        selection = choose(
            selector,
            seed,
            seen.structure,
            asked,
            budget,
            features=features,
            question=asked.question,
        )
        yield ShownSelection(seen.structure.study_id, subtask, selector, seed, budget, selection)


def show(words: Words, sweep_words: Sequence[str]) -> int:
    """Show the selections."""
    spec = read_spec(sweep_words)
    study = find_study(words.study, spec)
    if words.format == "json":
        print("\n".join(map(json.dumps, records(study, spec))))
    else:
        print("\n".join(map(str, draw(study, spec, words.out))))
    return 0


main = verb(__name__, __doc__, Action(Words, show, about=SWEEP_OPTIONS))
