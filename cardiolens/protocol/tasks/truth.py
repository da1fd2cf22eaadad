"""Ground truth of a study by segment, and the findings derived from it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from cardiolens.protocol.tasks.segments import (
    LEVELS,
    SIX_WALLS,
    WALL_SEGMENTS,
    WALLS,
    in_one_territory,
    touched,
)

Thickness = Literal["normal", "thinned", "thickened"]
Motion = Literal["normal", "hypokinesia", "akinesia", "dyskinesia"]
Layer = Literal["subendocardial", "mid_wall", "subepicardial", "transmural"]
Pattern = Literal["focal", "patchy", "linear", "diffuse", "speckled"]

AMPLITUDES: dict[Motion, str] = {  # of wall motion, by grades that rise; enhanced motion is in Details
    "normal": "normal",
    "hypokinesia": "reduced",
    "akinesia": "absent",
    "dyskinesia": "paradoxical",
}
MOTION_GRADES = tuple(AMPLITUDES)
LAYERS: tuple[Layer, ...] = ("subendocardial", "mid_wall", "subepicardial", "transmural")
SUBENDOCARDIAL_DEPTH = 0.6  # maximum for a subendocardial defect, as a share of the wall
TRANSMURAL_DEPTH = 0.8  # minimum for a transmural defect


@dataclass(frozen=True, slots=True)
class Segment:
    """Wall thickness, contour and motion of one AHA segment."""

    thickness: Thickness = "normal"
    bulging: bool = False
    motion: Motion = "normal"


@dataclass(frozen=True, slots=True)
class Lesion:
    """An area of abnormal signal: LGE or oedema."""

    segments: tuple[int, ...] = ()
    layer: Layer | None = None  # None outside the left ventricular wall
    pattern: Pattern = "focal"
    papillary: bool = False
    rv_free_wall: bool = False


@dataclass(frozen=True, slots=True)
class PerfusionDefect:
    """Segments with reduced enhancement from the endocardium (0) to `depth` (1 is the epicardium)."""

    segments: tuple[int, ...]
    depth: float


@dataclass(frozen=True, slots=True)
class Details:
    """What the fields of `authors-1` ask and those of `openprotocol-1` do not; the defaults are nothing."""

    uneven_wall: bool = False  # thickness differs by wall, within one class
    late: tuple[int, ...] = ()  # segments that contract later than the others
    enhanced: tuple[int, ...] = ()  # segments of enhanced motion
    hyperdynamic: bool = False
    signs: tuple[str, ...] = ()  # special signs but systolic anterior motion and outflow obstruction
    pleural_effusion: bool = False
    lge_signs: tuple[str, ...] = ()  # pericardial, septal_insertion
    lge_low: tuple[Lesion, ...] = ()  # dark cores inside enhancement
    t2_low: tuple[Lesion, ...] = ()
    perfusion_kind: str = "defect"
    perfusion_layers: tuple[str, ...] = ()  # of a defect that is not (only) on the endocardial side


@dataclass(frozen=True, slots=True)
class Chambers:
    """Sizes and function of the chambers; values of the catalogue's options."""

    lv_size: str = "normal"
    lv_systolic: str = "normal"
    lv_diastolic: str = "normal"
    rv_size: str = "normal"
    rv_wall: tuple[str, ...] = ()  # abnormal values only
    rv_motion: str = "normal"
    rv_systolic: str = "normal"
    atria: tuple[str, ...] = ()  # enlarged atria only


@dataclass(frozen=True, slots=True)
class Truth:
    """Ground truth of one study, the source of its questions; segment n is `segments[n - 1]`."""

    segments: tuple[Segment, ...] = (Segment(),) * 17
    chambers: Chambers = Chambers()
    av_valves: tuple[str, ...] = ()
    outflow: tuple[str, ...] = ()
    pericardium: str = "none"
    lge: tuple[Lesion, ...] = ()
    perfusion: PerfusionDefect | None = None
    oedema: tuple[Lesion, ...] = ()
    etiology: str = "normal"
    subtype: str | None = None
    details: Details = Details()
    indeterminate: tuple[str, ...] = ()  # ids of subtasks without a question


def findings(truth: Truth) -> dict[str, tuple[str, ...]]:
    """Return the values of each finding by name (`sequence.field`), of both protocols; empty if void."""
    by_sequence: dict[str, dict[str, tuple[str, ...]]] = {
        "multi": {"etiology": (truth.etiology,), "subtype": (truth.subtype,) if truth.subtype else ()},
        "cine": _cine(truth) | _cine_of_authors(truth),
        "lge": _lge(truth),
        "perfusion": _perfusion(truth),
        "t2": _t2(truth),
    }
    return {
        f"{sequence}.{field}": values
        for sequence, found in by_sequence.items()
        for field, values in found.items()
    }


