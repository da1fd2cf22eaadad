"""PNG pictures of stored frames for the case viewer."""

import io
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.show.local_server import number_of
from cardiolens.study.manifest import MANIFEST_NAME, read_study
from cardiolens.study.overlay import Overlay, read_overlay
from cardiolens.study.shards import read_frames, read_volumes, shaped

FRAMES = "frames"
MASKS = "masks"  # the same frames with the masks of the study over them

Place = tuple[str, int]  # volume_id, idx
FramesByStudy = dict[int, set[Place]]  # frames by study number


def name_of(number: int, volume_id: str, idx: int) -> str:
    """Path below the viewer's folder of a frame of the study with a number."""
    return f"{FRAMES}/{number}/{volume_id}-{idx}.png"


def png_of(
    store: Path,
    volumes: pa.Table,
    study: str,
    places: Collection[Place],
    overlays: Mapping[str, Overlay] | None = None,
) -> dict[Place, bytes]:
    """Read frames of one study as PNG pictures, as prepared: native size, windowed, with masks if given."""
    indices: dict[str, set[int]] = {}
    for volume_id, idx in places:
        indices.setdefault(volume_id, set()).add(idx)
    own = volumes.filter(pc.equal(volumes["study_id"], study))
    rows = read_frames(store, own, indices).to_pylist()
    masks = overlays or {}
    return {(row["volume_id"], row["idx"]): _png(row, masks.get(row["volume_id"])) for row in rows}


def overlay_of(studies: Path, volumes: pa.Table, study: str, volume_id: str) -> Overlay | None:
    """Read the mask of a volume from its study's folder; None if the mask or the folder is missing."""
    rows = volumes.filter(pc.equal(volumes["study_id"], study)).to_pylist()
    row = next((row for row in rows if row["volume_id"] == volume_id), None)
    try:
        record = read_study(_folders(studies)[study])
        manifest = next((volume for volume in record.manifest.volumes if volume.volume_id == volume_id), None)
        return None if row is None or manifest is None else read_overlay(record, manifest, row)
    except (InputError, OSError, KeyError):
        return None


@lru_cache(maxsize=1)
def _folders(studies: Path) -> Mapping[str, Path]:
    """Study folders by study id; unreadable manifests are skipped."""
    folders: dict[str, Path] = {}
    for path in sorted(studies.glob(f"*/{MANIFEST_NAME}")):
        with suppress(InputError, OSError, ValueError):
            folders[str(read_json(path)["study_id"])] = path.parent
    return folders


def _png(frame: Mapping[str, object], overlay: Overlay | None) -> bytes:
    from PIL import Image

    height, width, channels = (int(str(frame[name])) for name in ("height", "width", "channels"))
    pixels = frame["pixels"]
    assert isinstance(pixels, bytes)
    png = io.BytesIO()
    image = shaped(pixels, height, width, channels)
    if overlay is not None and image.ndim == 2:
        image = overlay.on(image, int(str(frame["idx"])))
    Image.fromarray(image).save(png, "PNG")
    return png.getvalue()


def collect_frames(cases: Mapping[str, Any], frames: FramesByStudy) -> None:
    """Add the frames that `cases` show to `frames`."""
    for arms in cases["cases"].values():
        for case in arms.values():
            if case["frames_of"] is not None:
                places = frames.setdefault(case["frames_of"], set())
                places.update((volume_id, idx) for volume_id, idx in cases["frames"][case["frames"]])


def write_pictures(folder: Path, store: Path, studies: Sequence[str], frames: FramesByStudy) -> int:
    """Write frames below the viewer's folder, and return their number."""
    volumes = read_volumes(store)
    return sum(
        _write_study(folder, number, png_of(store, volumes, studies[number], frames[number]))
        for number in sorted(frames)
        if frames[number]
    )


def _write_study(folder: Path, number: int, pictures: Mapping[Place, bytes]) -> int:
    for (volume_id, idx), picture in pictures.items():
        disk.write_bytes(folder / name_of(number, volume_id, idx), picture)
    return len(pictures)


def parse_name(words: Sequence[str]) -> tuple[int, str, int] | None:
    """Parse a picture's path below the viewer: study number, volume and index; None for any other path."""
    if len(words) != 3 or words[0] not in (FRAMES, MASKS):
        return None
    volume_id, _, idx = words[2].removesuffix(".png").rpartition("-")
    study, frame = number_of(words[1]), number_of(idx)
    if not words[2].endswith(".png") or not volume_id or min(study, frame) < 0:
        return None
    return study, volume_id, frame
