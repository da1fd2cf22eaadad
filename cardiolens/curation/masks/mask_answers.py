"""Measure masks and derive answers by finding, with a reason for every uncertain answer."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy import ndimage

from cardiolens.curation.masks.labels import CAVITY, LabelMap, LesionKind, MaskReason, Sex, Tissue, quantities
from cardiolens.curation.masks.mask_stack import Mask, Masked
from cardiolens.curation.masks.wall import LEAST_SLICES, MOST_TURN, Wall, wall_of
from cardiolens.protocol.tasks.segments import LEVELS, SIX_WALLS, WALL_SEGMENTS, WALLS, touched
from cardiolens.protocol.tasks.truth import Lesion, Pattern, oedema_distribution, wall_distribution

_BASE_POINTS = 6.5  # most EF points gained by a slice that the base leaves in systole (10.5)
_AFFECTED, _UNAFFECTED = 0.05, 0.02  # share of a segment's wall; shares in between are in doubt
_LEAST_ML = 0.15  # smallest island that counts as a lesion
_EVEN, _UNEVEN = 1.35, 1.6  # thickest segment / thinnest, at most and at least; in between in doubt
_APICAL = frozenset({13, 14, 15, 16})
_LAYERS = (  # ranges of inner and outer depth: protocol 10.3, widened by the pixel size
    ("subendocardial", (-1.0, 0.2), (0.0, 0.68)),
    ("transmural", (-1.0, 0.2), (0.78, 2.0)),
    ("mid_wall", (0.2, 1.0), (0.0, 0.82)),
    ("subepicardial", (0.35, 1.0), (0.88, 2.0)),
)
_PLACES = ("segments", "walls", "layers")
_THICKNESS = ("lv_wall", "lv_wall_levels", "lv_wall_regions", "lv_wall_distribution", "wall_thickness")
_CHAMBERS = (("lv", CAVITY), ("rv", (Tissue.RV_BLOOD,)))
_TOUCHING = np.ones((3, 3, 3), dtype=bool)
Segments = frozenset[int]
Rule = Callable[[Collection[int]], tuple[str, ...]]
_levels, _regions, _six_walls = (partial(touched, groups=groups) for groups in (LEVELS, WALLS, SIX_WALLS))


@dataclass(frozen=True, slots=True)
class Answer:
    """Values of a finding and their measurements in words; `reason` if uncertain, no values if unknown."""

    values: tuple[str, ...] = ()
    reason: MaskReason | None = None
    words: str = ""
    volume_id: str = ""


Answers = dict[str, Answer]
_BETWEEN = Answer(reason=MaskReason.BETWEEN_GRADES)
_IN_DOUBT = Answer(reason=MaskReason.SEGMENT_IN_DOUBT)
_UNLABELLED = Answer(reason=MaskReason.STRUCTURE_NOT_LABELLED)


@dataclass(slots=True)
class Measures:
    """Measurements and answers from a study's masks; names of numbers include units."""

    numbers: dict[str, float] = field(default_factory=dict)
    answers: Answers = field(default_factory=dict)

    def add(self, finding: str, answers: Answers, volume_id: str, words: str = "") -> None:
        """Add answers that a volume gives to `finding`; `words`: of those without words of their own."""
        for name, answer in answers.items():
            text = answer.words or (words if answer.values or answer.reason else "")
            self.answers[f"{finding}.{name}"] = replace(answer, volume_id=volume_id, words=text)


def cine(masked: Masked, sex: Sex | None, bsa: float | None, into: Measures) -> None:
    """Measure volumes, ejection fractions and wall thickness of a cine."""
    ed, es = masked.ed, masked.es
    for side, tissues in _CHAMBERS:
        if edv := ed.volume_ml(ed.of(tissues)):
            into.numbers[f"{side}_edv_ml"] = edv
            if es is not None and (esv := es.volume_ml(es.of(tissues))):
                into.numbers |= {f"{side}_esv_ml": esv, f"{side}_ef_percent": 100 * (edv - esv) / edv}
        size, ejection = _size(side, into.numbers, sex, bsa), _ejection(side, into.numbers, sex)
        into.add("cine", {f"{side}_size": size, f"{side}_systolic": ejection}, masked.volume_id)
    ed_phase, es_phase = masked.moments
    if es_phase is not None:
        into.numbers |= {"ed_phase": ed_phase + 1.0, "es_phase": es_phase + 1.0}  # as captions number them
    wall = wall_of(ed)
    thickness = wall.thickness() if _has_segments(masked, wall) else {}
    into.numbers |= {f"thickness_mm_{segment}": value for segment, value in thickness.items()}
    words = ", ".join(f"{segment}: {value:.1f} mm" for segment, value in thickness.items())
    into.add("cine", _thickness(thickness, sex), masked.volume_id, words)


