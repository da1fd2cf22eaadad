"""Sequence of a series: witnesses from tags, words and structure; kinds that studies exclude."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import numpy as np

from cardiolens.curation.ingest.frame_records import WHOLE_CYCLE, Image, Witness
from cardiolens.curation.ingest.words import Words

CLASSES = ("cine", "lge", "perfusion", "t2", "other")
_WORDS = 0.85  # share of correct names among series names that name a sequence
_DERIVED = {"MPR", "MIP", "MINIP", "REFORMATTED", "SUBTRACT", "SUBTRACTION", "SUB", "COMPOSED"}
_DERIVED |= {"PROJECTION IMAGE"}
_MAPS = {"T1", "T2", "R1", "R2", "ECV"}  # and all that end so:
_MAP_ENDS = ("MAP", "_T1", "_T2")
_TILES = {"MOSAIC", "VFRAME"}  # of Siemens and United Imaging: the slices of a volume in one matrix
_FLOW = {"VELOCITY", "V", "FLOW_ENCODED", "PHASE MAP", "PCA", "PHASE CONTRAST", "VELOCITY MAP", "PC"}
_NAMED_FLOW = re.compile(r"_v\d+(in|ap|rl|fh)?\b|fastcine_?pc|qflow|\bpc_")  # names of the makers' sequences
_NAMED_INVERSION = re.compile(r"mde|psir|(^|[^a-z])ir[_-]?(fgre|tfl|tfe)")
_LONGEST_CYCLE = 2500.0  # ms
_T2_ECHO_MS = 35.0  # echo time above which an image is T2-weighted
_SHORT_ECHO_MS = 20.0  # echo time below which no spin echo is


def kind_by_tags(images: Sequence[Image], words: Words) -> str:
    """Return the kind that studies exclude, by image types, inversion times and planes; else nothing."""
    if "LOCALIZER" in images[0].image_type or _is_three_planes(images):
        return "localizer"
    return _kind_by_type(images[0], words) or _kind_by_inversions(images)


def _kind_by_type(image: Image, words: Words) -> str:
    types = set(image.image_type)
    if types & _TILES:
        return "mosaic: export its slices one by one"
    is_phase = image.component == "P" and words.sequence != "lge" and not _is_inverted(image)
    if image.velocity or _NAMED_FLOW.search(image.pulse.name) or types & _FLOW or is_phase:
        return "phase contrast"
    if types & _MAPS or any(word.endswith(_MAP_ENDS) for word in types):
        return "map"
    return "derived" if types & _DERIVED else ""


def _is_inverted(image: Image) -> bool:
    """Return whether inversion time, sequence, options or the maker's name for it show an inversion."""
    tagged = "IR" in image.pulse.scanning or any(option.startswith("IR") for option in image.pulse.options)
    return tagged or (image.pulse.inversion or 0) > 100 or bool(_NAMED_INVERSION.search(image.pulse.name))


def _kind_by_inversions(images: Sequence[Image]) -> str:
    times = {round(image.pulse.inversion) for image in images if image.pulse.inversion}
    places = Counter(image.position for image in images)
    if len(times) >= 5 and len(places) == 1:
        return "ti scout"
    if len(times) >= 3 and max(places.values()) >= 3 and len(times) >= max(places.values()) - 1:
        return "map"
    return ""


def _is_three_planes(images: Sequence[Image]) -> bool:
    """Return whether frames lie in all three planes of the body, like a localizer's."""
    normals = {tuple(np.round(np.abs(np.cross(i.row_direction, i.column_direction)), 2)) for i in images}
    planes = {int(np.argmax(normal)) for normal in normals if max(normal) > 0.95}
    return len(planes) == 3


def sequence_witnesses(images: Sequence[Image], per_place: int, words: Words) -> list[Witness]:
    """Collect witnesses for the sequence from words, structure and tags; `per_place` frames per position."""
    by_name: list[Witness] = []
    if words.sequence:
        reliability = _WORDS if len(words.sequences) == 1 else 0.7
        evidence = f"the name says {', '.join(words.sequences)}"
        by_name.append(Witness("words", words.sequence, reliability, evidence))
    if words.kind in ("localizer", "scout"):
        by_name.append(Witness("words", "other", _WORDS, f"the name says {words.kind}"))
    return [*by_name, *_structure(images, per_place), *_tags(images, per_place, words)]


