"""The stacks of an exam: the phantom's volumes, their phase-sensitive twins, and failed tries."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.planes import Plane, Size, views
from cardiolens.phantom.render import render
from cardiolens.phantom.signal import Appearance

Frames4 = NDArray[np.int16]  # (slice, phase, row, column), as displayed

KINDS = {"cine": "cine", "lge": "lge", "perfusion": "perfusion", "t2": "t2"}  # kind of stack by sequence
_TENTHS = 9, 20  # slope of a phase-sensitive image: 9 / 20


@dataclass(frozen=True)
class Source:
    """Origin of pixels in a volume v of the NIfTI cohort: v * multiply // divide + add."""

    volume: str
    multiply: int = 1
    divide: int = 1
    add: int = 0


@dataclass(frozen=True)
class Stack:
    """One acquisition of a scanner: one or more planes over time."""

    name: str  # unique within the exam
    kind: str  # key of the acquisition in the dialect: cine, lge, psir, localizer, ...
    sequence: str
    view: str
    planes: tuple[Plane, ...]
    frames: Frames4
    es: int | None = None
    left_out: str = ""  # reason why the stack is no volume of the study
    source: Source | None = None
    inversion_ms: tuple[float, ...] = ()  # by phase
    through: bool = False  # planes of different orientations, not a parallel stack

    @property
    def phases(self) -> int:
        return int(self.frames.shape[1])

    @property
    def spacing_mm(self) -> float | None:
        """Distance of neighbouring slices; None for a single plane or planes that are not parallel."""
        if self.through or len(self.planes) == 1:
            return None
        step = np.array(self.planes[1].centre) - np.array(self.planes[0].centre)
        return float(np.sqrt(np.sum(step * step)))

    @property
    def acquisition(self) -> str:
        """The name that all reconstructions and tries of this acquisition share."""
        return self.name.removesuffix("_try1").removesuffix("_psir").removesuffix("_phase")


def volumes(heart: Heart, size: Size, look: Appearance, seed: str, *, psir_offset: int) -> Iterator[Stack]:
    """Yield the stacks of the NIfTI cohort, each LGE stack followed by its phase-sensitive twin."""
    for code, view in views().items():
        rendered = render(heart, view, size, look=look, seed=seed, masks=False)
        frames = rendered.frames.reshape(len(rendered.planes), rendered.phases, size.pixels, size.pixels)
        systole = rendered.es_phase if view.sequence == "cine" else None
        kind = KINDS[view.sequence]
        stack = Stack(
            code, kind, view.sequence, view.view, rendered.planes, frames, systole, source=Source(code)
        )
        yield stack
        if view.sequence == "lge":
            yield phase_sensitive(stack, psir_offset)


def phase_sensitive(stack: Stack, offset: int) -> Stack:
    """Return the phase-sensitive reconstruction of an LGE stack: the same frames on another scale."""
    source = Source(stack.name, *_TENTHS, offset)
    frames = (stack.frames.astype(np.int32) * source.multiply // source.divide + source.add).astype(np.int16)
    return replace(stack, name=f"{stack.name}_psir", kind="psir", frames=frames, source=source)


def failed(stack: Stack) -> Stack:
    """Return a failed try of a stack: its frames with a ghost half a field of view away."""
    levels = stack.frames.astype(np.int32)
    ghost = np.roll(levels, levels.shape[-2] // 2, axis=-2)
    frames = ((2 * levels + ghost) // 3).astype(np.int16)
    reason = "done again: the later one counts"
    return replace(stack, name=f"{stack.name}_try1", frames=frames, left_out=reason, source=None)
