"""Build the sentences of a report, with phrases for places, together with the facts that they state."""

import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cardiolens.phantom.draws import Draws
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.measure import measure
from cardiolens.phantom.roster import Study
from cardiolens.protocol.tasks.segments import LEVELS, SEGMENTS, WALL_SEGMENTS
from cardiolens.protocol.tasks.truth import Lesion, Truth, findings, of_four
from tests.support.free_text.templates import Group, Style, groups, words

_CAP = 17


@dataclass(frozen=True, slots=True)
class Place:
    """A phrase for a place, and whether it takes a plural verb."""

    text: str
    plural: bool


def place(segments: Sequence[int], style: Style, draw: Draws) -> Place:
    """Name segments in the words of a style, in one of several forms."""
    if tuple(segments) in (SEGMENTS, WALL_SEGMENTS):
        return Place(_everywhere(style, with_cap=_CAP in segments), plural=True)
    if len(segments) > 1 and draw.chance(0.25):
        return _numbered(segments, style)
    return _named(segments, style, draw)


def _everywhere(style: Style, *, with_cap: bool) -> str:
    if style == "terse":
        return "all segs incl. apical cap" if with_cap else "all basal, mid + apical segs"
    return "all 17 segments" if with_cap else "all basal, mid and apical segments"


def _numbered(segments: Sequence[int], style: Style) -> Place:
    if style == "terse":
        return Place(f"segs {', '.join(map(str, segments))}", plural=True)
    return Place(f"AHA segments {joined([str(segment) for segment in segments])}", plural=True)


def _named(segments: Sequence[int], style: Style, draw: Draws) -> Place:
    terse = style == "terse"
    names = words().walls["terse" if terse else "full"]
    levels_of: dict[str, list[str]] = {}
    for level, members in LEVELS.items():
        for segment in sorted(members & set(segments) - {_CAP}):
            levels_of.setdefault(names[segment], []).append(level)
    by_levels: dict[tuple[str, ...], list[str]] = {}
    for wall, levels in levels_of.items():
        by_levels.setdefault(tuple(levels), []).append(wall)
    cap = _CAP in segments
    if terse:
        parts = [f"{'-'.join(levels)} {'/'.join(walls)}" for levels, walls in by_levels.items()]
        return Place(", ".join([*parts, *(["apical cap"] if cap else [])]), plural=True)
    if len(levels_of) == 1 and not cap and draw.chance(0.5):
        ((wall, levels),) = levels_of.items()
        return Place(f"the {wall} wall at {joined(levels)} level", plural=False)
    parts = [f"{joined(levels)} {joined(walls)} segments" for levels, walls in by_levels.items()]
    text = joined([f"the {part}" for part in parts] + (["the apical cap"] if cap else []))
    return Place(text, plural=bool(parts))


def joined(parts: Sequence[str]) -> str:
    """Join parts with commas and a final `and`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


Certainty = Literal["certain", "uncertain", "historical"]

_VERBS = {"are": "is", "show": "shows", "enhance": "enhances"}  # plural and singular


@dataclass(frozen=True, slots=True)
class Fact:
    """The stated values of one catalogue field."""

    field: str
    values: tuple[str, ...]
    certainty: Certainty = "certain"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and its facts."""

    text: str
    facts: tuple[Fact, ...] = ()