def lesions(masked: Masked, kind: LesionKind, labels: LabelMap, into: Measures) -> None:
    """Measure scar or oedema: volume, segments, layers, pattern."""
    tissues = [Tissue.SCAR, Tissue.OBSTRUCTION] if kind == "scar" else [Tissue.OEDEMA]
    lesion = _Lesion(masked, kind, labels, wall_of(masked.ed), tissues)
    into.numbers[f"{kind}_ml"] = masked.ed.volume_ml(lesion.inside)
    into.numbers |= {f"{kind}_share_{segment}": part for segment, part in (lesion.share or {}).items()}
    finding, answers = ("lge", lesion.scar()) if kind == "scar" else ("t2", lesion.oedema())
    into.add(finding, answers, masked.volume_id, lesion.words)


def _size(side: str, numbers: Mapping[str, float], sex: Sex | None, bsa: float | None) -> Answer:
    edv = numbers.get(f"{side}_edv_ml")
    if edv is None:
        return Answer(reason=MaskReason.NOT_LABELLED)
    if bsa is None:
        return Answer(reason=MaskReason.NO_BODY_SIZE)
    words = f"{side.upper()}EDV {edv:.1f} mL / {bsa:.2f} m2 = {edv / bsa:.1f} mL/m2"
    return _graded(f"{side}_edv_index", edv / bsa, sex, words)


def _ejection(side: str, numbers: Mapping[str, float], sex: Sex | None) -> Answer:
    edv, ef = (numbers.get(f"{side}_{name}") for name in ("edv_ml", "ef_percent"))
    if ef is None:
        return Answer(reason=MaskReason.NOT_LABELLED if edv is None else MaskReason.ONE_MOMENT)
    esv = numbers[f"{side}_esv_ml"]
    words = f"{side.upper()}EF ({edv:.1f} - {esv:.1f}) / {edv:.1f} mL = {ef:.1f} %"
    if ef <= 0:
        return Answer(reason=MaskReason.NOT_PLAUSIBLE, words=words)
    answer = _graded(f"{side}_ejection", ef, sex, words)
    lower = quantities()[f"{side}_ejection"].grade(ef - _BASE_POINTS, sex)
    return answer if lower in (None, *answer.values) else replace(_BETWEEN, words=words)


def _graded(quantity: str, number: float, sex: Sex | None, words: str) -> Answer:
    value = quantities()[quantity].grade(number, sex)
    return replace(_BETWEEN if value is None else Answer((value,)), words=words)


def _has_segments(masked: Masked, wall: Wall) -> bool:
    turned = wall.turn is not None and abs(wall.turn) > MOST_TURN
    has_segments = masked.ordered and not masked.display_contradicted and not turned
    return has_segments and wall.n_slices >= LEAST_SLICES


