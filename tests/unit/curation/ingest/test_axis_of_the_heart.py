"""The heart's axis from a stack that lies as hearts do; else the typical axis."""

from pathlib import Path

import numpy as np
import pytest

from cardiolens.curation.ingest.classify import propose
from cardiolens.curation.ingest.frame_records import Identity, Image, Person, Stack
from cardiolens.curation.ingest.orient import heart_frame
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


def stack(normal, name="", slices=12) -> Stack:
    """A stack of 64 x 64 pixels of 2 mm around the centre of the heart."""
    normal = np.asarray(normal) / np.linalg.norm(normal)
    across = np.cross(normal, [0.3, 0.9, 0.1])
    across /= np.linalg.norm(across)
    down = np.cross(normal, across)
    corners = (CENTRE - 64 * (across + down) + (k - slices / 2) * 8.0 * normal for k in range(slices))
    identity, plane = Identity("p", "s", name, ""), (tuple(across), tuple(down))
    grid = [
        (Image(Path("x"), 0, identity, Person(), 64, 64, (2.0, 2.0), tuple(corner), *plane),)
        for corner in corners
    ]
    return Stack(tuple(grid), (words_of(name),), ())


def plane(axis, about: float, name="") -> Stack:
    """A long-axis plane of the heart with this axis, at an angle about it."""
    frame = frame_along(np.asarray(axis))
    return stack(np.cross(frame.base, frame.toward(about)), name, slices=1)


def test_the_largest_stack_within_35_degrees_of_the_typical_axis_defines_it():
    stacks = [stack(tilted(20), slices=4), stack(tilted(30), slices=9), plane(tilted(30), 8, "4ch")]
    frame = heart_frame(stacks)
    assert frame.known
    assert frame.base @ tilted(30) == pytest.approx(1)
    assert [each.view for each in propose(stacks[1:], frame)] == ["sax", "4ch"]


@pytest.mark.parametrize("normal", [*np.eye(3), tilted(40)])
def test_a_stack_beyond_them_is_no_short_axis_whatever_its_name(normal):
    stacks = [stack(normal, "sax"), plane(normal, 8, "4ch")]
    assert not heart_frame(stacks).known


def test_planes_alone_define_no_axis():
    heart = tilted(22)
    stacks = [plane(heart, 8, "4ch"), plane(heart, 67, "2ch"), plane(heart, 128, "3ch")]
    assert not heart_frame(stacks).known
