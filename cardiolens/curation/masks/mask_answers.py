"""Measure masks and derive answers by finding, with a reason for every uncertain answer."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

import numpy as np
from scipy import ndimage

from cardiolens.curation.masks.labels import CAVITY, LabelMap, LesionKind, MaskReason, Sex, Tissue, quantities
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
_THICKNESS = ("lv_wall", "lv_wall_levels", "lv_wall_regions", "lv_wall_distribution", "wall_thickness")
_CHAMBERS = (("lv", CAVITY), ("rv", (Tissue.RV_BLOOD,)))
_MUSCLE = (Tissue.MYOCARDIUM, Tissue.SCAR, Tissue.OEDEMA)
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


@dataclass(slots=True)
class Measures:
    """Measurements and answers from a study's masks; names of numbers include units."""

    numbers: dict[str, float] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)

    def add(self, answers: Mapping[str, Answer], volume_id: str) -> None:
        """Add answers that a volume gives."""
        self.answers |= {name: replace(answer, volume_id=volume_id) for name, answer in answers.items()}


def cine(masked: Masked, sex: Sex | None, bsa: float | None, into: Measures) -> None:
    """Measure volumes, ejection fractions, mass and wall thickness of a cine."""
    ed, es = masked.ed, masked.es
    for side, tissues in _CHAMBERS:
        edv = ed.volume_ml(ed.of(tissues))
        esv = 0.0 if es is None else es.volume_ml(es.of(tissues))
        if edv:
            into.numbers[f"{side}_edv_ml"] = edv
        if edv and esv:
            into.numbers[f"{side}_esv_ml"] = esv
            into.numbers[f"{side}_sv_ml"] = edv - esv
            into.numbers[f"{side}_ef_percent"] = 100 * (edv - esv) / edv
        if edv and bsa is not None:
            into.numbers[f"{side}_edv_index"] = edv / bsa
        answers = {
            f"cine.{side}_size": _size(side, into.numbers, sex, bsa),
            f"cine.{side}_systolic": _ejection(side, into.numbers, sex),
        }
        into.add(answers, masked.volume_id)
    ed_phase, es_phase = masked.moments
    if es_phase is not None:
        into.numbers |= {"ed_phase": ed_phase + 1.0, "es_phase": es_phase + 1.0}  # as captions number them
    into.numbers["lv_mass_g"] = MUSCLE_G_PER_ML * ed.volume_ml(ed.of(_MUSCLE))
    wall = wall_of(ed)
    thickness = wall.thickness() if _has_segments(masked, wall) else {}
    into.numbers |= {f"thickness_mm_{segment}": value for segment, value in thickness.items()}
    into.add(_thickness(thickness, sex), masked.volume_id)


def lesions(masked: Masked, kind: LesionKind, labels: LabelMap, into: Measures) -> None:
    """Measure scar or oedema: volume, segments, layers, pattern."""
    stack = masked.ed
    tissues = [Tissue.SCAR, Tissue.OBSTRUCTION] if kind == "scar" else [Tissue.OEDEMA]
    inside = _islands(stack, stack.of(tissues))
    into.numbers[f"{kind}_ml"] = stack.volume_ml(inside)
    wall = wall_of(stack)
    share = wall.share(inside) if _has_segments(masked, wall) else None
    into.numbers |= {f"{kind}_share_{segment}": part for segment, part in (share or {}).items()}
    more = [("papillary", Tissue.PAPILLARY_LESION), ("rv_free_wall", Tissue.RV_WALL_LESION)]
    elsewhere = {name for name, tissue in more if labels.whole_heart and stack.of([tissue]).any()}
    lesion = _Lesion(masked, kind, labels, inside, wall, share, elsewhere)
    into.add(lesion.scar() if kind == "scar" else lesion.oedema(), masked.volume_id)


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
    if lower is not None and lower not in answer.values:
        return Answer(reason=MaskReason.BETWEEN_GRADES, words=words)
    return answer


def _graded(quantity: str, number: float, sex: Sex | None, words: str) -> Answer:
    value = quantities()[quantity].grade(number, sex)
    return (
        Answer(reason=MaskReason.BETWEEN_GRADES, words=words)
        if value is None
        else Answer((value,), words=words)
    )


def _has_segments(masked: Masked, wall: Wall) -> bool:
    turned = wall.turn is not None and abs(wall.turn) > MOST_TURN
    has_segments = masked.ordered and not masked.display_contradicted and not turned
    return has_segments and wall.n_slices >= LEAST_SLICES


def _thickness(thickness: Mapping[int, float], sex: Sex | None) -> dict[str, Answer]:
    """Return what the thickness of segments says of the wall; nothing for sure where some are unknown."""
    words = ", ".join(f"{segment}: {value:.1f} mm" for segment, value in thickness.items())

    def unanswered(reason: MaskReason) -> dict[str, Answer]:
        return {f"cine.{name}": Answer((), reason, words) for name in _THICKNESS}

    if set(thickness) != set(WALL_SEGMENTS):
        return unanswered(MaskReason.NO_SEGMENTS)
    quantity = quantities()["thickness"]
    grades = {segment: quantity.grade(value, sex) for segment, value in thickness.items()}
    if min(thickness.values()) < quantity.male["normal"][0]:
        return unanswered(MaskReason.BULGING)
    surely: Segments = frozenset(segment for segment, grade in grades.items() if grade == "thickened")
    perhaps: Segments = frozenset(segment for segment, grade in grades.items() if grade is None)
    if perhaps and not surely:
        return unanswered(MaskReason.BETWEEN_GRADES)
    kind = ("thickened",) if surely else ()
    wall = even = Answer(kind or ("normal",), words=words)
    ratio, several = max(thickness.values()) / min(thickness.values()), len({*grades.values()} - {None}) > 1
    if several or ratio >= _UNEVEN:
        even = Answer(("heterogeneous", *kind), words=words)
    elif perhaps or ratio > _EVEN:
        even = Answer(reason=MaskReason.BETWEEN_GRADES, words=words)
    cap = bool((surely | perhaps) & _APICAL)  # the cap's thickness is not measured

    def places(rule: Rule) -> Answer:
        return _robust(surely, perhaps, rule, words, cap_in_doubt=cap)

    return {
        "cine.lv_wall": wall,
        "cine.wall_thickness": even,
        "cine.lv_wall_levels": places(_levels),
        "cine.lv_wall_regions": places(_regions),
        "cine.lv_wall_distribution": places(lambda some: (wall_distribution(some),) if some else ()),
    }


