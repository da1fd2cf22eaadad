"""Derive the truth of a study from measurements of its modelled heart (protocol 10.3)."""

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom.geometry import (
    ANGLES,
    BUMP_DIRECTION,
    BUMP_HEIGHT,
    HEIGHTS,
    RV_LENGTH,
    Floats,
    Heart,
    bump_radius,
    rv_egg,
    segment_map,
    segment_middle,
    tricuspid_plane,
)
from cardiolens.phantom.lesions import INSERTIONS, Lesions, islands
from cardiolens.phantom.measure import Measures, measure
from cardiolens.phantom.parameters import DefectShape, LesionShape, Parameters, data_file
from cardiolens.phantom.planes import View, heights, views
from cardiolens.phantom.signal import uptake_share
from cardiolens.protocol.tasks.segments import LEVELS, SEGMENTS, WALL_SEGMENTS
from cardiolens.protocol.tasks.truth import (
    Chambers,
    Details,
    Layer,
    Lesion,
    Pattern,
    PerfusionDefect,
    Segment,
    Truth,
)

_LAYERS: tuple[tuple[Layer, tuple[float, float], tuple[float, float]], ...] = (
    # layer, range of the inner depth, range of the outer depth
    ("subendocardial", (0.0, 0.05), (0.0, 0.60)),
    ("transmural", (0.0, 0.05), (0.80, 1.0)),
    ("mid_wall", (0.20, 1.0), (0.0, 0.80)),
    ("subepicardial", (0.45, 1.0), (0.95, 1.0)),
)
_INSERTION_GAP_DEG = 2.0  # at most, between an island and the insertion that it is at
_LATE_BEAT = 39  # the last of the shortest first pass
_THIN_WALL_MM = 6.0  # in a thinner wall the layer of a lesion is not visible
_ARC_DEG = 10.0  # shortest visible arc of a lesion in a short-axis slice
_LENGTH_MM = 5.0  # shortest visible length of a lesion in a long-axis slice


def truth(heart: Heart, etiology: str, subtype: str | None) -> Truth:
    """Return the truth of a heart; GuardBandError names the first ambiguous value."""
    p, measured = heart.parameters, measure(heart)
    check_seen(p)
    return Truth(
        segments=tuple(segment(heart, number) for number in SEGMENTS),
        chambers=chambers(heart, measured),
        av_valves=_switched_on(
            mitral_regurgitation=p.mitral_regurgitation,
            tricuspid_regurgitation=p.tricuspid_regurgitation,
            restricted_mitral_opening=p.restricted_mitral_opening,
        ),
        outflow=_switched_on(
            outflow_jet=p.outflow_jet or classify("aortic_opening", p.aortic_opening) == "stenosis",
            systolic_anterior_motion=p.systolic_anterior_motion,
            aortic_regurgitation=p.aortic_regurgitation,
        ),
        pericardium=classify("pericardium", p.fluid),
        lge=_lesions(p.lge, heart),
        perfusion=_defect(p),
        oedema=_lesions(p.oedema, heart),
        details=details(heart, measured),
        etiology=etiology,
        subtype=subtype,
    )


def details(heart: Heart, measured: Measures) -> Details:
    """Return what `authors-1` asks beyond `openprotocol-1`, measured as the other labels are."""
    p = heart.parameters
    kind, layers = _perfusion_kind(p.defect)
    contraction = {number: _middle(heart.shortening, number) for number in SEGMENTS}
    return Details(
        uneven_wall=_is_uneven(heart),
        late=tuple(n for n in SEGMENTS if classify("delay", p.delay_in(n)) == "yes"),
        enhanced=tuple(n for n, share in contraction.items() if classify("enhanced", share) == "yes"),
        hyperdynamic=classify("hyperdynamic", measured.lv_ef) == "yes",
        signs=_switched_on(
            spade_sign=classify("spade", _apical_share(heart)) == "yes",
            aortic_stenosis=classify("aortic_opening", p.aortic_opening) == "stenosis",
            dilated_pulmonary_artery=classify("pulmonary_artery", p.pulmonary_artery) == "dilated",
        ),
        pleural_effusion=classify("pleural_fluid", p.pleural_fluid) == "yes",
        lge_signs=_switched_on(
            pericardial=p.pericardial_enhancement,
            septal_insertion=any(_at_insertion(shape, p.length) for shape in p.lge),
        ),
        lge_low=_lesions(p.lge_low, heart),
        t2_low=_lesions(p.t2_low, heart),
        perfusion_kind=kind,
        perfusion_layers=layers,
    )


def _is_uneven(heart: Heart) -> bool:
    """Return whether thickness differs by wall where all walls are of one class."""
    walls = [_middle(heart.wall, number) for number in WALL_SEGMENTS]
    one_class = len({classify("thickness", wall) for wall in walls}) == 1
    return one_class and classify("unevenness", max(walls) / min(walls)) == "yes"


