"""PNG pictures of stored frames for the case viewer."""

import io
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.show.local_server import number_of
from cardiolens.study.manifest import MANIFEST_NAME, read_study
from cardiolens.study.overlay import Overlay, read_overlay
from cardiolens.study.shards import read_frames, read_volumes, shaped

FRAMES = "frames"
MASKS = "masks"  # the same frames with the masks of the study over them
SLICES = "slices"  # all phases of a slice in one picture
MASKED_SLICES = "masked-slices"

Picture = NDArray[np.uint8]  # (height, width), or (height, width, 3) in colour
Place = tuple[str, int]  # volume_id, idx
FramesByStudy = dict[int, set[Place]]  # frames by study number


def png_of(store: Path, volumes: pa.Table, study: str, places: Collection[Place]) -> dict[Place, bytes]:
    """Read frames of one study as PNG pictures, as prepared: native size, windowed."""
    indices: dict[str, set[int]] = {}
    for volume_id, idx in places:
        indices.setdefault(volume_id, set()).add(idx)
    own = volumes.filter(pc.equal(volumes["study_id"], study))
    rows = read_frames(store, own, indices)
    return {
        (row["volume_id"], row["idx"]): encoded(
            shaped(row["pixels"], row["height"], row["width"], row["channels"])
        )
        for row in rows
    }


def overlay_of(studies: Path, volumes: pa.Table, study: str, volume_id: str) -> Overlay | None:
    """Read the mask of a volume from its study's folder; None if the mask or the folder is missing."""
    rows = volumes.filter(pc.equal(volumes["study_id"], study)).to_pylist()
    row = next((row for row in rows if row["volume_id"] == volume_id), None)
    try:
        record = read_study(study_folder(studies, study))
        manifest = next((volume for volume in record.manifest.volumes if volume.volume_id == volume_id), None)
        return None if row is None or manifest is None else read_overlay(record, manifest)
    except (InputError, OSError, KeyError):
        return None


def study_folder(studies: Path, study: str) -> Path:
    """The folder of a study: that of its name, else the one with its id in the manifest; KeyError if none."""
    with suppress(InputError, OSError, ValueError, LookupError, TypeError):
        if read_json(studies / study / MANIFEST_NAME)["study_id"] == study:
            return studies / study
    return _folders(studies)[study]


@lru_cache(maxsize=1)
def _folders(studies: Path) -> Mapping[str, Path]:
    """Study folders by study id; unreadable manifests are skipped."""
    folders: dict[str, Path] = {}
    for path in sorted(studies.glob(f"*/{MANIFEST_NAME}")):
        with suppress(InputError, OSError, ValueError):
            folders[str(read_json(path)["study_id"])] = path.parent
    return folders


def over(image: Picture, overlay: Overlay, idx: int) -> Picture:
    """Draw the mask of a frame over it; a picture in colour has none."""
    return overlay.on(image, idx) if image.ndim == 2 else image


def encoded(image: Picture, *, fast: bool = False) -> bytes:
    """A picture as PNG; `fast` spares time, and not bytes, where it leaves no machine."""
    from PIL import Image

    png = io.BytesIO()
    Image.fromarray(image).save(png, "PNG", compress_level=1 if fast else 6)
    return png.getvalue()


def tiled(images: Sequence[Picture], columns: int) -> Picture:
    """Set pictures row by row into one; smaller ones begin at the corner of their tile."""
    height, width = (max(image.shape[axis] for image in images) for axis in (0, 1))
    colour = (3,) if any(image.ndim == 3 for image in images) else ()
    sheet = np.zeros((-(-len(images) // columns) * height, columns * width, *colour), np.uint8)
    for number, image in enumerate(images):
        top, start = number // columns * height, number % columns * width
        tile = image[..., None] if colour and image.ndim == 2 else image
        sheet[top : top + image.shape[0], start : start + image.shape[1]] = tile
    return sheet


def collect_frames(cases: Mapping[str, Any], frames: FramesByStudy) -> None:
    """Add the frames that `cases` show to `frames`."""
    for arms in cases["cases"].values():
        for case in arms.values():
            if case["frames_of"] is not None:
                places = frames.setdefault(case["frames_of"], set())
                places.update((volume_id, idx) for volume_id, idx in cases["frames"][case["frames"]])


def write_pictures(folder: Path, store: Path, studies: Sequence[str], frames: FramesByStudy) -> None:
    """Write frames below the viewer's folder."""
    volumes = read_volumes(store)
    for number in sorted(number for number, places in frames.items() if places):
        pictures = png_of(store, volumes, studies[number], frames[number])
        for (volume_id, idx), picture in pictures.items():
            disk.write_bytes(folder / FRAMES / str(number) / f"{volume_id}-{idx}.png", picture)


def parse_name(words: Sequence[str], numbers: int = 1) -> tuple[int, str, tuple[int, ...]] | None:
    """Parse a picture's path below its kind: study number, volume, and so many numbers.

    The numbers are the index of a frame, or slice and block of a picture of phases. None for any other path.
    """
    if len(words) != 3 or not words[2].endswith(".png"):
        return None
    volume_id, *parts = words[2].removesuffix(".png").rsplit("-", numbers)
    study, places = number_of(words[1]), tuple(number_of(part) for part in parts)
    if len(parts) != numbers or not volume_id or min(study, *places) < 0:
        return None
    return study, volume_id, places