def _robust(surely: Segments, perhaps: Segments, rule: Rule, words: str, *, cap_in_doubt: bool) -> Answer:
    """Return a rule's answer if neither uncertain segments nor an invisible apical cap can change it."""
    cap = frozenset({17} if cap_in_doubt else ())
    plain = {rule(surely | subset) for subset in _subsets_to_test(perhaps)}
    if len(plain) > 1:
        return Answer(reason=MaskReason.SEGMENT_IN_DOUBT, words=words)
    if {rule(surely | subset | cap) for subset in _subsets_to_test(perhaps)} != plain:
        return Answer(reason=MaskReason.APICAL_CAP, words=words)
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
        if not self.inside.any() and not self.elsewhere:
            places = [f"{signal}_{place}" for signal in ("high", "low") for place in _PLACES]
            nothing = ("levels", "regions", "distribution", "layers", "signal_kind", *places)
            status = {"enhancement": "absent", "enhancement_status": "normal"}
            answers = {f"lge.{name}": Answer((value,), words=self.words) for name, value in status.items()}
            return answers | {f"lge.{name}": Answer() for name in nothing}
        layers, levels = self._layers(), self._with("papillary", self._of(_levels))
        distribution = self._of(lambda segments: self._pattern(segments, layers.values))
        if self.elsewhere:
            distribution = Answer(reason=MaskReason.SEGMENT_IN_DOUBT, words=self.words)
        answers = {
            "lge.enhancement": Answer(("present",), words=self.words),
            "lge.enhancement_status": Answer(("abnormal",), words=self.words),
            "lge.levels": levels,
            "lge.regions": self._with("rv_free_wall", self._of(_regions)),
            "lge.layers": layers,
            "lge.distribution": distribution,
            "lge.high_segments": levels,
            "lge.high_walls": self._of(_six_walls),
            "lge.high_layers": self._with("papillary", layers),
        }
        has_cores = Tissue.OBSTRUCTION in self.labels.tissue_of(self.masked.sequence).values()
        return answers | (self._cores() if has_cores else {})

    def _cores(self) -> dict[str, Answer]:
        """Return the answers about dark cores in the wall; those of papillary muscles are not labelled."""
        inside = _islands(self.masked.ed, self.masked.ed.of([Tissue.OBSTRUCTION]))
        share = None if self.share is None else self.wall.share(inside)
        core = replace(self, inside=inside, share=share)
        unknown = Answer(reason=MaskReason.STRUCTURE_NOT_LABELLED, words=core.words)
        papillary = "papillary" in self.elsewhere
        if not inside.any():
            kind = unknown if papillary else Answer(("high",), words=self.words)
            nothing = unknown if papillary else Answer()
            return {"lge.signal_kind": kind} | {f"lge.low_{place}": nothing for place in _PLACES}
        return {
            "lge.signal_kind": Answer(("mixed",), words=core.words),
            "lge.low_segments": unknown if papillary else core._of(_levels),
            "lge.low_walls": core._of(_six_walls),
            "lge.low_layers": unknown if papillary else core._layers(),
        }

    def oedema(self) -> dict[str, Answer]:
        present, scarred = bool(self.inside.any()), bool(self.masked.ed.of([Tissue.SCAR]).any())
        names = ("levels", "regions", "distribution")
        hidden = Answer(reason=MaskReason.HIDDEN_BY_SCAR, words=self.words)
        low = Tissue.OBSTRUCTION in self.masked.ed.tissues  # of low signal, which no option names
        without = () if low else ("normal",)
        signal = Answer(("increased",) if present else without, words=self.words)
        if scarred:
            answers = {"t2.signal": signal if present else hidden}
            return answers | {f"t2.{name}": hidden for name in names}
        if not present:
            return {"t2.signal": signal} | {f"t2.{name}": Answer() for name in names}
        rules: tuple[Rule, ...] = (_levels, _regions, self._spread)
        return {"t2.signal": signal} | {
            f"t2.{name}": self._of(rule) for name, rule in zip(names, rules, strict=True)
        }

    def _of(self, rule: Rule) -> Answer:
        if self.share is None:
            return Answer(reason=MaskReason.NO_SEGMENTS, words=self.words)
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
        return Answer(answer.values, MaskReason.STRUCTURE_NOT_LABELLED, self.words)

    def _components(self) -> Iterator[Mask]:
        numbered_parts, count = ndimage.label(self.inside, structure=_TOUCHING)
        yield from (numbered_parts == number for number in range(1, count + 1))

    def _layers(self) -> Answer:
        layers = set()
        for island in self._components():
            depths = self.wall.depths(island)
            layer = None if depths is None else _layer(*depths)
            if layer is None:
                return Answer(reason=MaskReason.LAYER_IN_DOUBT, words=f"{self.words}; depths {depths}")
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
