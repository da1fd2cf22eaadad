"""The stacks of an exam: the phantom's volumes, their phase-sensitive twins, failed tries, and scouts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom.basal_anatomy import tricuspid_centre
from cardiolens.phantom.geometry import Heart, cosine, sine
from cardiolens.phantom.planes import Plane, Size, Vector, View, views
from cardiolens.phantom.render import frames_of, render, shot_of
from cardiolens.phantom.signal import Appearance, Scanner

Matrix = NDArray[np.float64]
Frames4 = NDArray[np.int16]  # (slice, phase, row, column), as displayed

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
        stack = Stack(
            code,
            view.sequence,
            view.sequence,
            view.view,
            rendered.planes,
            frames,
            systole,
            source=Source(code),
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


_LEFT, _BACK, _HEAD = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_FEET: Vector = (0.0, 0.0, -1.0)
_SHORT = (1.0, 0.0, 0.0), (0.0, -1.0, 0.0)  # image right and down of a short axis, in heart coordinates
_TI_MS = tuple(100.0 + 25.0 * step for step in range(16))
_MOLLI_MS = (100.0, 180.0, 980.0, 1060.0, 1840.0, 1920.0, 2710.0, 3590.0)
_FLOW_MM, _AXIAL = -30.0, 8  # z of the flow plane; number of slices of the axial stack
_RECOVERY_MS = 400.0


@dataclass(frozen=True)
class Camera:
    """The inputs for rendering frames of arbitrary planes."""

    heart: Heart
    size: Size
    look: Appearance
    seed: str
    patient: Matrix  # heart to patient coordinates

    def take(self, name: str, sequence: str, planes: list[Plane], phases: int = 1) -> Frames4:
        """Render planes in the contrast of a sequence; shape (slice, phase, row, column)."""
        view = View(name, sequence, "", "long_axis")  # type: ignore[arg-type]
        size = replace(self.size, phases=phases)
        shot = shot_of(self.heart, view, size, self.look)
        scanner = Scanner(self.seed, view.code, size.pixels, self.look.sigma)
        frames = np.concatenate([frames_of(shot, plane, scanner) for plane in planes])
        return frames.reshape(len(planes), -1, size.pixels, size.pixels)


def scouts(camera: Camera) -> Iterator[Stack]:
    """Yield every stack that an importer must recognise and leave out."""
    yield from _planning(camera)
    yield from _right_heart(camera)
    yield from _flow(camera)
    yield from _mapping(camera)


def _planning(camera: Camera) -> Iterator[Stack]:
    length, patient = camera.heart.parameters.length, camera.patient
    middle: Vector = (0.0, 0.0, 0.4 * length)
    axes = ((_LEFT, _BACK), (_LEFT, _FEET), (_BACK, _FEET))
    three = [in_heart(patient, right, down, middle) for right, down in axes]
    yield _still(camera, "localizer", "cine", three, "localizer", through=True)
    up = np.asarray(_HEAD) @ patient[:3, :3]
    centres = [np.array(middle) + (step - _AXIAL / 2) * 9.0 * up for step in range(_AXIAL)]
    axial = [in_heart(patient, _LEFT, _BACK, vector(centre, 6)) for centre in centres]
    yield _still(camera, "axial", "t2", axial, "anatomy: axial stack")
    two = [Plane((0.0, 0.0, 0.45 * length), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0))]
    yield _still(camera, "scout_2ch", "cine", two, "planning scout", view="2ch")
    yield _still(camera, "scout_sax", "cine", _levels(length, 0.2, 0.5, 0.8), "planning scout", view="sax")


def _right_heart(camera: Camera) -> Iterator[Stack]:
    """Yield cines of the right ventricle: its two-chamber view and its outflow tract."""
    p, phases = camera.heart.parameters, camera.size.phases
    x, y = tricuspid_centre(p)
    beside = [Plane((x, y, 0.4 * p.length), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0))]
    outflow = [Plane((x, y, 0.3 * p.length), (cosine(70), sine(70), 0.0), (0.0, 0.0, -1.0))]
    for name, planes in (("rv_2ch", beside), ("rvot", outflow)):
        frames = camera.take(name, "cine", planes, phases)
        yield Stack(name, "rv_cine", "cine", name, tuple(planes), frames, left_out="right ventricular view")


def _flow(camera: Camera) -> Iterator[Stack]:
    """Yield magnitude and velocity of a plane above the valves, parallel to the short axis."""
    planes = [Plane((-12.0, 0.0, _FLOW_MM), *_SHORT)]
    frames = camera.take("flow", "cine", planes, camera.size.phases)
    velocity = np.clip(2048 + (frames.astype(np.int32) - 1200) // 3, 0, 4095).astype(np.int16)
    for kind, pixels in (("flow", frames), ("flow_phase", velocity)):
        yield Stack(kind, kind, "flow", "ao", tuple(planes), pixels, left_out="phase contrast")


def _mapping(camera: Camera) -> Iterator[Stack]:
    length = camera.heart.parameters.length
    middle, three = _levels(length, 0.5), _levels(length, 0.25, 0.5, 0.75)
    raw = _recovering(camera.take("t1_raw", "t2", three), _MOLLI_MS)
    yield _inverted("t1_raw", three, raw, _MOLLI_MS, "raw images of a map")
    maps = camera.take("t1_map", "t2", three)
    yield _derived("t1_map", three, 700 + maps // 3)
    yield _derived("t2_map", three, 30 + maps // 40)
    scout = _recovering(camera.take("ti_scout", "lge", middle), _TI_MS)
    yield _inverted("ti_scout", middle, scout, _TI_MS, "TI scout")


def _still(
    camera: Camera,
    name: str,
    sequence: str,
    planes: list[Plane],
    reason: str,
    *,
    view: str = "",
    through: bool = False,
) -> Stack:
    frames = camera.take(name, sequence, planes)
    kind = "scout" if name.startswith("scout") else name
    return Stack(name, kind, kind, view, tuple(planes), frames, left_out=reason, through=through)


def _derived(name: str, planes: list[Plane], frames: Frames4) -> Stack:
    return Stack(name, name, name, "sax", tuple(planes), frames.astype(np.int16), left_out="map")


def _inverted(
    name: str, planes: list[Plane], frames: Frames4, times: tuple[float, ...], reason: str
) -> Stack:
    return Stack(name, name, name, "sax", tuple(planes), frames, left_out=reason, inversion_ms=times)


def _levels(length: float, *shares: float) -> list[Plane]:
    return [Plane((-12.0, 0.0, round(share * length, 6)), *_SHORT) for share in shares]


def _recovering(frames: Frames4, times: tuple[float, ...]) -> Frames4:
    """Return one frame per inversion time; frames are darkest near the zero crossing."""
    shares = [round(abs(1 - 2 * _RECOVERY_MS / (_RECOVERY_MS + time)), 4) for time in times]
    return np.concatenate([np.rint(frames * share).astype(np.int16) for share in shares], axis=1)


def in_heart(patient: Matrix, right: Vector, down: Vector, centre: Vector) -> Plane:
    """Return a plane from patient directions (LPS+) and a centre in heart coordinates."""
    turned = (vector(np.asarray(way) @ patient[:3, :3]) for way in (right, down))
    return Plane(centre, *turned)


def vector(values: Sequence[float] | NDArray[np.float64], decimals: int = 9) -> Vector:
    """Return three rounded numbers, without a negative zero."""
    x, y, z = (round(float(value), decimals) + 0.0 for value in values)
    return (x, y, z)