class Writer:
    """Writer of the sentences of one study in one style."""

    def __init__(self, study: Study, style: Style, draw: Draws) -> None:
        self.study, self.style, self.draw = study, style, draw
        subtype = study.truth.subtype
        self.found = {**findings(study.truth), "diagnosis": (subtype or study.truth.etiology,)}
        self.numbers = numbers(study)

    def group(self, name: str, *, measured: bool = False) -> list[Sentence]:
        """Write the sentences of a group; with `measured`, use numbers instead of adjectives if possible."""
        group = groups()[name]
        if measured and self._is_measured(group, name):
            return self._measured(group, name)
        if group.places and self._abnormal(group):
            return [self._sentence(group, *placement) for placement in self._placed(name)]
        return [self._sentence(group, self.found[group.by][0], {}, self._facts(group))]

    def doubt(self, name: str) -> Sentence:
        """Write a sentence that states the abnormal value of a group as uncertain."""
        group = groups()[name]
        values = (group.doubted,) if group.doubted else ()
        text = self.draw.one_of(group.sentences(self.style, "doubt"))
        return Sentence(text, (Fact(group.tells[0], values, "uncertain"),))

    def can_doubt(self, name: str) -> bool:
        return groups()[name].has(self.style, "doubt")

    def is_void(self, name: str) -> bool:
        """Return whether no option of the group's subtask is right: low signal on T2."""
        return not self.found[groups()[name].by]

    def is_normal(self, name: str) -> bool:
        group = groups()[name]
        return set(self.found[group.by]) <= {"normal", "none", "absent", "uniform"}

    def stating(self, name: str, value: str) -> str:
        """Return a group's text for any value, true or not."""
        return self.draw.one_of(groups()[name].sentences(self.style, value))

    def _abnormal(self, group: Group) -> bool:
        return not set(self.found[group.by]) <= {"normal", "absent", "uniform"}

    def _is_measured(self, group: Group, name: str) -> bool:
        if not group.has(self.style, "number") or name in ("lv_wall", "lge"):
            return False
        return name != "pericardium" or not self.is_normal(name)

    def _measured(self, group: Group, name: str) -> list[Sentence]:
        text = _filled(self.draw.one_of(group.sentences(self.style, "number")), self.numbers)
        return [Sentence(text, tuple(Fact(field, self.found[field]) for field in group.tells))]

    def _facts(self, group: Group) -> tuple[Fact, ...]:
        return tuple(Fact(field, self.found[field]) for field in group.tells if self.found[field])

    def _sentence(
        self, group: Group, value: str, slots: Mapping[str, str], facts: tuple[Fact, ...]
    ) -> Sentence:
        what = {"what": self._phrases(group.by, self.found[group.by])} if not slots else {}
        text = _filled(self.draw.one_of(group.sentences(self.style, value)), {**what, **slots})
        return Sentence(text, facts)

    def _phrases(self, field: str, values: Sequence[str]) -> str:
        known = words().of(self.style).get(field, {})
        phrases = [self.draw.one_of(known[value]) for value in values if value in known]
        return joined(phrases) if phrases else ""

    def _phrase(self, field: str, value: str) -> str:
        return self.draw.one_of(words().of(self.style)[field][value])

    def _where(self, segments: Sequence[int], lesion: Lesion | None = None) -> Place:
        places = [place(segments, self.style, self.draw)] if segments else []
        if lesion and lesion.papillary:
            places.append(Place("the papillary muscles", plural=True))
        if lesion and lesion.rv_free_wall:
            places.append(Place("the free wall of the right ventricle", plural=False))
        return Place(joined([one.text for one in places]), len(places) > 1 or places[0].plural)

    def _placed(self, name: str) -> Iterator[tuple[str, Mapping[str, str], tuple[Fact, ...]]]:
        """Yield template key, slots and facts of each sentence of a group that names places."""
        parts = {
            "lv_wall": self._walls,
            "lv_motion": self._motions,
            "lge": self._lesions,
            "perfusion": self._defect,
            "t2": self._oedema,
        }
        return parts[name]()

    def _walls(self) -> Iterator[tuple[str, Mapping[str, str], tuple[Fact, ...]]]:
        segments = self.study.truth.segments
        facts = self._facts(groups()["lv_wall"])
        for kind in self.found["cine.lv_wall"]:
            where = [
                number
                for number, segment in enumerate(segments, start=1)
                if (segment.bulging if kind == "bulging" else segment.thickness == kind)
            ]
            slots = _slots(self._where(where), what=self._phrase("cine.lv_wall", kind))
            if kind == "bulging":
                yield "other", slots, facts
                continue
            p = self.study.parameters
            sizes = [p.wall_in(number) for number in where]
            slots["wall_mm"] = f"{max(sizes) if kind == 'thickened' else min(sizes):.0f}"
            yield ("number" if self.draw.chance(0.5) else "other"), slots, facts

    def _motions(self) -> Iterator[tuple[str, Mapping[str, str], tuple[Fact, ...]]]:
        segments = self.study.truth.segments
        facts = self._facts(groups()["lv_motion"])
        for grade in ("hypokinesia", "akinesia", "dyskinesia"):
            where = [number for number, segment in enumerate(segments, start=1) if segment.motion == grade]
            if where:
                slots = _slots(
                    self._where(where),
                    what=self._phrase("cine.lv_motion", grade),
                    adjective=self._phrase("adjective", grade),
                )
                yield "other", slots, facts

    def _lesions(self) -> Iterator[tuple[str, Mapping[str, str], tuple[Fact, ...]]]:
        facts = self._facts(groups()["lge"])
        for lesion, shape in zip(self.study.truth.lge, self.study.parameters.lge, strict=True):
            slots = _slots(
                self._where(lesion.segments, lesion), pattern=self._phrase("pattern", of_four(lesion.pattern))
            )
            if lesion.layer is None:
                yield "elsewhere", slots, facts
                continue
            slots["layer"] = self._phrase("layer", lesion.layer)
            numbered = lesion.layer in ("subendocardial", "transmural") and shape.depth[1] < 1
            if numbered and shape.depth[0] == 0 and self.draw.chance(0.4):
                slots["depth"] = f"{100 * shape.depth[1]:.0f}"
                yield "number", slots, facts
            else:
                yield "present", slots, facts

    def _defect(self) -> Iterator[tuple[str, Mapping[str, str], tuple[Fact, ...]]]:
        defect = self.study.truth.perfusion
        assert defect is not None
        (how,) = self.found["perfusion.distribution"]
        slots = _slots(
            self._where(defect.segments),
            what=self._phrase("perfusion.distribution", how),
            how=self._phrase("how", how),
        )
        yield "defect", slots, self._facts(groups()["perfusion"])

    def _oedema(self) -> Iterator[tuple[str, Mapping[str, str], tuple[Fact, ...]]]:
        truth: Truth = self.study.truth
        where = sorted({number for lesion in truth.oedema for number in lesion.segments})
        (how,) = self.found["t2.distribution"]
        slots = _slots(self._where(where), how=self._phrase("how", how))
        yield "increased", slots, self._facts(groups()["t2"])


