"""Measure masks and derive answers by finding, with a reason for every uncertain answer."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy import ndimage

from cardiolens.curation.masks.grades import Sex, quantities
from cardiolens.curation.masks.labels import LabelMap, LesionKind, Tissue
from cardiolens.curation.masks.mask_reasons import Reason
from cardiolens.curation.masks.mask_stack import Mask, Masked, Stack
from cardiolens.curation.masks.wall import LEAST_SLICES, MOST_TURN, Wall, wall_of
from cardiolens.protocol.tasks.segments import LEVELS, SIX_WALLS, WALL_SEGMENTS, WALLS, touched
from cardiolens.protocol.tasks.truth import Lesion, oedema_distribution, wall_distribution

MUSCLE_G_PER_ML = 1.05
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
_TOUCHING = np.ones((3, 3, 3), dtype=bool)
Segments = frozenset[int]


@dataclass(frozen=True, slots=True)
class Answer:
    """Values of a finding and their measurements in words; `reason` if uncertain, no values if unknown."""

    values: tuple[str, ...] = ()
    reason: Reason | None = None
    words: str = ""
    volume_id: str = ""


@dataclass(slots=True)
class Measures:
    """Measurements and answers from a study's masks; names of numbers include units."""

    numbers: dict[str, float] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)


def cine(masked: Masked, sex: Sex | None, bsa: float | None, into: Measures) -> None:
    """Measure volumes, ejection fractions, mass and wall thickness of a cine."""
    ed, es = masked.ed, masked.es
    for side, inside in (("lv", ed.cavity), ("rv", ed.of([Tissue.RV_BLOOD]))):
        edv = ed.volume_ml(inside)
        after = None if es is None else (es.cavity if side == "lv" else es.of([Tissue.RV_BLOOD]))
        esv = None if es is None or after is None else es.volume_ml(after)
        _chamber(side, edv, esv, into)
        _size(side, sex, bsa, masked.volume_id, into)
        _ejection(side, sex, masked.volume_id, into)
    ed_phase, es_phase = masked.moments
    if es_phase is not None:
        into.numbers |= {"ed_phase": ed_phase + 1.0, "es_phase": es_phase + 1.0}  # as captions number them
    wall = wall_of(ed)
    mass = MUSCLE_G_PER_ML * ed.volume_ml(ed.of([Tissue.MYOCARDIUM, Tissue.SCAR, Tissue.OEDEMA]))
    into.numbers["lv_mass_g"] = mass
    into.answers |= _thickness(masked, wall, sex, into.numbers)


def lesions(masked: Masked, kind: LesionKind, labels: LabelMap, into: Measures) -> None:
    """Measure scar or oedema: volume, segments, layers, pattern."""
    stack = masked.ed
    tissues = [Tissue.SCAR, Tissue.OBSTRUCTION] if kind == "scar" else [Tissue.OEDEMA]
    inside = _islands(stack, stack.of(tissues))
    into.numbers[f"{kind}_ml"] = stack.volume_ml(inside)
    wall = wall_of(stack)
    share = wall.share(inside) if _has_segments(masked, wall) else None
    for segment, part in (share or {}).items():
        into.numbers[f"{kind}_share_{segment}"] = part
    more = [("papillary", Tissue.PAPILLARY_LESION), ("rv_free_wall", Tissue.RV_WALL_LESION)]
    elsewhere = {name for name, tissue in more if labels.whole_heart and stack.of([tissue]).any()}
    lesion_measures = _Lesion(masked, kind, labels, inside, wall, share, elsewhere)
    answers = lesion_measures.scar() if kind == "scar" else lesion_measures.oedema()
    into.answers |= {name: _at(answer, masked.volume_id) for name, answer in answers.items()}


def _chamber(side: str, edv: float, esv: float | None, into: Measures) -> None:
    if not edv:
        return
    into.numbers[f"{side}_edv_ml"] = edv
    if esv:
        into.numbers[f"{side}_esv_ml"] = esv
        into.numbers[f"{side}_sv_ml"] = edv - esv
        into.numbers[f"{side}_ef_percent"] = 100 * (edv - esv) / edv


def _size(side: str, sex: Sex | None, bsa: float | None, volume_id: str, into: Measures) -> None:
    edv = into.numbers.get(f"{side}_edv_ml")
    name = f"cine.{side}_size"
    if edv is None:
        into.answers[name] = Answer(reason=Reason.NOT_LABELLED, volume_id=volume_id)
    elif bsa is None:
        into.answers[name] = Answer(reason=Reason.NO_BODY_SIZE, volume_id=volume_id)
    else:
        into.numbers[f"{side}_edv_index"] = edv / bsa
        words = f"{side.upper()}EDV {edv:.1f} mL / {bsa:.2f} m2 = {edv / bsa:.1f} mL/m2"
        into.answers[name] = _graded(f"{side}_edv_index", edv / bsa, sex, words, volume_id)


