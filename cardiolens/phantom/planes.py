"""The planes of each view, loaded from YAML, and their positions in heart and scanner coordinates."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter

from cardiolens.phantom.geometry import Floats, cosine, sine
from cardiolens.phantom.parameters import Parameters, data_file

_STRICT = ConfigDict(extra="forbid")
Vector = tuple[float, float, float]

# direction of the apex in scanner coordinates RAS+: left, forward and down
_APEX = np.array([-0.66, 0.57, -0.49])
_FIRST_SLICE_MM, _LAYER_STEP_MM = 4.0, 8.0
_LAST_SLICE = 0.98  # share of the cavity length: within the apex
SHORT_AXIS = 10  # slices of every stack: a count that varied with the heart would leak truth


@dataclass(frozen=True)
class Size:
    """Resolution of rendered studies."""

    pixels: int
    spacing_mm: float
    phases: int
    beats: int  # heartbeats of first-pass perfusion
    layers: int  # parallel layers of long-axis cine views

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class View:
    """One view: its sequence and its planes."""

    code: str
    sequence: Literal["cine", "lge", "perfusion", "t2"]
    view: str
    kind: Literal["short_axis", "levels", "long_axis"]
    every: int = 1  # short axis: step between the cine positions used ...
    first: int = 0  # ... and the first of them
    levels: tuple[float, ...] = ()  # levels: positions as u
    angle: float = 0.0  # long axis: degrees of the direction shown on image right
    centre: float = 0.0  # long axis: in-plane position of the image centre, mm
    layered: bool = False  # long axis: render the parallel layers of `Size.layers`

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Plane:
    """An image plane in heart coordinates, mm: centre and the directions of image right and image down."""

    centre: Vector
    right: Vector
    down: Vector


@cache
def views() -> dict[str, View]:
    """Return all views by code, in the order of their data file."""
    named = {code: {"code": code, **entry} for code, entry in data_file("views")["views"].items()}
    return TypeAdapter(dict[str, View]).validate_python(named)


@cache
def sizes() -> dict[str, Size]:
    """Return the sizes by name."""
    return TypeAdapter(dict[str, Size]).validate_python(data_file("views")["sizes"])


def planes(view: View, p: Parameters, size: Size) -> list[Plane]:
    """Return the planes of a view in stored order: short axis base to apex, long axis along its normal."""
    if view.kind == "long_axis":
        return _long_axis(view, p, size.layers if view.layered else 1)
    return [Plane((-12.0, 0.0, z), (1.0, 0.0, 0.0), (0.0, -1.0, 0.0)) for z in heights(view, p)]


def heights(view: View, p: Parameters) -> list[float]:
    """Return the z of short-axis planes, mm; a stack always spans the whole heart."""
    if view.kind == "levels":
        return [level * p.length for level in view.levels]
    step = round((_LAST_SLICE * p.length - _FIRST_SLICE_MM) / (SHORT_AXIS - 1), 6)
    return [_FIRST_SLICE_MM + step * s for s in range(view.first, SHORT_AXIS, view.every)]


def _long_axis(view: View, p: Parameters, layers: int) -> list[Plane]:
    along, normal = (cosine(view.angle), sine(view.angle)), (-sine(view.angle), cosine(view.angle))
    z = 0.45 * p.length
    planes = []
    for layer in range(layers):
        offset = (layer - layers // 2) * _LAYER_STEP_MM
        x, y = (view.centre * along[i] + offset * normal[i] for i in (0, 1))
        planes.append(Plane((x, y, z), (*along, 0.0), (0.0, 0.0, -1.0)))
    return planes


def grid(plane: Plane, pixels: int, spacing_mm: float) -> tuple[Floats, Floats, Floats]:
    """Return x, y and z of a plane's pixel centres in heart coordinates, as flat arrays, row by row."""
    steps = (np.arange(pixels) - (pixels - 1) / 2) * spacing_mm
    x, y, z = (
        (plane.centre[i] + steps[:, None] * plane.down[i] + steps[None, :] * plane.right[i]).ravel()
        for i in range(3)
    )
    return x, y, z


def affine(stack: Sequence[Plane], pixels: int, spacing_mm: float, step: Vector) -> NDArray[np.float64]:
    """Return the affine from stored (column, row counted from the bottom, slice) to scanner RAS+, mm.

    `step` is the vector from one slice to the next, in heart coordinates.
    """
    plane = stack[0]
    right, down = np.array(plane.right), np.array(plane.down)
    corner = np.array(plane.centre) - (pixels - 1) / 2 * spacing_mm * (right - down)
    heart = np.eye(4)
    heart[:3] = np.column_stack([right * spacing_mm, -down * spacing_mm, np.array(step), corner])
    return scanner() @ heart


@cache
def scanner() -> NDArray[np.float64]:
    """Return the rotation from heart coordinates to scanner RAS+; the anterior wall faces up and forward."""
    z = _APEX / np.sqrt(np.sum(_APEX * _APEX))
    x = np.cross([0.0, 0.0, 1.0], z)
    x /= np.sqrt(np.sum(x * x))
    transform = np.eye(4)
    transform[:3, :3] = np.round(np.column_stack([x, np.cross(z, x), z]), 9)
    return transform