def _thickness(thickness: Mapping[int, float], sex: Sex | None) -> Answers:
    """Return what the thickness of segments says of the wall; nothing for sure where some are unknown."""
    if set(thickness) != set(WALL_SEGMENTS):
        return dict.fromkeys(_THICKNESS, Answer(reason=MaskReason.NO_SEGMENTS))
    quantity, thinnest = quantities()["thickness"], min(thickness.values())
    if thinnest < quantity.male["normal"][0]:
        return dict.fromkeys(_THICKNESS, Answer(reason=MaskReason.BULGING))
    grades = {segment: quantity.grade(value, sex) for segment, value in thickness.items()}
    surely: Segments = frozenset(segment for segment, grade in grades.items() if grade == "thickened")
    perhaps: Segments = frozenset(segment for segment, grade in grades.items() if grade is None)
    if perhaps and not surely:
        return dict.fromkeys(_THICKNESS, _BETWEEN)
    kind = ("thickened",) if surely else ()
    wall = even = Answer(kind or ("normal",))
    ratio, several = max(thickness.values()) / thinnest, len({*grades.values()} - {None}) > 1
    if several or ratio >= _UNEVEN:
        even = Answer(("heterogeneous", *kind))
    elif perhaps or ratio > _EVEN:
        even = _BETWEEN
    cap = bool((surely | perhaps) & _APICAL)  # the cap's thickness is not measured

    def places(rule: Rule) -> Answer:
        return _robust(surely, perhaps, rule, cap_in_doubt=cap)

    return {
        "lv_wall": wall,
        "wall_thickness": even,
        "lv_wall_levels": places(_levels),
        "lv_wall_regions": places(_regions),
        "lv_wall_distribution": places(lambda some: (wall_distribution(some),) if some else ()),
    }


def _robust(surely: Segments, perhaps: Segments, rule: Rule, *, cap_in_doubt: bool) -> Answer:
    """Return a rule's answer if neither uncertain segments nor an invisible apical cap can change it."""
    cap = frozenset({17} if cap_in_doubt else ())
    singles = [frozenset({segment}) for segment in perhaps]
    tested = [frozenset(), perhaps, *singles, *(perhaps - single for single in singles)]
    plain = {rule(surely | subset) for subset in tested}
    if len(plain) > 1:
        return _IN_DOUBT
    if {rule(surely | subset | cap) for subset in tested} != plain:
        return Answer(reason=MaskReason.APICAL_CAP)
    return Answer(plain.pop())