def _ejection(side: str, sex: Sex | None, volume_id: str, into: Measures) -> None:
    ef = into.numbers.get(f"{side}_ef_percent")
    name = f"cine.{side}_systolic"
    if ef is None:
        reason = Reason.ONE_MOMENT if f"{side}_edv_ml" in into.numbers else Reason.NOT_LABELLED
        into.answers[name] = Answer(reason=reason, volume_id=volume_id)
        return
    edv, esv = into.numbers[f"{side}_edv_ml"], into.numbers[f"{side}_esv_ml"]
    words = f"{side.upper()}EF ({edv:.1f} - {esv:.1f}) / {edv:.1f} mL = {ef:.1f} %"
    if ef <= 0:
        into.answers[name] = Answer(reason=Reason.NOT_PLAUSIBLE, words=words, volume_id=volume_id)
    else:
        answer = _graded(f"{side}_ejection", ef, sex, words, volume_id)
        lower = quantities()[f"{side}_ejection"].grade(ef - _BASE_POINTS, sex)
        if lower is not None and lower not in answer.values:
            answer = Answer(reason=Reason.BETWEEN_GRADES, words=words, volume_id=volume_id)
        into.answers[name] = answer


def _graded(quantity: str, number: float, sex: Sex | None, words: str, volume_id: str) -> Answer:
    value = quantities()[quantity].grade(number, sex)
    if value is None:
        return Answer(reason=Reason.BETWEEN_GRADES, words=words, volume_id=volume_id)
    return Answer((value,), words=words, volume_id=volume_id)


def _has_segments(masked: Masked, wall: Wall) -> bool:
    turned = wall.turn is not None and abs(wall.turn) > MOST_TURN
    has_segments = masked.ordered and not masked.display_contradicted and not turned
    return has_segments and wall.n_slices >= LEAST_SLICES


def _thickness(masked: Masked, wall: Wall, sex: Sex | None, numbers: dict[str, float]) -> dict[str, Answer]:
    names = ("lv_wall", "lv_wall_levels", "lv_wall_regions", "lv_wall_distribution", "wall_thickness")
    thickness = wall.thickness() if _has_segments(masked, wall) else {}
    numbers |= {f"thickness_mm_{segment}": value for segment, value in thickness.items()}
    words = ", ".join(f"{segment}: {value:.1f} mm" for segment, value in thickness.items())

    def all_unanswered(reason: Reason) -> dict[str, Answer]:
        return {f"cine.{name}": Answer((), reason, words, masked.volume_id) for name in names}

    if set(thickness) != set(WALL_SEGMENTS):
        return all_unanswered(Reason.NO_SEGMENTS)
    grades = {segment: quantities()["thickness"].grade(value, sex) for segment, value in thickness.items()}
    if min(thickness.values()) < quantities()["thickness"].male["normal"][0]:
        return all_unanswered(Reason.BULGING)
    surely: Segments = frozenset(segment for segment, grade in grades.items() if grade == "thickened")
    perhaps: Segments = frozenset(segment for segment, grade in grades.items() if grade is None)
    if perhaps and not surely:
        return all_unanswered(Reason.BETWEEN_GRADES)
    cap = bool((surely | perhaps) & _APICAL)  # the cap's thickness is not measured
    kind = ("thickened",) if surely else ()
    answers = {"cine.lv_wall": Answer(kind or ("normal",), words=words)}
    ratio, several = max(thickness.values()) / min(thickness.values()), len({*grades.values()} - {None}) > 1
    if several or ratio >= _UNEVEN:
        answers["cine.wall_thickness"] = Answer(("heterogeneous", *kind), words=words)
    elif perhaps or ratio > _EVEN:
        answers["cine.wall_thickness"] = Answer(reason=Reason.BETWEEN_GRADES, words=words)
    else:
        answers["cine.wall_thickness"] = answers["cine.lv_wall"]
    answers |= {
        "cine.lv_wall_levels": _robust(
            surely, perhaps, lambda segments: touched(segments, LEVELS), words, cap_in_doubt=cap
        ),
        "cine.lv_wall_regions": _robust(
            surely, perhaps, lambda segments: touched(segments, WALLS), words, cap_in_doubt=cap
        ),
        "cine.lv_wall_distribution": _robust(
            surely,
            perhaps,
            lambda segments: (wall_distribution(segments),) if segments else (),
            words,
            cap_in_doubt=cap,
        ),
    }
    return {name: _at(answer, masked.volume_id) for name, answer in answers.items()}


