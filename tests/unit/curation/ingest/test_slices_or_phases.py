"""A short third axis: slices or phases? Tissue that keeps still tells, or a name; neither means a person."""

import numpy as np
import pytest

from cardiolens.curation.ingest.axis_order import axes_of
from cardiolens.curation.ingest.names import name_of
from cardiolens.curation.ingest.nifti.time_in_names import tells_no_time

SIDE, PIXEL_MM = 96, 3.0
LENGTHS = (PIXEL_MM, PIXEL_MM, 10.0)


def late_enhancement(n_slices: int = 14) -> np.ndarray:
    """Slices 10 mm apart whose last looks much like the first: lung and fat above, liver and fat below."""
    noise = np.random.default_rng(3)
    rows, columns = np.indices((SIDE, SIDE)) - (SIDE - 1) / 2
    first, second = np.kron(noise.normal(size=(2, 12, 12)), np.ones((1, 8, 8)))
    angles = np.linspace(0, np.radians(323), n_slices)
    slices = [400 + 120 * (np.cos(angle) * first + np.sin(angle) * second) for angle in angles]
    ring = np.hypot(rows, columns)
    return np.stack([np.where(ring < 20, 700 - 20 * k, each) for k, each in enumerate(slices)], axis=-1)


def cine(n_phases: int = 14, early: float = 2.2) -> np.ndarray:
    """One slice in which only the heart moves, and which ends `early` phases before the cycle does."""
    rows, columns = np.indices((SIDE, SIDE)) - (SIDE - 1) / 2
    away, chest = np.hypot(rows, columns), 300 + 2.0 * columns
    frames = []
    for phase in range(n_phases):
        radius = 16 - 7 * np.sin(np.pi * phase / (n_phases - 1 + early))
        frames.append(np.where(away < radius, 900.0, chest))
    return np.stack(frames, axis=-1)


def test_a_stack_in_which_everything_changes_is_slices():
    axes = axes_of(late_enhancement(), LENGTHS, sliced=None, step=10.0)
    assert (axes.across, axes.time, axes.sure) == (2, None, True), axes
    assert "nothing keeps still" in axes.evidence


def test_a_stack_in_which_only_the_heart_moves_is_never_surely_slices():
    axes = axes_of(cine(), LENGTHS, sliced=None, step=10.0)
    assert axes.time == 2 or not axes.sure, axes


def test_without_lengths_it_waits():
    assert not axes_of(late_enhancement(), None, sliced=None, step=1.0).sure


def test_a_name_without_time_decides_unless_the_frames_are_surely_a_cycle():
    named = axes_of(late_enhancement(), None, sliced=None, step=1.0, one_phase=True)
    assert (named.time, named.sure) == (None, True)
    assert not axes_of(cine(early=0.4), LENGTHS, sliced=None, step=10.0, one_phase=True).sure


@pytest.mark.parametrize(
    ("path", "tells"),
    [
        ("case1/LGE_sax.nii.gz", True),
        ("LGE/case1.nii.gz", True),
        ("case1/T2_STIR.nii.gz", True),
        ("case1/cine_sax.nii.gz", False),
        ("case1/perfusion.nii.gz", False),
        ("case1/lge_or_cine.nii.gz", False),
        ("case1/volume.nii.gz", False),
    ],
)
def test_which_names_tell_no_time(path, tells):
    assert tells_no_time(name_of(path)) is tells