def numbers(study: Study) -> dict[str, str]:
    """Return the measured values of a heart, formatted for a report."""
    p, measured = study.parameters, measure(Heart(study.parameters))
    lvedv, rvedv = measured.lv_edv_index * p.bsa, measured.rv_edv_index * p.bsa
    lvesv = lvedv * (1 - measured.lv_ef / 100)
    return {
        "lvedvi": f"{measured.lv_edv_index:.0f}",
        "lvedv": f"{lvedv:.0f}",
        "lvesv": f"{lvesv:.0f}",
        "lvsv": f"{lvedv - lvesv:.0f}",
        "lvef": f"{measured.lv_ef:.0f}",
        "rvedvi": f"{measured.rv_edv_index:.0f}",
        "rvedv": f"{rvedv:.0f}",
        "rvef": f"{measured.rv_ef:.0f}",
        "fluid_mm": f"{p.fluid:.0f}",
    }


def _slots(where: Place, **more: str) -> dict[str, str]:
    verbs = {many: many if where.plural else singular for many, singular in _VERBS.items()}
    return {"where": where.text, **verbs, **more}


def _filled(template: str, slots: Mapping[str, str]) -> str:
    """Fill a template; capitalise the sentence and the text of every slot with a capitalised name."""
    names = {name for _, name, _, _ in string.Formatter().parse(template) if name}
    text = template.format_map({name: _capital(slots[name.lower()], name) for name in names})
    return text[0].upper() + text[1:]


def _capital(text: str, name: str) -> str:
    return text[0].upper() + text[1:] if name[0].isupper() else text