def _robust(
    surely: Segments,
    perhaps: Segments,
    rule: Callable[[Collection[int]], tuple[str, ...]],
    words: str,
    *,
    cap_in_doubt: bool,
) -> Answer:
    """Return a rule's answer if neither uncertain segments nor an invisible apical cap can change it."""
    cap = frozenset({17} if cap_in_doubt else ())
    plain = {rule(surely | subset) for subset in _subsets_to_test(perhaps)}
    if len(plain) > 1:
        return Answer(reason=Reason.SEGMENT_IN_DOUBT, words=words)
    if {rule(surely | subset | cap) for subset in _subsets_to_test(perhaps)} != plain:
        return Answer(reason=Reason.APICAL_CAP, words=words)
    return Answer(plain.pop(), words=words)


def _subsets_to_test(perhaps: Segments) -> Iterator[Segments]:
    """Yield subsets to test: none, all, each segment alone, and all but one."""
    yield frozenset()
    yield perhaps
    yield from (frozenset({segment}) for segment in perhaps)
    yield from (frozenset(most) for most in combinations(perhaps, max(len(perhaps) - 1, 0)))


@dataclass(frozen=True, slots=True)
class _Lesion:
    """A lesion in a mask, with methods for its answers."""

    masked: Masked
    kind: LesionKind
    labels: LabelMap
    inside: Mask
    wall: Wall
    share: Mapping[int, float] | None
    elsewhere: Collection[str]  # lesion sites outside the wall: papillary, rv_free_wall

    @property
    def words(self) -> str:
        parts = [f"{segment}: {100 * part:.0f} %" for segment, part in (self.share or {}).items() if part]
        volume = self.masked.ed.volume_ml(self.inside)
        return f"{self.kind} {volume:.1f} mL" + (f"; of segment {', '.join(parts)}" if parts else "")

    def scar(self) -> dict[str, Answer]:
        present = bool(self.inside.any() or self.elsewhere)
        answers = {"lge.enhancement": Answer(("present" if present else "absent",), words=self.words)}
        answers["lge.enhancement_status"] = Answer(("abnormal" if present else "normal",), words=self.words)
        empty = {f"lge.{name}": Answer() for name in ("levels", "regions", "distribution", "layers")}
        if not present:
            places = [f"{signal}_{place}" for signal in ("high", "low") for place in _PLACES]
            return answers | empty | {f"lge.{name}": Answer() for name in ("signal_kind", *places)}
        answers |= empty | {
            "lge.levels": self._with("papillary", self._of(lambda segments: touched(segments, LEVELS))),
            "lge.regions": self._with("rv_free_wall", self._of(lambda segments: touched(segments, WALLS))),
        }
        layers = self._layers()
        answers["lge.layers"] = layers
        answers["lge.distribution"] = self._of(lambda segments: self._pattern(segments, layers.values))
        answers |= {
            "lge.high_segments": answers["lge.levels"],
            "lge.high_walls": self._of(lambda segments: touched(segments, SIX_WALLS)),
            "lge.high_layers": self._with("papillary", layers),
        }
        if Tissue.OBSTRUCTION in self.labels.tissue_of(self.masked.sequence).values():
            answers |= self._cores()
        if self.elsewhere:
            answers["lge.distribution"] = Answer(reason=Reason.SEGMENT_IN_DOUBT, words=self.words)
        return answers

    def _cores(self) -> dict[str, Answer]:
        """Return the answers about dark cores in the wall; those of papillary muscles are not labelled."""
        inside = _islands(self.masked.ed, self.masked.ed.of([Tissue.OBSTRUCTION]))
        share = None if self.share is None else self.wall.share(inside)
        core = replace(self, inside=inside, share=share)
        unknown = Answer(reason=Reason.STRUCTURE_NOT_LABELLED, words=core.words)
        papillary = "papillary" in self.elsewhere
        if not inside.any():
            kind = unknown if papillary else Answer(("high",), words=self.words)
            nothing = unknown if papillary else Answer()
            return {"lge.signal_kind": kind} | {f"lge.low_{place}": nothing for place in _PLACES}
        return {
            "lge.signal_kind": Answer(("mixed",), words=core.words),
            "lge.low_segments": unknown if papillary else core._of(lambda some: touched(some, LEVELS)),
            "lge.low_walls": core._of(lambda some: touched(some, SIX_WALLS)),
            "lge.low_layers": unknown if papillary else core._layers(),
        }

    def oedema(self) -> dict[str, Answer]:
        present, scarred = bool(self.inside.any()), bool(self.masked.ed.of([Tissue.SCAR]).any())
        names = ("levels", "regions", "distribution")
        hidden = Answer(reason=Reason.HIDDEN_BY_SCAR, words=self.words)
        signal = Answer(("increased" if present else "normal",), words=self.words)
        if scarred:
            answers = {"t2.signal": signal if present else hidden}
            return answers | {f"t2.{name}": hidden for name in names}
        if not present:
            return {"t2.signal": signal} | {f"t2.{name}": Answer() for name in names}
        return {
            "t2.signal": signal,
            "t2.levels": self._of(lambda segments: touched(segments, LEVELS)),
            "t2.regions": self._of(lambda segments: touched(segments, WALLS)),
            "t2.distribution": self._of(self._spread),
        }

    def _of(self, rule: Callable[[Collection[int]], tuple[str, ...]]) -> Answer:
        if self.share is None:
            return Answer(reason=Reason.NO_SEGMENTS, words=self.words)
        surely = frozenset(segment for segment, part in self.share.items() if part >= _AFFECTED)
        doubt = frozenset(segment for segment, part in self.share.items() if _UNAFFECTED < part < _AFFECTED)
        if self.wall.has_cap:
            return _robust(surely, doubt, rule, self.words, cap_in_doubt=False)
        reached = self.share.get(17, 0.0) > _UNAFFECTED  # the last slice may not be the cap
        return _robust(surely - {17}, doubt - {17}, rule, self.words, cap_in_doubt=reached)

    def _with(self, name: str, answer: Answer) -> Answer:
        """Add a structure outside the wall to an answer; uncertain if the label map does not label it."""
        if not answer.values and answer.reason:
            return answer
        if self.labels.whole_heart:
            more = (name,) if name in self.elsewhere else ()
            return Answer(answer.values + more, words=self.words)
        return Answer(answer.values, Reason.STRUCTURE_NOT_LABELLED, self.words)

    def _components(self) -> Iterator[Mask]:
        numbered_parts, count = ndimage.label(self.inside, structure=_TOUCHING)
        yield from (numbered_parts == number for number in range(1, count + 1))

    def _layers(self) -> Answer:
        layers = set()
        for island in self._components():
            depths = self.wall.depths(island)
            layer = None if depths is None else _layer(*depths)
            if layer is None:
                return Answer(reason=Reason.LAYER_IN_DOUBT, words=f"{self.words}; depths {depths}")
            layers.add(layer)
        return Answer(tuple(name for name, _, _ in _LAYERS if name in layers), words=self.words)

    def _pattern(self, segments: Collection[int], layers: Collection[str]) -> tuple[str, ...]:
        """Return the pattern of the whole mask, by the rule of protocol 10.3."""
        if len(set(segments) & set(WALL_SEGMENTS)) >= 12:
            return ("diffuse",)
        if len(list(self._components())) >= 3:
            return ("patchy",)
        thin = bool(layers) and set(layers) <= {"mid_wall", "subepicardial"}
        return ("linear",) if len(segments) >= 3 and thin else ("focal",)

    def _spread(self, segments: Collection[int]) -> tuple[str, ...]:
        islands = len(list(self._components()))
        pattern = "patchy" if islands > 1 else "focal"
        lesion = Lesion(tuple(segments), pattern=pattern)  # type: ignore[arg-type]
        return (oedema_distribution([lesion]),)


def _layer(inner: float, outer: float) -> str | None:
    """Return the layer that fits an inner and an outer depth; None if none or several fit."""
    layers_read = [
        name
        for name, (low, high), (least, most) in _LAYERS
        if low <= inner <= high and least <= outer <= most
    ]
    return layers_read[0] if len(layers_read) == 1 else None


def _islands(stack: Stack, inside: Mask) -> Mask:
    """Remove islands too small to be a lesion."""
    numbered_parts, count = ndimage.label(inside, structure=_TOUCHING)
    sizes = ndimage.sum_labels(inside, numbered_parts, np.arange(1, count + 1))
    voxel = stack.row_mm * stack.column_mm * stack.step_mm / 1000
    large = [number for number, size in enumerate(sizes, start=1) if size * voxel >= _LEAST_ML]
    return np.isin(numbered_parts, large)


def _at(answer: Answer, volume_id: str) -> Answer:
    return Answer(answer.values, answer.reason, answer.words, volume_id)