def _cine(truth: Truth) -> dict[str, tuple[str, ...]]:
    """Return the findings on cine: chambers, left ventricular wall and motion, valves, pericardium."""
    numbered = tuple(enumerate(truth.segments, start=1))
    walls = tuple(number for number, segment in numbered if segment.bulging or segment.thickness != "normal")
    moving = tuple(number for number, segment in numbered if segment.motion != "normal")
    kinds: set[str] = {segment.thickness for segment in truth.segments}
    kinds |= {"bulging" for segment in truth.segments if segment.bulging}
    chambers = truth.chambers
    return {
        "lv_size": (chambers.lv_size,),
        "lv_wall": _or_normal([kind for kind in ("thinned", "thickened", "bulging") if kind in kinds]),
        "lv_wall_levels": touched(walls, LEVELS),
        "lv_wall_regions": touched(walls, WALLS),
        "lv_wall_distribution": (wall_distribution(walls),) if walls else (),
        "lv_motion": (max((segment.motion for segment in truth.segments), key=MOTION_GRADES.index),),
        "lv_motion_levels": touched(moving, LEVELS),
        "lv_motion_regions": touched(moving, WALLS),
        "lv_motion_distribution": (motion_distribution(moving),) if moving else (),
        "lv_systolic": (chambers.lv_systolic,),
        "lv_diastolic": (chambers.lv_diastolic,),
        "rv_size": (chambers.rv_size,),
        "rv_wall": _or_normal(chambers.rv_wall),
        "rv_motion": (chambers.rv_motion,),
        "rv_systolic": (chambers.rv_systolic,),
        "atria": _or_normal(chambers.atria),
        "av_valves": _or_normal(truth.av_valves),
        "outflow": _or_normal(truth.outflow),
        "pericardium": (truth.pericardium,),
    }


def _cine_of_authors(truth: Truth) -> dict[str, tuple[str, ...]]:
    """Return the cine findings of `authors-1`."""
    details, chambers = truth.details, truth.chambers
    in_walls = {segment.thickness for segment in truth.segments[: len(WALL_SEGMENTS)]}
    shapes = {
        "thinned": any(segment.thickness == "thinned" for segment in truth.segments),
        "heterogeneous": details.uneven_wall or len(in_walls) > 1,
        "thickened": any(segment.thickness == "thickened" for segment in truth.segments),
        "bulging": any(segment.bulging for segment in truth.segments),
    }
    motions = {segment.motion for segment in truth.segments}
    amplitudes = [AMPLITUDES[grade] for grade in MOTION_GRADES[1:] if grade in motions]
    amplitudes += ["enhanced"] if details.enhanced else []
    stenosis = "aortic_stenosis" in details.signs
    signs = {
        "systolic_anterior_motion": "systolic_anterior_motion" in truth.outflow,
        "outflow_obstruction": "outflow_jet" in truth.outflow and not stenosis,
    }
    reduced = chambers.lv_systolic != "normal"
    return {
        "wall_thickness": _or_normal([name for name, is_so in shapes.items() if is_so]),
        "wall_coordination": ("uncoordinated" if details.late or "dyskinesia" in motions else "coordinated",),
        "wall_amplitude": _or_normal(amplitudes),
        "systolic_function": ("reduced" if reduced else "enhanced" if details.hyperdynamic else "normal",),
        "diastolic_function": ("normal" if chambers.lv_diastolic == "normal" else "restrictive",),
        "mitral_regurgitation": _presence("mitral_regurgitation" in truth.av_valves),
        "tricuspid_regurgitation": _presence("tricuspid_regurgitation" in truth.av_valves),
        "aortic_regurgitation": _presence("aortic_regurgitation" in truth.outflow),
        "special_signs": (*(name for name, is_so in signs.items() if is_so), *details.signs),
        "pericardial_effusion": _presence(truth.pericardium != "none"),
        "pleural_effusion": _presence(details.pleural_effusion),
    }


def _lge(truth: Truth) -> dict[str, tuple[str, ...]]:
    """Return the findings on LGE; papillary muscle counts as a level, the RV free wall as a region.

    Those of `authors-1` are of high signal, and of low signal within it.
    """
    low, special = truth.details.lge_low, truth.details.lge_signs
    high, rv = places(truth.lge), any(lesion.rv_free_wall for lesion in truth.lge)
    segments = {number for lesion in truth.lge for number in lesion.segments}
    special += ("right_ventricle",) if rv else ()
    abnormal = bool(truth.lge or special)
    return {
        "enhancement": _presence(bool(truth.lge)),
        "levels": high["segments"],
        "regions": touched(segments, WALLS) + (("rv_free_wall",) if rv else ()),
        "distribution": tuple(dict.fromkeys(of_four(lesion.pattern) for lesion in truth.lge)),
        "layers": tuple(dict.fromkeys(lesion.layer for lesion in truth.lge if lesion.layer)),
        "enhancement_status": ("abnormal" if abnormal else "normal",),
        "signal_kind": ("mixed" if low else "high",) if abnormal else (),
        **{f"high_{field}": values for field, values in high.items()},
        "special_description": special,
        **{f"low_{field}": values for field, values in places(low).items()},
    }


