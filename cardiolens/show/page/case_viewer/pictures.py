"""PNG pictures of stored frames for the case viewer."""

import io
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.cohort import read_cohort
from cardiolens.study.manifest import MANIFEST_NAME, Study, read_study
from cardiolens.study.overlay import Overlay, read_overlay
from cardiolens.study.shards import read_frames, read_volumes, shaped

FRAMES = "frames"
BLOCK = 64  # phases in one picture, so that none is larger than a browser draws
_FRAME = re.compile(r"(frames|masks)/([0-9]{1,10})/([^/]+)-([0-9]{1,10})\.png")
_PHASES = re.compile(r"(slices|masked-slices)/([0-9]{1,10})/([^/]+)-([0-9]{1,10})-([0-9]{1,10})\.png")
_MASKED = ("masks", "masked-slices")  # with the masks of the study over the frames
_VOLUMES_KEPT = 8  # in memory: a large cine has 100 MB

Picture = NDArray[np.uint8]  # (height, width), or (height, width, 3) in colour
Place = tuple[str, int]  # volume_id, idx


class StudyPictures:
    """Pictures of the frames of studies as prepared: native size, windowed, with or without their masks.

    `frames/STUDY/VOLUME-INDEX.png` is a frame, `slices/STUDY/VOLUME-SLICE-BLOCK.png` a block of the phases of
    a slice; `masks` and `masked-slices` are the same with masks. STUDY is the place of a study in `studies`.
    """

    def __init__(self, store: Path, folder: Path, studies: Sequence[str], roots: Sequence[Path] = ()) -> None:
        self._store, self._folder, self._studies, self._roots = store, folder, studies, roots
        self._reading = Lock()  # a volume that several pictures need is read once
        self._images = lru_cache(maxsize=_VOLUMES_KEPT)(self._read_images)
        self._overlay = lru_cache(maxsize=_VOLUMES_KEPT)(self.overlay)

    @cached_property
    def volumes(self) -> pa.Table:
        """The volumes of the store."""
        return read_volumes(self._store)

    @cached_property
    def anatomy(self) -> Anatomy:
        """The organ of the store's studies."""
        cohort = read_cohort(self._store)
        return heart() if cohort is None else cohort.organ

    def read(self, study: str) -> Study:
        """Read a study from its folder: that of its name, else the one with its id in the manifest.

        InputError, OSError or KeyError if there is none that can be read.
        """
        folder = self._folder / study
        with suppress(InputError, OSError, ValueError, LookupError, TypeError):
            if read_json(folder / MANIFEST_NAME)["study_id"] == study:
                return read_study(folder, self._roots, self.anatomy)
        return read_study(self._folders[study], self._roots, self.anatomy)

    @cached_property
    def _folders(self) -> Mapping[str, Path]:
        """Study folders by study id; unreadable manifests are skipped."""
        folders: dict[str, Path] = {}
        for path in sorted(self._folder.glob(f"*/{MANIFEST_NAME}")):
            with suppress(InputError, OSError, ValueError):
                folders[str(read_json(path)["study_id"])] = path.parent
        return folders

    def at(self, path: str, *, fast: bool = True) -> bytes | None:
        """The picture at a path, None where there is none; InputError if the store cannot be read."""
        parts = _FRAME.fullmatch(path) or _PHASES.fullmatch(path)
        if parts is None or int(parts[2]) >= len(self._studies):
            return None
        study, volume_id = self._studies[int(parts[2])], parts[3]
        with self._reading:
            images, n_phases = self._images(study, volume_id)
            overlay = self._overlay(study, volume_id) if parts[1] in _MASKED else None
        if parts.re is _FRAME:
            idx, columns = int(parts[4]), 1
            indices = range(idx, idx + 1)
        else:
            first, block = int(parts[4]) * n_phases, int(parts[5]) * BLOCK
            indices = range(first + block, first + min(block + BLOCK, n_phases))
            columns = columns_of(n_phases)
        shown = [
            images[idx] if overlay is None else over(images[idx], overlay, idx)
            for idx in indices
            if idx < len(images)
        ]
        return encoded(tiled(shown, columns), fast=fast) if shown else None

    def _read_images(self, study: str, volume_id: str) -> tuple[Sequence[Picture], int]:
        """Frames of a volume by canonical index, and its phases; no frames where the store lacks it."""
        is_own = pc.and_(
            pc.equal(self.volumes["study_id"], study), pc.equal(self.volumes["volume_id"], volume_id)
        )
        own = self.volumes.filter(is_own)
        if not own.num_rows:
            return (), 1
        n_phases, n_slices = own["n_phases"][0].as_py(), own["n_slices"][0].as_py()
        frames = read_frames(self._store, own, {volume_id: range(n_slices * n_phases)})
        images = (shaped(row["pixels"], row["height"], row["width"], row["channels"]) for row in frames)
        return tuple(images), n_phases

    def overlay(self, study: str, volume_id: str) -> Overlay | None:
        """Read the mask of a volume from its study's folder; None if the mask or the folder is missing."""
        try:
            record = self.read(study)
            named = {manifest.volume_id: manifest for manifest in record.manifest.volumes}
            return read_overlay(record, named[volume_id])
        except (InputError, OSError, KeyError):
            return None


def columns_of(n_phases: int) -> int:
    """Columns of the picture that holds the phases of a slice, row by row."""
    return math.ceil(math.sqrt(min(n_phases, BLOCK)))


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
