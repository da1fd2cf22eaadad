"""Planes of displayed slices against voxels of their files, reference lines against both planes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_folders import SHORT_AXIS_AFFINE, study, volume, voxels, write_nifti

from cardiolens.study.manifest import Study, read_study
from cardiolens.study.orientation import StudyOrientation, every_transform
from cardiolens.study.slice_planes import PlacedVolume, SlicePlane, placed_volumes, reference_line, same_level
from cardiolens.study.volume import read_volume

TO_LPS = np.diag([-1.0, -1.0, 1.0])
N_SLICES, N_PHASES = 3, 4
SIZES = ("n_slices", "n_phases", "height", "width")


def rows_of(folder: Study) -> list[dict[str, Any]]:
    rows = []
    for manifest in folder.manifest.volumes:
        read = read_volume(folder.folder, manifest)
        sizes = dict(zip(SIZES, read.displayed(read.grid).shape, strict=True))
        rows.append({"volume_id": manifest.volume_id, **sizes})
    return rows


def placed(folder: Path) -> tuple[dict[str, PlacedVolume], dict[str, str]]:
    opened = read_study(folder)
    return placed_volumes(opened, rows_of(opened))


@pytest.mark.parametrize("order", ["base_to_apex", "apex_to_base"])
@pytest.mark.parametrize("transform", every_transform(), ids=str)
def test_a_displayed_pixel_lies_where_its_voxel_does(
    tmp_path: Path, transform: Any, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The voxels hold their own indices, so the display itself says where each came from."""
    monkeypatch.setattr(StudyOrientation, "contradicts", lambda *_: False)
    i, j, k = np.indices((6, 5, N_SLICES * N_PHASES))
    array = (i + 10 * j + 100 * (k // N_PHASES)).astype(np.int16)
    changes = {"display_transform": transform.model_dump(), "spatial_order": order, "confirmed": ["layout"]}
    folder = study(tmp_path / "S", volume(tmp_path / "S", array, **changes))
    opened = read_study(folder)
    planes = placed(folder)[0]["cine_sax"].planes
    read = read_volume(folder, opened.manifest.volumes[0])
    for rank, plane in enumerate(planes):
        frame = read.displayed(read.grid[rank, 0])
        assert frame.shape == (plane.height, plane.width)
        for row in range(plane.height):
            for column in range(plane.width):
                value = int(frame[row, column])
                stored = np.array([value % 10, value // 10 % 10, value // 100, 1])
                expected = TO_LPS @ (SHORT_AXIS_AFFINE @ stored)[:3]
                assert plane.corner + column * plane.right + row * plane.down == pytest.approx(
                    expected, abs=1e-4
                )


def random_plane(dice: np.random.Generator) -> SlicePlane:
    turned, _ = np.linalg.qr(dice.normal(size=(3, 3)))
    spacing = dice.uniform(0.8, 2.5, 2)
    height, width = (int(side) for side in dice.integers(20, 80, 2))
    return SlicePlane(dice.uniform(-60, 20, 3), spacing[0] * turned[0], spacing[1] * turned[1], height, width)


def test_a_reference_line_lies_in_both_planes_and_in_both_pictures() -> None:
    dice = np.random.default_rng(44)
    drawn = 0
    for _ in range(400):
        shown, other = random_plane(dice), random_plane(dice)
        line = reference_line(shown, other)
        # Pixels of the shown picture and on which side of the other plane they lie, inside the other picture.
        rows, columns = np.mgrid[0 : shown.height, 0 : shown.width]
        points = shown.corner + columns[..., None] * shown.right + rows[..., None] * shown.down - other.corner
        side = points @ other.normal
        across, down = (points @ axis / (axis @ axis) for axis in (other.right, other.down))
        inside = (across > 0) & (across < other.width - 1) & (down > 0) & (down < other.height - 1)
        cut = inside[:, 1:] & inside[:, :-1] & (side[:, 1:] * side[:, :-1] < 0)
        if line is None:
            assert not cut.any() or shown.angle(other) < 15
            continue
        drawn += 1
        x1, y1, x2, y2 = line
        for t in (0.0, 0.3, 1.0):
            x, y = x1 + t * (x2 - x1), y1 + t * (y2 - y1)
            assert -0.5001 <= x <= shown.width - 0.4999
            assert -0.5001 <= y <= shown.height - 0.4999
            point = shown.corner + x * shown.right + y * shown.down - other.corner
            assert point @ other.normal == pytest.approx(0, abs=1e-6)
            for axis, pixels in ((other.right, other.width), (other.down, other.height)):
                assert -0.5001 <= point @ axis / (axis @ axis) <= pixels - 0.4999
        if cut.any():  # the line reaches as far as the pixels that the other plane parts
            ys, xs = np.nonzero(cut)
            assert min(x1, x2) <= xs.min() + 1.01
            assert max(x1, x2) >= xs.max() - 0.01
            assert min(y1, y2) <= ys.min() + 1.01
            assert max(y1, y2) >= ys.max() - 1.01
    assert drawn > 60


def test_parallel_slices_have_no_line_and_share_levels() -> None:
    right, down = np.array([1.5, 0, 0]), np.array([0, 1.5, 0])

    def stack(levels: list[float], step: float) -> PlacedVolume:
        planes = (SlicePlane(np.array([0, 0, level]), right, down, 20, 30) for level in levels)
        return PlacedVolume(tuple(planes), step)

    cine, t2 = stack([0, 8, 16, 24, 32], 8), stack([9, 21], 12)
    assert reference_line(cine.planes[0], t2.planes[0]) is None
    assert same_level(cine, t2) == (None, 0, 1, 1, None)
    assert same_level(t2, cine) == (1, 3)
    long_axis = PlacedVolume((SlicePlane(np.zeros(3), right, np.array([0, 0, 1.5]), 20, 30),), 8)
    assert same_level(cine, long_axis) is None


def told_reason(folder: Path) -> str:
    volumes, reasons = placed(folder)
    assert volumes == {}
    return reasons["cine_sax"]


@pytest.mark.parametrize(
    ("affine", "spacing", "words"),
    [
        (np.diag([2.0, 2.0, 10.0, 1.0]), [2.0, 2.0, 10.0], "scanner's own axes"),
        (SHORT_AXIS_AFFINE, [2.0, 2.0, 8.0], "its spacing is [2.0, 2.0, 10.0] mm; expected [2.0, 2.0, 8.0]"),
        (SHORT_AXIS_AFFINE[:, [1, 0, 2, 3]] * [1, -1, 1, 1], [2.0, 2.0, 10.0], "contradicts the way"),
    ],
)
def test_a_header_that_cannot_be_believed_gives_a_reason(
    tmp_path: Path, affine: np.ndarray, spacing: list[float], words: str
) -> None:
    folder = tmp_path / "S"
    entry = volume(folder, spacing_mm=spacing, confirmed=["display", "spacing"])
    entry["sha256"] = write_nifti(folder / entry["path"], voxels(), affine)
    assert words in told_reason(study(folder, entry))
