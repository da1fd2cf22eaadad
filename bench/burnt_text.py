"""The verdict on text in pictures, in all eight ways to store them, with text burnt in and without.

    python -m bench.burnt_text [hearts] [folder of real studies ...]        default: 11

A heart is drawn at random and shown in five views, each with its own matrix, field of view and contrast. A
name is burnt into each stack, at one of four corners and in one of five sizes.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from cardiolens.curation.ingest.burnt_text import shows_text
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.planes import Size, views
from cardiolens.phantom.render import render
from cardiolens.phantom.roster import study
from cardiolens.phantom.signal import appearance

Frames = NDArray[Any]  # (slice, phase, row, column)

VIEWS = ("cine_sax", "cine_4ch", "lge_sax", "t2_sax", "perf_sax")
MATRICES = ((64, 3.2), (96, 2.1), (128, 1.6), (80, 3.0), (112, 1.4))  # pixels of a side, mm of a pixel
CONTRASTS = (1.0, 0.6, 1.7)  # exponents of the grey scale
LETTERS = (8, 10, 12, 16, 20)  # pixels
CORNERS = ((2, 2), (2, 0), (0, 2), (0, 0))  # 2: from the near edge, 0: to the far one
WAYS = tuple(product((False, True), repeat=3))  # transposed, rows reversed, columns reversed


@dataclass(frozen=True)
class Shown:
    """A stack of pictures, and whether it is real."""

    name: str
    frames: Frames
    is_real: bool = False


def phantoms(hearts: int, first_seed: int = 500) -> Iterator[Shown]:
    """Yield stacks of random hearts; every one differs in matrix, field of view and contrast."""
    for number in range(hearts):
        drawn = study(first_seed + number, "PH-0001")
        for place, view in enumerate(VIEWS):
            pixels, spacing = MATRICES[(number + place) % len(MATRICES)]
            size = Size(pixels=pixels, spacing_mm=spacing, phases=6, beats=10, layers=1)
            look = appearance(("standard", "hard")[number % 2], drawn.seed, spacing)
            drawing = render(
                Heart(drawn.parameters), views()[view], size, look=look, seed=drawn.seed, masks=False
            )
            frames = drawing.frames.reshape(-1, drawing.phases, pixels, pixels).astype(np.float64)
            exponent = CONTRASTS[(number + 2 * place) % len(CONTRASTS)]
            yield Shown(f"{view} {first_seed + number}", 4095 * (frames / max(frames.max(), 1)) ** exponent)


def real(folders: Sequence[Path]) -> Iterator[Shown]:
    """Yield real volumes of NIfTI, and real series of DICOM as stacks of one slice each."""
    import pydicom

    for folder in folders:
        for path in sorted(folder.rglob("*.nii*")):
            if not path.name.startswith("seg"):
                voxels = np.asarray(nib.load(path).dataobj, np.float64)
                voxels = voxels.reshape(*voxels.shape[:3], -1)
                yield Shown(str(path.relative_to(folder)), voxels.transpose(2, 3, 1, 0), True)
        series = {path.parent for path in folder.rglob("*.dcm")}
        for home in sorted(series):
            frames = [pydicom.dcmread(path).pixel_array for path in sorted(home.glob("*.dcm"))]
            if len({frame.shape for frame in frames}) == 1:
                yield Shown(str(home.relative_to(folder)), np.array(frames)[None], True)


def stored(frames: Frames, way: tuple[bool, bool, bool]) -> list[Frames]:
    """Return the slices of a stack as one of the eight ways to store them."""
    transpose, flip_rows, flip_columns = way
    turned = frames.swapaxes(-1, -2) if transpose else frames
    turned = turned[..., ::-1, :] if flip_rows else turned
    return list(np.ascontiguousarray(turned[..., ::-1] if flip_columns else turned))


def with_text(frames: Frames, letters: int, corner: tuple[int, int]) -> Frames:
    """Burn a name into all frames, as bright as their brightest hundredth."""
    height, width = frames.shape[-2:]
    font = ImageFont.load_default(letters)
    text = "SMITH^A 61"
    while len(text) > 6 and font.getlength(text) > width - 4:
        text = text[:-1]
    place = (
        2 if corner[1] else max(int(width - font.getlength(text)) - 2, 0),
        1 if corner[0] else height - letters - 4,
    )
    drawn = Image.new("L", (width, height))
    ImageDraw.Draw(drawn).text(place, text, fill=255, font=font)
    ink = np.asarray(drawn) / 255.0
    return frames * (1 - ink) + np.percentile(frames, 99) * ink


def main() -> None:
    hearts = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    tally: Counter[tuple[str, str]] = Counter()
    found: Counter[int] = Counter()
    tried: Counter[int] = Counter()
    for number, stack in enumerate([*phantoms(hearts), *real([Path(word) for word in sys.argv[2:]])]):
        kind = "real" if stack.is_real else "phantom"
        verdicts = {shows_text(stored(stack.frames, way)) for way in WAYS}
        tally[kind, "stacks"] += 1
        tally[kind, "held"] += True in verdicts
        tally[kind, "verdict depends on the way"] += len(verdicts) > 1
        letters, corner = LETTERS[number % len(LETTERS)], CORNERS[number // len(LETTERS) % len(CORNERS)]
        burnt = {shows_text(stored(with_text(stack.frames, letters, corner), way)) for way in WAYS}
        tried[letters] += 1
        found[letters] += burnt == {True}
        tally[kind, "verdict on text depends on the way"] += len(burnt) > 1
        if True in verdicts or len(burnt) > 1 or burnt == {False}:
            print(f"{stack.name}: without text {verdicts}, of {letters} pixels {burnt}", flush=True)
    for (kind, name), count in tally.items():
        print(f"{kind}: {name} {count}")
    for letters in LETTERS:
        print(f"text of {letters} pixels: found in all eight ways in {found[letters]} of {tried[letters]}")


if __name__ == "__main__":
    main()