def _apical_share(heart: Heart) -> float:
    """Return the radius of the apical cavity as a share of that of an even cavity."""
    radii = [_middle(heart.outer, number) for number in LEVELS["apical"]]
    return round(sum(radii) / len(radii) / heart.parameters.radius, 9)


def _at_insertion(shape: LesionShape, length: float) -> bool:
    """Return whether islands reach the junctions of septum and right ventricle."""
    if shape.pattern != "patchy":
        return False
    gaps = [
        abs(abs(island.phi - angle) - island.width / 2)
        for island in islands(shape, length)
        for angle in INSERTIONS
    ]
    return min(gaps) <= _INSERTION_GAP_DEG


def _perfusion_kind(defect: DefectShape | None) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a defect, and its layers unless its depth from the endocardium gives them."""
    if defect is None:
        return Details().perfusion_kind, ()
    papillary = ("papillary",) if defect.papillary else ()
    only_depth = defect.inner == 0 and not papillary
    layers = () if only_depth else (_layer((defect.inner, defect.depth)), *papillary)
    return classify("uptake", uptake_share(defect, _LATE_BEAT)), layers


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
    z = np.array([z_r + BUMP_HEIGHT * (RV_LENGTH * p.length - z_r)])
    egg = rv_egg(heart, a, z)
    cos, sin = BUMP_DIRECTION
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
    if shape.pattern == "speckled":
        return "speckled"
    if shape.pattern == "patchy" and len(list(islands(shape, length))) >= 3:
        return "patchy"
    thin = round(shape.depth[1] - shape.depth[0], 9) <= 0.4
    if len(shape.segments) >= 3 and layer in {"mid_wall", "subepicardial"} and thin:
        return "linear"
    return "focal"


def _defect(p: Parameters) -> PerfusionDefect | None:
    if p.defect is None:
        return None
    if p.defect.inner == 0:
        classify("perfusion_depth", p.defect.depth)
    return PerfusionDefect(tuple(sorted(p.defect.segments)), p.defect.depth)


def _switched_on(**switches: bool) -> tuple[str, ...]:
    return tuple(name for name, on in switches.items() if on)


class GuardBandError(ValueError):
    """A measured value lies between two classes."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name = name


def classify(name: str, value: float) -> str:
    """Return the class of a value; GuardBandError if the value lies between two classes."""
    for label, (low, high) in data_file("bands")[name].items():
        if low <= value <= high:
            return str(label)
    raise GuardBandError(name, f"is {value:.4g}, between two classes")


def check_seen(p: Parameters) -> None:
    """Raise GuardBandError if a lesion that the parameters name is not to be seen."""
    lesions = Lesions(p.oedema, p.length, p.t2_low)
    areas = (*lesions.areas, *lesions.low_areas)
    for shape, area in zip((*p.oedema, *p.t2_low), areas, strict=True):
        if unseen := [number for number in shape.segments if not _is_seen(area, number, p)]:
            raise GuardBandError("oedema_seen", f"fails: no T2 slice cuts the lesion in segments {unseen}")
    for core in p.lge_low:
        if not any(_lies_in(core, shape) for shape in p.lge):
            raise GuardBandError("lge_low", f"in {core.segments} lies outside continuous enhancement")
    if p.pericardial_enhancement and classify("pericardium", p.fluid) == "none":
        raise GuardBandError("pericardial_enhancement", f"cannot be shown in {p.fluid:g} mm of fluid")


def _lies_in(core: LesionShape, shape: LesionShape) -> bool:
    if not core.segments:
        return core.papillary and shape.papillary
    deep = shape.depth[0] <= core.depth[0] and core.depth[1] <= shape.depth[1]
    return deep and shape.pattern == "continuous" and set(core.segments) <= set(shape.segments)


def _is_seen(area: NDArray[np.bool_], segment: int, p: Parameters) -> bool:
    own_area = area & (segment_map() == segment)
    return any(_cuts(view, own_area, p) for view in views().values() if view.sequence == "t2")


def _cuts(view: View, area: NDArray[np.bool_], p: Parameters) -> bool:
    """Return whether one slice of a view shows enough of an area of (angle, height) bins."""
    if view.kind == "long_axis":  # a plane through the long axis: two opposite angles, all heights
        angles = [round((view.angle + turn) * ANGLES / 360) % ANGLES for turn in (0, 180)]
        return bool(area[angles].sum(axis=1).max() * p.length / (HEIGHTS - 1) >= _LENGTH_MM)
    rows = [round(min(z / p.length, 1.0) * (HEIGHTS - 1)) for z in heights(view, p)]
    return bool(area[:, rows].sum(axis=0).max() * 360 / ANGLES >= _ARC_DEG)
