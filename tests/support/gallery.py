"""Small pictures of studies: `python -m tests.support.gallery <cohort> <folder>`."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cardiolens.config.dataset import Windows
from cardiolens.study.displayed import DisplayedVolume, displayed_volumes
from cardiolens.study.manifest import read_study
from cardiolens.study.overlay import ShownFrame, contact_sheet

COLUMNS, TILE = 8, 96
# frames drawn per view: slices and phases as shares of their counts; cine phases also by name
_SHOWN: Mapping[str, tuple[tuple[float, ...], tuple[float | str, ...]]] = {
    "cine_sax": ((0.05, 0.25, 0.5, 0.75), ("ed", "es")),
    "cine_4ch": ((0.5,), ("ed", "es", 0.5)),
    "cine_3ch": ((0.5,), ("ed", 0.24, 0.6)),
    "cine_2ch": ((0.5,), ("ed", "es")),
    "lge_sax": ((0.05, 0.25, 0.45, 0.65, 0.8, 0.95), (0.0,)),
    "lge_4ch": ((0.0,), (0.0,)),
    "lge_2ch": ((0.0,), (0.0,)),
    "perf_sax": ((0.0, 0.4, 0.9), (0.18, 0.46)),
    "t2_sax": ((0.0, 0.25, 0.5, 0.75), (0.0,)),
    "t2_4ch": ((0.0,), (0.0,)),
}


def gallery_picture(study: Path) -> Image.Image:
    """Draw the most telling frames of a study, windowed and oriented as models see them."""
    volumes = {volume.row["volume_id"]: volume for volume in displayed_volumes(read_study(study), Windows())}
    frames = [frame for code, volume in volumes.items() if code in _SHOWN for frame in _shown(volume)]
    return contact_sheet(frames, columns=COLUMNS, tile=TILE)


def _shown(volume: DisplayedVolume) -> Iterator[ShownFrame]:
    row: Mapping[str, Any] = volume.row
    ranks, times = _SHOWN[row["volume_id"]]
    phase_names = {"ed": row["ed_phase"], "es": row["es_phase"]}
    for time in times:
        phase = phase_names[time] if isinstance(time, str) else int(time * row["n_phases"])
        yield from (_frame(volume, rank, phase) for rank in ranks)


def _frame(volume: DisplayedVolume, rank: float, phase: int) -> ShownFrame:
    """Return the frame of a phase and of a slice, given as a share of the stack."""
    row: Mapping[str, Any] = volume.row
    number = int(rank * row["n_slices"])
    frame = volume.frames.slice(number * row["n_phases"] + phase, 1).to_pylist()[0]
    pixels = np.frombuffer(frame["pixels"], np.uint8).reshape(frame["height"], frame["width"])
    return ShownFrame((row["volume_id"], number, phase), pixels)


def main(argv: list[str]) -> int:
    """Write `<folder>/<study>.png` for each study of a cohort, in 24 grey levels to keep files small."""
    cohort, folder = Path(argv[0]), Path(argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for study in sorted((cohort / "studies").iterdir()):
        grey = gallery_picture(study).convert("L").quantize(24, dither=Image.Dither.NONE)
        grey.save(folder / f"{study.name.lower()}.png", optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
