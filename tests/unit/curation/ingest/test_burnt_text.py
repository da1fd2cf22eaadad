"""Text in pictures: found by its shape wherever it stands; anatomy and noise are none; its volume waits."""

import json
from itertools import product
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.burnt_text import shows_text
from cardiolens.curation.ingest.import_run import ingest
from tests.unit.curation.ingest.exports import CINE, NORMAL, SHORT_AXIS, proposals, series

SIDE = 96


def slices(volume: np.ndarray, n_phases: int) -> list[np.ndarray]:
    frames = volume.reshape(*volume.shape[:2], -1).transpose(2, 1, 0)
    return list(frames.reshape(-1, n_phases, *frames.shape[1:]))


def written(text: str, size: int, place: tuple[int, int], shape: tuple[int, int]) -> np.ndarray:
    """The share of ink of each pixel, as PIL's own font draws it."""
    drawn = Image.new("L", shape[::-1])
    ImageDraw.Draw(drawn).text(place, text, fill=255, font=ImageFont.load_default(size))
    return np.asarray(drawn) / 255.0


def heart(n_slices: int = 5, n_phases: int = 8) -> np.ndarray:
    """A ring that contracts in a chest with bright fat, with noise."""
    noise = np.random.default_rng(5)
    rows, columns = np.indices((SIDE, SIDE)) - (SIDE - 1) / 2
    away = np.hypot(rows, columns)
    frames = []
    for k in range(n_slices):
        for phase in range(n_phases):
            radius = (16 - 2 * k) * (1 - 0.35 * np.sin(np.pi * phase / n_phases))
            frame = np.where(away < radius, 800.0, np.where(away < radius + 6, 250.0, 150.0))
            frame = np.where((away > 38 + k) & (away < 42 + k), 1000.0, frame)
            frames.append(np.where(away >= 42 + k, 0.0, frame) + noise.rayleigh(25, frame.shape))
    return np.array(frames).round().reshape(n_slices, n_phases, SIDE, SIDE)


def inked(frames: np.ndarray, text: str, size: int, place: tuple[int, int], ink: float = 1000) -> np.ndarray:
    """Frames with text of a brightness; 0 is black."""
    shown = written(text, size, place, frames.shape[-2:])
    return frames * (1 - shown) + ink * shown


def on_a_white_box(frames: np.ndarray) -> np.ndarray:
    frames[..., 2:20, 2:90] = 1000
    return inked(frames, "DOE 77801", 12, (6, 4), ink=0)


def in_one_slice(frames: np.ndarray) -> np.ndarray:
    frames[3] = inked(frames[3], "DOE JANE", 14, (2, 2))
    return frames


@pytest.mark.parametrize(("size", "ink"), [(10, 700), (10, 1500), (12, 1000), (16, 700)])
@pytest.mark.parametrize("place", [(1, 1), (1, 78), (22, 40)], ids=["top", "bottom", "on the heart"])
def test_text_is_found(size, place, ink):
    assert shows_text(list(inked(heart(), "SMITH^A", size, place, ink)))


@pytest.mark.parametrize(
    "written_on",
    [
        lambda: inked(heart(), "SMITH^A 61", 8, (2, 2)),
        lambda: inked(heart(3, 6)[..., 16:80, 16:80], "SMITH", 20, (1, 1)),
        lambda: on_a_white_box(heart()),
        lambda: in_one_slice(heart()),
    ],
    ids=["a long row of few pixels", "as tall as a fifth of a small picture", "black on white", "one slice"],
)
def test_text_of_other_kinds_is_found(written_on):
    assert shows_text(list(written_on()))


def stored(frames: np.ndarray, way: tuple[bool, bool, bool]) -> list[np.ndarray]:
    """Frames as one of the eight ways to store them."""
    transpose, flip_rows, flip_columns = way
    turned = frames.swapaxes(-1, -2) if transpose else frames
    turned = turned[..., ::-1, :] if flip_rows else turned
    return list(turned[..., ::-1] if flip_columns else turned)


@pytest.mark.parametrize("way", list(product((False, True), repeat=3)))
def test_the_verdict_is_the_same_however_a_file_is_stored(way):
    frames = heart(3, 6)
    assert shows_text(stored(inked(frames, "DOE JANE", 12, (3, 70)), way))
    assert not shows_text(stored(frames, way))


def test_a_row_of_equal_dots_is_no_text():
    frames = heart(3, 6)
    for column in range(10, 80, 8):
        frames[..., 8:14, column : column + 4] = 1000  # vessels, ribs: bars of one brightness that keep still
    assert not shows_text(list(frames))


def test_a_heart_is_no_text():
    assert not shows_text(list(heart()))
    assert not shows_text(list(heart(1)))
    assert not shows_text(list(heart(8, 1)))
    assert not shows_text([np.full((3, 32, 32), 7)])


def test_no_volume_of_the_phantom_is_text(prepared_phantom):
    seen = 0
    for path in sorted((prepared_phantom / "data" / "studies").glob("*/study.json")):
        for volume in json.loads(path.read_text())["volumes"]:
            stored = np.asarray(nib.load(path.parent / volume["path"]).dataobj)
            assert not shows_text(slices(stored, volume["layout"]["n_phases"])), volume
            seen += 1
    assert seen >= 11


def test_a_volume_with_text_waits(tmp_path: Path):
    frames = inked(heart(), "SMITH^A", 12, (2, 2))
    corners = np.array([k * 8.0 * -NORMAL for k in range(5)])
    told = {"ImageOrientationPatient": SHORT_AXIS, "PixelSpacing": [1.5, 1.5]}
    series(tmp_path / "export", frames, corners, 5, **told, **CINE)
    assert ingest(IngestSpec(source=tmp_path / "export", out=tmp_path / "out", key=tmp_path / "key")) == 1
    (proposal,) = proposals(tmp_path / "out")
    assert (proposal["status"], proposal["reason"]) == ("waits", "burned_in_text")
    assert "text_in_picture" in proposal["flags"]
    assert not list((tmp_path / "out").glob("studies/*/*"))