class _Lesion:
    """Some tissues of a mask, in islands that are large enough, with methods for their answers."""

    def __init__(
        self, masked: Masked, kind: LesionKind, labels: LabelMap, wall: Wall, tissues: Collection[Tissue]
    ) -> None:
        self.masked, self.kind, self.labels, self.wall = masked, kind, labels, wall
        numbered, count = ndimage.label(masked.ed.of(tissues), structure=_TOUCHING)
        parts: Iterator[Mask] = (numbered == number for number in range(1, count + 1))
        self.islands = [part for part in parts if masked.ed.volume_ml(part) >= _LEAST_ML]
        self.inside: Mask = np.any([numbered < 0, *self.islands], axis=0)
        self.share = wall.share(self.inside) if _has_segments(masked, wall) else None
        outside = {"papillary": Tissue.PAPILLARY_LESION, "rv_free_wall": Tissue.RV_WALL_LESION}
        self.elsewhere = {
            name for name, tissue in outside.items() if labels.whole_heart and masked.ed.of([tissue]).any()
        }

    @property
    def words(self) -> str:
        parts = [f"{segment}: {100 * part:.0f} %" for segment, part in (self.share or {}).items() if part]
        volume = self.masked.ed.volume_ml(self.inside)
        return f"{self.kind} {volume:.1f} mL" + (f"; of segment {', '.join(parts)}" if parts else "")

    def scar(self) -> Answers:
        if not self.islands and not self.elsewhere:
            places = [f"{signal}_{place}" for signal in ("high", "low") for place in _PLACES]
            nothing = ("levels", "regions", "distribution", "layers", "signal_kind", *places)
            status = {"enhancement": Answer(("absent",)), "enhancement_status": Answer(("normal",))}
            return status | dict.fromkeys(nothing, Answer())
        layers, levels = self._layers(), self._with("papillary", self._of(_levels))
        distribution = self._of(lambda segments: self._pattern(segments, layers.values))
        answers = {
            "enhancement": Answer(("present",)),
            "enhancement_status": Answer(("abnormal",)),
            "levels": levels,
            "regions": self._with("rv_free_wall", self._of(_regions)),
            "layers": layers,
            "distribution": _IN_DOUBT if self.elsewhere else distribution,
            "high_segments": levels,
            "high_walls": self._of(_six_walls),
            "high_layers": self._with("papillary", layers),
        }
        has_cores = Tissue.OBSTRUCTION in self.labels.tissue_of(self.masked.sequence).values()
        return answers | (self._cores() if has_cores else {})

    def _cores(self) -> Answers:
        """Return the answers about dark cores in the wall; those of papillary muscles are not labelled."""
        core = _Lesion(self.masked, self.kind, self.labels, self.wall, [Tissue.OBSTRUCTION])
        papillary = "papillary" in self.elsewhere
        if not core.islands:
            nothing = _UNLABELLED if papillary else Answer()
            kind = _UNLABELLED if papillary else Answer(("high",))
            return {"signal_kind": kind} | {f"low_{place}": nothing for place in _PLACES}
        answers = {
            "signal_kind": Answer(("mixed",)),
            "low_segments": _UNLABELLED if papillary else core._of(_levels),
            "low_walls": core._of(_six_walls),
            "low_layers": _UNLABELLED if papillary else core._layers(),
        }
        return {name: replace(each, words=each.words or core.words) for name, each in answers.items()}

    def oedema(self) -> Answers:
        present, scarred = bool(self.islands), bool(self.masked.ed.of([Tissue.SCAR]).any())
        names = ("levels", "regions", "distribution")
        hidden = Answer(reason=MaskReason.HIDDEN_BY_SCAR)
        low = Tissue.OBSTRUCTION in self.masked.ed.tissues  # of low signal, which no option names
        signal = Answer(("increased",) if present else () if low else ("normal",))
        if scarred:
            return {"signal": signal if present else hidden} | dict.fromkeys(names, hidden)
        if not present:
            return {"signal": signal} | dict.fromkeys(names, Answer())
        rules: tuple[Rule, ...] = (_levels, _regions, self._spread)
        return {"signal": signal, **dict(zip(names, map(self._of, rules), strict=True))}

    def _of(self, rule: Rule) -> Answer:
        if self.share is None:
            return Answer(reason=MaskReason.NO_SEGMENTS)
        surely = frozenset(segment for segment, part in self.share.items() if part >= _AFFECTED)
        doubt = frozenset(segment for segment, part in self.share.items() if _UNAFFECTED < part < _AFFECTED)
        if self.wall.has_cap:
            return _robust(surely, doubt, rule, cap_in_doubt=False)
        reached = self.share.get(17, 0.0) > _UNAFFECTED  # the last slice may not be the cap
        return _robust(surely - {17}, doubt - {17}, rule, cap_in_doubt=reached)

    def _with(self, name: str, answer: Answer) -> Answer:
        """Add a structure outside the wall to an answer; uncertain if the label map does not label it."""
        if not answer.values and answer.reason:
            return answer
        if self.labels.whole_heart:
            return Answer(answer.values + ((name,) if name in self.elsewhere else ()))
        return Answer(answer.values, MaskReason.STRUCTURE_NOT_LABELLED)

    def _layers(self) -> Answer:
        layers = set()
        for depths in map(self.wall.depths, self.islands):
            layer = None if depths is None else _layer(*depths)
            if layer is None:
                return Answer(reason=MaskReason.LAYER_IN_DOUBT, words=f"{self.words}; depths {depths}")
            layers.add(layer)
        return Answer(tuple(name for name, _, _ in _LAYERS if name in layers))

    def _pattern(self, segments: Collection[int], layers: Collection[str]) -> tuple[str, ...]:
        """Return the pattern of the whole mask, by the rule of protocol 10.3."""
        if len(set(segments) & set(WALL_SEGMENTS)) >= 12:
            return ("diffuse",)
        if len(self.islands) >= 3:
            return ("patchy",)
        thin = bool(layers) and set(layers) <= {"mid_wall", "subepicardial"}
        return ("linear",) if len(segments) >= 3 and thin else ("focal",)

    def _spread(self, segments: Collection[int]) -> tuple[str, ...]:
        pattern: Pattern = "patchy" if len(self.islands) > 1 else "focal"
        return (oedema_distribution([Lesion(tuple(segments), pattern=pattern)]),)


def _layer(inner: float, outer: float) -> str | None:
    """Return the layer that fits an inner and an outer depth; None if none or several fit."""
    layers_read = [
        name
        for name, (low, high), (least, most) in _LAYERS
        if low <= inner <= high and least <= outer <= most
    ]
    return layers_read[0] if len(layers_read) == 1 else None