def _structure(images: Sequence[Image], per_place: int) -> list[Witness]:
    """Return what the times of the frames at one position show: phases of a heartbeat, or beats."""
    places: dict[tuple[float, ...], list[Image]] = defaultdict(list)
    for image in images:
        places[image.position].append(image)
    triggers = [image.trigger for image in images if image.trigger is not None]
    is_cycle = len(triggers) == len(images) and max(triggers) - min(triggers) < _LONGEST_CYCLE
    times = max(len({image.trigger for image in place}) for place in places.values()) if is_cycle else 1
    if per_place > 1 and times >= min(per_place, WHOLE_CYCLE):
        evidence = f"{per_place} trigger times within one heartbeat at each place"
        return [Witness("structure", "cine", 0.98, evidence)]
    if per_place < 15:
        return []
    clocks = [[image.clock for image in place if image.clock is not None] for place in places.values()]
    spans = [(max(each) - min(each)) / (per_place - 1) for each in clocks if len(each) == per_place]
    what, seconds = f"{per_place} frames a place", median(spans) if spans else 0.0
    if seconds > 0.35:
        return [Witness("structure", "perfusion", 0.98, f"{what}, one every {seconds:.1f} s")]
    return [Witness("structure", "perfusion" if times == 1 else "cine", 0.7, what)]


def _tags(images: Sequence[Image], per_place: int, words: Words) -> list[Witness]:
    first = images[0]
    inverted = _is_inverted(first)
    if per_place == 1 and (_is_spin_echo(first) or (first.pulse.echo or 0) > _T2_ECHO_MS):
        return [_weighting(first, words)]
    if per_place == 1:
        return [Witness("tags", "lge", 0.98, "gradient echo with inversion")] if inverted else []
    if re.search(r"tfi|fiesta|ssfp|tfe2d", first.pulse.name) and not inverted:
        return [Witness("tags", "cine", 0.8, "a steady-state sequence with several phases")]
    if (first.phases_declared or 0) >= 8 and not inverted:
        return [Witness("tags", "cine", 0.85, f"{first.phases_declared} cardiac phases are declared")]
    if first.temporal is not None and (first.phases_declared or 0) <= 1 and per_place >= 15:
        return [Witness("tags", "perfusion", 0.7, "temporal positions and no cardiac phases")]
    return []


def _is_spin_echo(image: Image) -> bool:
    tagged = bool({"SE", "SPIN"} & set(image.pulse.scanning))
    return tagged or bool(re.search(r"tse|fse|\*?tir|stir", image.pulse.name))


def _weighting(image: Image, words: Words) -> Witness:
    """Return whether a spin echo is T2-weighted: by its echo time, or by a name that this does not refute."""
    echo = image.pulse.echo
    if echo is not None and echo > _T2_ECHO_MS:
        return Witness("tags", "t2", 0.98, f"echo time {echo:.0f} ms")
    is_named = words.sequences == ("t2",) or bool(re.search(r"t2|\*?tir|stir", image.pulse.name))
    timing = "without an echo time" if echo is None else f"with an echo time of {echo:.0f} ms"
    evidence = f"a spin echo {timing}"
    if is_named and (echo is None or echo >= _SHORT_ECHO_MS):
        return Witness("tags", "t2", 0.9, f"{evidence}, named T2-weighted")
    return Witness("tags", "other", _WORDS if is_named else 0.98, f"{evidence}: not T2-weighted by that")


def component_of(image: Image, words: Words) -> str:
    """Return `psir` for a phase-sensitive image, else `magnitude`."""
    if image.component in ("P", "R") or {"PSIR", "PS", "REAL"} & set(image.image_type):
        return "psir"
    if image.component != "M" and words.component is None and image.image_type[:1] == ("DERIVED",):
        return "psir"
    return "magnitude" if image.component == "M" else words.component or "magnitude"


def sequence_of(witnesses: Sequence[Witness]) -> str:
    """Return the sequence that the witnesses name, `other` without any."""
    return best(weigh(witnesses, CLASSES))[0] if witnesses else "other"


def weigh(witnesses: Iterable[Witness], classes: Sequence[str]) -> dict[str, float]:
    """Return the posterior probability of each class: uniform prior, independent witnesses."""
    likely = dict.fromkeys(classes, 1.0)
    for witness in witnesses:
        other = (1 - witness.reliability) / (len(classes) - 1)
        for name in classes:
            likely[name] *= witness.reliability if name == witness.says else other
    total = sum(likely.values())
    return {name: value / total for name, value in likely.items()}


def best(likely: Mapping[str, float]) -> tuple[str, float]:
    """Return the likeliest class and its probability; the first class wins ties."""
    name = max(likely, key=lambda key: likely[key])
    return name, likely[name]


def disagree(witnesses: Iterable[Witness]) -> bool:
    """Return whether two witnesses name different classes."""
    return len({witness.says for witness in witnesses}) > 1