def _perfusion(truth: Truth) -> dict[str, tuple[str, ...]]:
    """Return the findings on first-pass perfusion; no slice of the first pass shows the apex."""
    defect, layers = truth.perfusion, truth.details.perfusion_layers
    if defect is None:
        void = ("levels", "regions", "distribution", "segments", "walls", "kind", "layers")
        return {"perfusion": ("uniform",), "status": ("normal",), **dict.fromkeys(void, ())}
    levels = tuple(level for level in touched(defect.segments, LEVELS) if level != "apex")
    from_inside: Layer = "subendocardial" if defect.depth <= SUBENDOCARDIAL_DEPTH else "transmural"
    return {
        "perfusion": ("defect",),
        "levels": levels,
        "regions": touched(defect.segments, WALLS),
        "distribution": ("non_territorial" if layers else defect_distribution(defect),),
        "status": ("abnormal",),
        "segments": levels,
        "walls": touched(defect.segments, SIX_WALLS),
        "kind": (truth.details.perfusion_kind,),
        "layers": layers or (from_inside,),
    }


def _t2(truth: Truth) -> dict[str, tuple[str, ...]]:
    """Return the findings on T2-weighted images; `signal` is void if it is low, which no option names.

    Places of `authors-1` are those of high and low signal together.
    """
    high, low = truth.oedema, truth.details.t2_low
    segments = {number for lesion in high for number in lesion.segments}
    status = {(False, False): "normal", (True, False): "high", (False, True): "low", (True, True): "mixed"}
    found = places((*high, *low))
    return {
        "signal": ("increased",) if high else () if low else ("normal",),
        "levels": touched(segments, LEVELS),
        "regions": touched(segments, WALLS),
        "distribution": (oedema_distribution(high),) if high else (),
        "signal_status": (status[bool(high), bool(low)],),
        **found,
        "segments": tuple(name for name in found["segments"] if name != "papillary"),  # no option of it
    }


def places(lesions: Collection[Lesion]) -> dict[str, tuple[str, ...]]:
    """Return segments, walls, patterns and layers of lesions under the names of `authors-1`.

    Patterns are those of the left ventricular wall: a continuous lesion is transmural, or else a band.
    """
    segments = {number for lesion in lesions for number in lesion.segments}
    papillary = ("papillary",) if any(lesion.papillary for lesion in lesions) else ()
    layers = {lesion.layer for lesion in lesions}
    return {
        "segments": touched(segments, LEVELS) + papillary,
        "walls": touched(segments, SIX_WALLS),
        "patterns": tuple(dict.fromkeys(_of_five(lesion) for lesion in lesions if lesion.segments)),
        "layers": tuple(layer for layer in LAYERS if layer in layers) + papillary,
    }


def _of_five(lesion: Lesion) -> str:
    """Return the pattern among those of `authors-1`, which know no focal lesion."""
    if lesion.pattern != "focal":
        return lesion.pattern
    return "transmural" if lesion.layer == "transmural" else "linear"


def of_four(pattern: Pattern) -> str:
    """Return the pattern among those of `openprotocol-1`, which know no specks."""
    return "patchy" if pattern == "speckled" else pattern


def _presence(present: bool) -> tuple[str, ...]:
    return ("present",) if present else ("absent",)


def wall_distribution(abnormal: Collection[int]) -> str:
    """Classify the distribution of segments with abnormal thickness or contour (C05)."""
    count = len(set(abnormal) & set(WALL_SEGMENTS))
    if count >= 12:
        return "diffuse"
    apical = LEVELS["apical"] | LEVELS["apex"]
    if set(abnormal) <= apical and len(set(abnormal)) >= 3:
        return "apical"
    return "focal" if count <= 2 else "regional"


def motion_distribution(abnormal: Collection[int]) -> str:
    """Classify the distribution of segments with abnormal motion (C09)."""
    if len(set(abnormal) & set(WALL_SEGMENTS)) >= 12:
        return "global"
    return "one_territory" if in_one_territory(abnormal) else "several_territories"


def defect_distribution(defect: PerfusionDefect) -> str:
    """Classify the distribution of a perfusion defect (P04)."""
    subendocardial = defect.depth <= SUBENDOCARDIAL_DEPTH
    if subendocardial and len(set(defect.segments) & set(WALL_SEGMENTS)) >= 10:
        return "circumferential"
    if in_one_territory(defect.segments) and subendocardial:
        return "subendocardial_territory"
    if in_one_territory(defect.segments) and defect.depth >= TRANSMURAL_DEPTH:
        return "transmural_territory"
    return "non_territorial"


def oedema_distribution(lesions: Collection[Lesion]) -> str:
    """Classify the distribution of raised T2 signal (T04)."""
    segments = {number for lesion in lesions for number in lesion.segments}
    if len(segments & set(WALL_SEGMENTS)) >= 12:
        return "diffuse"
    if len(lesions) > 1 or any(of_four(lesion.pattern) == "patchy" for lesion in lesions):
        return "patchy"
    if len(segments) <= 2:
        return "focal"
    return "segmental" if in_one_territory(segments) else "patchy"


def _or_normal(values: Collection[str]) -> tuple[str, ...]:
    return tuple(values) or ("normal",)
