"""The heart's axis from the stack itself, its siblings and name; else the typical axis."""

from pathlib import Path

import numpy as np
import pytest

from cardiolens.curation.ingest.classify import propose
from cardiolens.curation.ingest.frame_records import Identity, Image, Person, Stack
from cardiolens.curation.ingest.heart_axis import heart_frame
from cardiolens.curation.ingest.words import words_of
from cardiolens.study.orientation import TYPICAL_BASE, frame_along

BASE = TYPICAL_BASE / np.linalg.norm(TYPICAL_BASE)
CENTRE = np.array([20.0, -60.0, 10.0])


def tilted(degrees: float) -> np.ndarray:
    """The typical axis turned to the head, more than 10 degrees from each axis of the scanner."""
    toward = np.array([0.25, -0.55, 0.8])
    toward = toward - (toward @ BASE) * BASE
    toward /= np.linalg.norm(toward)
    angle = np.radians(degrees)
    return np.cos(angle) * BASE + np.sin(angle) * toward


def stack(normal, name="", slices=12, phases=20) -> Stack:
    """A stack of 64 x 64 pixels of 2 mm around the centre of the heart."""
    normal = np.asarray(normal) / np.linalg.norm(normal)
    across = np.cross(normal, [0.3, 0.9, 0.1])
    across /= np.linalg.norm(across)
    down = np.cross(normal, across)
    grid = []
    for k in range(slices):
        corner = CENTRE - 64 * (across + down) + (k - slices / 2) * 8.0 * normal
        line = [
            Image(
                Path("x"), phase, Identity("p", "s", name, ""), Person(), 64, 64, (2.0, 2.0),
                tuple(corner), tuple(across), tuple(down), trigger=phase * 40.0,
            )
            for phase in range(phases)
        ]  # fmt: skip
        grid.append(tuple(line))
    return Stack(tuple(grid), (words_of(name),), ())


def plane(axis, about: float, name="") -> Stack:
    """A long-axis plane of the heart with this axis, at an angle about it."""
    frame = frame_along(np.asarray(axis), None)
    return stack(np.cross(frame.base, frame.toward(about)), name, slices=1)


def view(stacks, number=0) -> str:
    return propose(stacks, heart_frame(stacks))[number].view


FAR = tilted(49)


def test_a_stack_named_sax_with_a_plane_across_is_the_short_axis_however_it_lies():
    stacks = [stack(FAR, "sax"), plane(FAR, 8, "4ch")]
    assert heart_frame(stacks).known
    assert (view(stacks), view(stacks, 1)) == ("sax", "4ch")


def test_a_name_and_a_whole_cycle_of_many_slices_are_enough():
    assert view([stack(FAR, "cine_sax")]) == "sax"


@pytest.mark.parametrize("normal", np.eye(3))
def test_an_axial_coronal_or_sagittal_stack_is_no_short_axis_by_its_name_alone(normal):
    assert not heart_frame([stack(normal, "sax", phases=1)]).known
    assert not heart_frame([stack(normal, "sax")]).known


def test_a_name_that_its_siblings_contradict_is_not_enough():
    stacks = [stack(FAR, "sax", slices=4, phases=1), plane(tilted(5), 8, "4ch"), plane(tilted(5), 67, "2ch")]
    assert not heart_frame(stacks).known


def test_beyond_seventy_degrees_nobody_knows_which_end_is_the_base():
    stacks = [stack(tilted(80), "sax"), plane(tilted(80), 8, "4ch")]
    assert not heart_frame(stacks).known


def test_planes_alone_define_no_axis():
    heart = tilted(22)
    stacks = [plane(heart, 8, "4ch"), plane(heart, 67, "2ch"), plane(heart, 128, "3ch")]
    assert not heart_frame(stacks).known
