"""Derive the truth of a study from measurements of its modelled heart (protocol 10.3)."""

import numpy as np

from cardiolens.phantom.bands import GuardBandError, classify
from cardiolens.phantom.geometry import RV_LENGTH, Floats, Heart, rv_egg, segment_middle, tricuspid_plane
from cardiolens.phantom.lesions import islands
from cardiolens.phantom.measure import Measures, measure
from cardiolens.phantom.outpouching import DIRECTION, HEIGHT, bump_radius
from cardiolens.phantom.parameters import LesionShape, Parameters
from cardiolens.phantom.visible import check_oedema_seen
from cardiolens.protocol.tasks.segments import SEGMENTS, WALL_SEGMENTS
from cardiolens.protocol.tasks.truth import Chambers, Layer, Lesion, Pattern, PerfusionDefect, Segment, Truth

_LAYERS: tuple[tuple[Layer, tuple[float, float], tuple[float, float]], ...] = (
    # layer, range of the inner depth, range of the outer depth
    ("subendocardial", (0.0, 0.05), (0.0, 0.60)),
    ("transmural", (0.0, 0.05), (0.80, 1.0)),
    ("mid_wall", (0.20, 1.0), (0.0, 0.80)),
    ("subepicardial", (0.45, 1.0), (0.95, 1.0)),
)
_THIN_WALL_MM = 6.0  # in a thinner wall the layer of a lesion is not visible


def truth(heart: Heart, etiology: str, subtype: str | None) -> Truth:
    """Return the truth of a heart; GuardBandError names the first ambiguous value."""
    p = heart.parameters
    check_oedema_seen(p)
    return Truth(
        segments=tuple(segment(heart, number) for number in SEGMENTS),
        chambers=chambers(heart, measure(heart)),
        av_valves=_switched_on(
            mitral_regurgitation=p.mitral_regurgitation,
            tricuspid_regurgitation=p.tricuspid_regurgitation,
            restricted_mitral_opening=p.restricted_mitral_opening,
        ),
        outflow=_switched_on(
            outflow_jet=p.outflow_jet,
            systolic_anterior_motion=p.systolic_anterior_motion,
            aortic_regurgitation=p.aortic_regurgitation,
        ),
        pericardium=classify("pericardium", p.fluid),
        lge=_lesions(p.lge, heart),
        perfusion=_defect(p),
        oedema=_lesions(p.oedema, heart),
        etiology=etiology,
        subtype=subtype,
    )


def segment(heart: Heart, number: int) -> Segment:
    """Return wall and motion of one segment, read from the model at the segment's middle."""
    bulge = _middle(heart.outer, number) - heart.parameters.radius
    return Segment(
        thickness=classify("thickness", _middle(heart.wall, number)),  # type: ignore[arg-type]
        bulging=classify("bulging", round(bulge, 9)) == "yes",
        motion=classify("motion", _middle(heart.shortening, number)),  # type: ignore[arg-type]
    )


def _middle(field: Floats, number: int) -> float:
    """Return a field's value in the middle of a segment, unaffected by neighbouring segments."""
    return round(float(field[segment_middle(number)]), 9)


def chambers(heart: Heart, measured: Measures) -> Chambers:
    """Return size and function of the chambers."""
    p = heart.parameters
    walls = [name for name in (classify("rv_thickness", p.rv_wall),) if name != "normal"]
    walls += ["bulging"] if classify("rv_bulging", p.rv_bump) == "yes" else []
    outward = p.rv_bump > 0 and classify("rv_outward", systolic_outward_mm(heart)) == "yes"
    atria = {"left": p.la_radius, "right": p.ra_radius}
    return Chambers(
        lv_size=classify("lv_size", measured.lv_edv_index),
        lv_systolic=classify("lv_systolic", measured.lv_ef),
        lv_diastolic=classify("lv_diastolic", p.early_filling),
        rv_size=classify("rv_size", measured.rv_edv_index),
        rv_wall=tuple(walls),
        rv_motion="dyskinesia" if outward else classify("rv_motion", p.rv_contraction),
        rv_systolic=classify("rv_systolic", measured.rv_ef),
        atria=tuple(name for name, radius in atria.items() if classify("atrium", radius) == "enlarged"),
    )


def systolic_outward_mm(heart: Heart) -> float:
    """Return the outward motion of the outpouching's middle from end-diastole to end-systole, mm."""
    return round(_free_wall_mm(heart, 1.0) - _free_wall_mm(heart, 0.0), 6)


def _free_wall_mm(heart: Heart, a: float) -> float:
    """Return the distance from the septal chord's middle (x = -0.5 R_e) to the outpouching's middle, mm."""
    p = heart.parameters
    z_r = tricuspid_plane(p, a)
    z = np.array([z_r + HEIGHT * (RV_LENGTH * p.length - z_r)])
    egg = rv_egg(heart, a, z)
    cos, sin = DIRECTION
    radius = 1 / np.sqrt((cos / egg.left) ** 2 + (sin / egg.vertical) ** 2)
    bump = bump_radius(p, a, np.array(cos), np.array(sin), egg.height)
    return float((radius + bump - egg.centre)[0])


def _lesions(shapes: tuple[LesionShape, ...], heart: Heart) -> tuple[Lesion, ...]:
    lesions = tuple(_lesion(shape, heart) for shape in shapes)
    for index, lesion in enumerate(lesions):
        for other in lesions[index + 1 :]:
            if lesion.layer != other.layer and set(lesion.segments) & set(other.segments):
                raise GuardBandError("lesion_layer", "differs between two lesions of one segment")
    return lesions


def _lesion(shape: LesionShape, heart: Heart) -> Lesion:
    if not shape.segments:
        return Lesion(pattern="focal", papillary=shape.papillary, rv_free_wall=shape.rv_free_wall)
    thinnest = min(heart.parameters.wall_in(number) for number in shape.segments)
    layer = _layer(shape.depth)
    if thinnest < _THIN_WALL_MM and layer != "transmural":
        raise GuardBandError("lesion_layer", f"{layer} cannot be shown in a wall of {thinnest:g} mm")
    classify("visible_lesion", round((shape.depth[1] - shape.depth[0]) * thinnest, 9))
    return Lesion(
        tuple(sorted(shape.segments)),
        layer,
        _pattern(shape, layer, heart.parameters.length),
        papillary=shape.papillary,
        rv_free_wall=shape.rv_free_wall,
    )


def _layer(depth: tuple[float, float]) -> Layer:
    for layer, inner, outer in _LAYERS:
        if inner[0] <= depth[0] <= inner[1] and outer[0] <= depth[1] <= outer[1]:
            return layer
    raise GuardBandError("lesion_layer", f"of depth {depth[0]:g} to {depth[1]:g} is none of the four")


def _pattern(shape: LesionShape, layer: Layer, length: float) -> Pattern:
    if len(set(shape.segments) & set(WALL_SEGMENTS)) >= 12:
        return "diffuse"
    if shape.pattern == "patchy" and len(list(islands(shape, length))) >= 3:
        return "patchy"
    thin = round(shape.depth[1] - shape.depth[0], 9) <= 0.4
    if len(shape.segments) >= 3 and layer in {"mid_wall", "subepicardial"} and thin:
        return "linear"
    return "focal"


def _defect(p: Parameters) -> PerfusionDefect | None:
    if p.defect is None:
        return None
    classify("perfusion_depth", p.defect.depth)
    return PerfusionDefect(tuple(sorted(p.defect.segments)), p.defect.depth)


def _switched_on(**switches: bool) -> tuple[str, ...]:
    return tuple(name for name, on in switches.items() if on)
