"""Sequence and view of each stack, with witnesses and confidence; one stack is taken per volume.

Views follow from the angle between a plane and the heart's long axis, in patient coordinates. The heart's
frame has three directions: `base` along the long axis, `up` (anterior in a displayed short axis) and `right`
(lateral). What the study itself shows defines it, before any prior: a stack's siblings, its name and its own
shape; without a short axis, the line in which its long-axis planes meet. Four-, two- and three-chamber planes
lie near 8, 67 and 128 degrees about it (protocol 1.3). The phantom has 3, 63 and 123, one real study has 12,
70 and 133.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from cardiolens.curation.ingest.frame_records import Declared, Point, Stack, Witness
from cardiolens.curation.ingest.nifti_file import FEWEST_PHASES
from cardiolens.curation.ingest.reasons import HOLDS, Flag, Reason
from cardiolens.curation.ingest.sequence import CLASSES, best, component_of, disagree, weigh
from cardiolens.study.anatomy import SHORT_AXIS, sequences
from cardiolens.study.heart_frame import PROTOTYPES, TYPICAL_BASE, HeartFrame, frame_along

VIEWS = (SHORT_AXIS, *PROTOTYPES, "other")
_DECLARED = 0.98  # share of correct volumes among those that a layout names
_NAMED_VIEW = 0.8  # share of correct names among series names that name one view
_NAMED_OTHER = 0.85
_REFUTED = 0.02  # likelihood of a declared view below which geometry contradicts it
_OTHER_KINDS = ("localizer", "scout")  # by their names

Status = Literal["taken", "waits", "left_out"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """One stack with its proposed sequence and view, and the confidence in both."""

    stack: Stack
    sequence: str
    view: str
    confidence: float
    witnesses: tuple[tuple[str, Witness], ...]  # (sequence or view, witness)
    alternatives: dict[str, float]  # probability of each sequence and view above 1 %
    flags: tuple[Flag, ...]
    status: Status
    reason: Reason | None = None
    detail: str = ""  # of the reason
    component: str = ""
    stack_id: str = ""  # key of decisions

    @property
    def confirmed(self) -> bool:
        """Whether a person decided on sequence and view."""
        return any(witness.source == "person" for _, witness in self.witnesses)

    @property
    def volume_id(self) -> str:
        """Volume id of sequence and view; empty if studies have no such volume."""
        rule = sequences().get(self.sequence)
        return rule.volume_id(self.view) if rule is not None and self.view in rule.views else ""

    @property
    def displayable(self) -> bool:
        """Whether a layout declares how the stored frames are shown."""
        declared = self.stack.first.declared
        return declared is not None and declared.display is not None

    def left_out(self, reason: Reason, detail: str = "", *, waits: bool = False) -> "Proposal":
        """Return a copy that is left out or waits, with the reason."""
        return replace(self, status="waits" if waits else "left_out", reason=reason, detail=detail)

    def flagged(self, *flags: Flag, factor: float = 1.0) -> "Proposal":
        """Return a copy with further flags and the confidence multiplied by `factor`."""
        every = tuple(dict.fromkeys((*self.flags, *flags)))
        return replace(self, flags=every, confidence=self.confidence * factor)


def propose(stacks: Sequence[Stack], frame: HeartFrame) -> list[Proposal]:
    """Propose sequence and view of each stack independently."""
    return [_proposal(stack, frame) for stack in stacks]


def _proposal(stack: Stack, frame: HeartFrame) -> Proposal:
    if stack.first.declared is not None:
        return _declared(stack, stack.first.declared, frame)
    kinds = [words.kind for words in stack.words if words.kind]
    sequence_likely = weigh(stack.witnesses, CLASSES) if stack.witnesses else {"other": 1.0}
    sequence, sure = best(sequence_likely)
    view_words = _view_words(stack, kinds)
    likely = weigh(view_words, VIEWS)
    seen_view = view_by_geometry(stack, frame) if stack.placed else None
    witnesses = list(view_words)
    if seen_view is not None:
        says, probability = best(seen_view.likely)
        witnesses.append(Witness("geometry", says, probability, seen_view.evidence))
        product = {name: likely[name] * max(seen_view.likely[name], 1e-4) for name in VIEWS}
        likely = {name: value / sum(product.values()) for name, value in product.items()}
    view, view_sure = best(likely)
    flags = list(stack.flags)
    flags += [Flag.WITNESSES] if disagree(stack.witnesses) or disagree(witnesses) else []
    flags += [Flag.ORDER_BY_DEFAULT] if stack.placed and not frame.known else []
    proposal = Proposal(
        stack=stack,
        sequence=sequence,
        view=view,
        confidence=sure * view_sure,
        witnesses=(
            *(("sequence", each) for each in stack.witnesses),
            *(("view", each) for each in witnesses),
        ),
        alternatives={name: p for name, p in (sequence_likely | likely).items() if p >= 0.01},
        flags=tuple(dict.fromkeys(flags)),
        status="taken",
        component=component_of(stack.first, stack.words[0]) if sequence == "lge" else "",
    )
    if proposal.volume_id:
        return proposal
    if kind := next((kind for kind in kinds if kind in _OTHER_KINDS), ""):
        return proposal.left_out(Reason.OTHER_IMAGE, kind)
    if sequence == "other" and "other_part" not in kinds:
        return proposal.left_out(Reason.OTHER_SEQUENCE, _weighting(stack))
    return proposal.left_out(Reason.OTHER_VIEW, "its name says another part" if "other_part" in kinds else "")


def _weighting(stack: Stack) -> str:
    """Return that a sequence has another weighting, if anything tells it."""
    by_words = any(words.sequence == "other" or words.technique for words in stack.words)
    by_tags = any((each.source, each.says) == ("tags", "other") for each in stack.witnesses)
    return (
        "T1- or proton-weighted, or a spin echo that nothing calls T2-weighted" if by_words or by_tags else ""
    )


def _declared(stack: Stack, declared: Declared, frame: HeartFrame) -> Proposal:
    """Return the volume that a layout names; geometry that contradicts its view lowers the confidence."""
    evidence = f"the layout {declared.layout} says so"
    witnesses = [
        ("sequence", Witness("layout", declared.sequence, _DECLARED, evidence)),
        ("view", Witness("layout", declared.view, _DECLARED, evidence)),
    ]
    likely, flags = {declared.view: 1.0}, list(stack.flags)
    if stack.placed and (by_geometry := view_by_geometry(stack, frame)) is not None:
        says, probability = best(by_geometry.likely)
        witnesses.append(("view", Witness("geometry", says, probability, by_geometry.evidence)))
        if by_geometry.likely[declared.view] < _REFUTED:
            flags.append(Flag.WITNESSES)
            likely = {declared.view: 0.5, says: 0.5}
    return Proposal(
        stack=stack,
        sequence=declared.sequence,
        view=declared.view,
        confidence=_DECLARED * likely[declared.view],
        witnesses=tuple(witnesses),
        alternatives={declared.sequence: _DECLARED} | likely,
        flags=tuple(dict.fromkeys(flags)),
        status="taken",
        component=component_of(stack.first, stack.words[0]) if declared.sequence == "lge" else "",
    )


def _view_words(stack: Stack, kinds: Sequence[str]) -> list[Witness]:
    """Return the witness of the series names for a view; contradicting names lower its reliability."""
    if "other_part" in kinds:
        return [Witness("words", "other", _NAMED_OTHER, "the name says another part")]
    views = [words.view for words in stack.words if words.view]
    if not views:
        return []
    commonest = max(sorted(set(views)), key=views.count)
    share = views.count(commonest) / len(views)
    return [
        Witness(
            "words",
            commonest,
            max(_NAMED_VIEW * share, 0.3),
            f"the name says {', '.join(sorted(set(views)))}",
        )
    ]


def choose(proposals: Iterable[Proposal], lge: str, threshold: float) -> list[Proposal]:
    """Take at most one proposal per volume; give every other proposal a reason."""
    decided: list[Proposal] = []
    alone: list[Proposal] = []
    by_volume: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        if proposal.status == "left_out":
            decided.append(proposal)
            continue
        waits = None if proposal.confirmed else _waits_for(proposal)
        if waits is not None:
            decided.append(proposal.left_out(waits, waits=True))
        elif not proposal.confirmed and _is_one_frame(proposal):
            alone.append(proposal)
        else:
            by_volume.setdefault(proposal.volume_id, []).append(proposal)
    for proposal in alone:
        if proposal.volume_id in by_volume:
            decided.append(proposal.left_out(Reason.REPEAT))
        else:
            waiting = proposal.flagged(Flag.PHASES, factor=0.0)
            decided.append(waiting.left_out(Reason.CONTRADICTED, "one frame a place", waits=True))
    for rivals in by_volume.values():
        decided += _one_per_volume(rivals, lge, threshold)
    return sorted(decided, key=lambda proposal: (proposal.stack.series, proposal.stack.later))


def _waits_for(proposal: Proposal) -> Reason | None:
    """Return what a person must settle first, however sure sequence and view are."""
    if Flag.TEXT in proposal.flags:
        return Reason.BURNED_IN_TEXT
    if not proposal.stack.placed and not proposal.displayable:
        return Reason.NO_POSITION
    if Flag.SPACING in proposal.flags:
        return Reason.NO_SPACING
    return None if HOLDS.isdisjoint(proposal.flags) else Reason.CONTRADICTED


def _is_one_frame(proposal: Proposal) -> bool:
    """Return whether a cine or first pass has one frame a place and nothing names it: others are missing."""
    first, timed = proposal.stack.first, sequences()[proposal.sequence].over_time != "nothing"
    return timed and proposal.stack.n_phases == 1 and first.declared is None and not first.moment


def _one_per_volume(rivals: Sequence[Proposal], lge: str, threshold: float) -> list[Proposal]:
    ranked = sorted(rivals, key=lambda rival: _rank(rival, lge, threshold), reverse=True)
    first, rest = ranked[0], ranked[1:]
    if first.confirmed:
        return [first, *(_beaten(rival, first) for rival in rest)]
    states = {words.state for rival in ranked for words in rival.stack.words if words.state}
    if len(states) > 1:
        first = first.flagged(Flag.REPEATS)
    if any(_rank(rival, lge, threshold)[:-1] == _rank(first, lge, threshold)[:-1] for rival in rest):
        first = first.flagged(Flag.REPEATS)
    if any(rival.stack.n_slices > first.stack.n_slices for rival in rest):
        first = first.flagged(Flag.INCOMPLETE)
    if first.confidence < threshold:
        first = first.left_out(Reason.BELOW_THRESHOLD, waits=True)
    return [first, *(_beaten(rival, first) for rival in rest)]


def _rank(
    proposal: Proposal, lge: str, threshold: float
) -> tuple[bool, bool, bool, bool, bool, int, int, int, int, tuple[int, int, int]]:
    """Return a sort key that is larger for the better rival.

    Phases that cover their cycle or first pass come first, then names; of short axes more slices win early.
    """
    stack = proposal.stack
    across = proposal.view == SHORT_AXIS
    timed = sequences()[proposal.sequence].over_time != "nothing"
    is_named = any((each.sequence, each.view) == (proposal.sequence, proposal.view) for each in stack.words)
    surely = int(10 * proposal.confidence + 0.5)
    return (
        proposal.confirmed,
        proposal.component in ("", lge),
        proposal.confidence >= threshold,
        not timed or stack.n_phases >= FEWEST_PHASES,
        is_named and (stack.n_slices >= WHOLE_STACK or not across),
        stack.n_slices if across else 0,
        surely,
        stack.n_slices,
        stack.n_phases,
        stack.later,
    )


def _beaten(rival: Proposal, first: Proposal) -> Proposal:
    is_other = bool(rival.component) and rival.component != first.component
    return rival.left_out(Reason.REPEAT, f"the {first.component} image is taken" if is_other else "")


_SPREAD_DEG, _SPREAD_MM = 13.0, 8.0
_SHORT_AXIS_DEG = 35.0  # between a stack's normal and the typical axis
_PARALLEL_DEG = 15.0  # between a stack's normal and the known axis
_LONG_AXIS_DEG = 25.0  # between a plane and the axis
_FEWEST_SLICES = 3  # of a stack that defines the axis
_CONCURRENT_MM = 12.0
_FARTHEST_DEG = 70.0  # from the typical axis: beyond it, which end is the base is not known
_ACROSS_DEG = 15.0  # between a stack's normal and a plane, or a line of planes, of its siblings
_SCANNER_DEG = 10.0  # between a normal and an axis of the scanner: an axial, coronal or sagittal stack
_APART_DEG = 30.0  # between two planes whose common line is meant
WHOLE_STACK, _WHOLE_CYCLE = 6, 8  # slices and phases that only a short-axis cine has
_ENOUGH = 2  # support from which a stack defines the axis


def heart_frame(stacks: Sequence[Stack]) -> HeartFrame:
    """Return the heart's frame by the best short-axis stack, else by long-axis planes, else a typical one."""
    planes = long_axis_planes(stacks)
    supported = [(_support(stack, planes), stack) for stack in stacks if stack.n_slices >= _FEWEST_SLICES]
    short = [(support, stack) for support, stack in supported if support >= _ENOUGH]
    if short:
        _, best = max(short, key=lambda pair: (pair[0], pair[1].n_slices, pair[1].n_phases))
        direction: Point | None = best.normal
    else:
        direction = _common_line(planes)
    frame = frame_along(direction, None)
    return frame if direction is None else replace(frame, axis=_crossing(stacks, frame))


def long_axis_planes(stacks: Sequence[Stack]) -> list[Stack]:
    """Return the stacks that are named a long-axis view, and single planes that are not named otherwise."""
    return [
        stack
        for stack in stacks
        if (view := _named_view(stack)) in PROTOTYPES or (view is None and stack.n_slices < _FEWEST_SLICES)
    ]


def _named_view(stack: Stack) -> str | None:
    """Return the view that the stack's names agree on; `other` for another part of the body."""
    if any(words.kind for words in stack.words):
        return "other"
    views = {view for words in stack.words for view in words.views}
    return views.pop() if len(views) == 1 else None


def _support(stack: Stack, planes: Sequence[Stack]) -> int:
    """Return how much speaks for a stack of several slices to be the short axis.

    A typical direction counts 2, as much as two planes that meet along the normal, or as a name together
    with one plane across or with slices and phases that only a short axis has.
    """
    tilt, view = _tilt(stack, TYPICAL_BASE), _named_view(stack)
    if tilt >= _FARTHEST_DEG:
        return 0
    if tilt < _SHORT_AXIS_DEG:
        return 2 + max(_from_siblings(stack, planes), 0)
    support = _from_siblings(stack, planes)
    support += 1 if view == SHORT_AXIS else 0 if view is None else -2
    support += int(stack.n_slices >= WHOLE_STACK and stack.n_phases >= _WHOLE_CYCLE)
    return support - int(_along_scanner(stack))


def _from_siblings(stack: Stack, planes: Sequence[Stack]) -> int:
    """Return 2 if two planes meet along the normal, 1 if one lies across, -1 if a named one does not."""
    siblings = [plane for plane in planes if plane is not stack and _tilt(plane, stack.normal) > _APART_DEG]
    meeting = [
        line
        for first, second in combinations(siblings, 2)
        if (line := _line(first, second)) is not None and _between(line, stack.normal) < _ACROSS_DEG
    ]
    if meeting:
        return 2
    leanings = [(90 - _tilt(plane, stack.normal), _named_view(plane) in PROTOTYPES) for plane in planes]
    if any(is_named and leaning > _LONG_AXIS_DEG for leaning, is_named in leanings):
        return -1
    return int(any(leaning < _ACROSS_DEG for leaning, _ in leanings))


def _common_line(planes: Sequence[Stack]) -> Point | None:
    """Return the line that most long-axis planes contain; None without two named views, or if it is odd.

    Without a short axis any two planes have a line: their names and the typical axis must agree with it.
    """
    if len({_named_view(plane) for plane in planes} & PROTOTYPES.keys()) < 2:
        return None
    views = [plane for plane in planes if _named_view(plane) in PROTOTYPES]
    lines = [line for pair in combinations(views, 2) if (line := _line(*pair)) is not None]
    lines = [line for line in lines if _between(line, TYPICAL_BASE) < _SHORT_AXIS_DEG]
    if not lines:
        return None
    near = [sum(90 - _tilt(plane, line) < _ACROSS_DEG for plane in views) for line in lines]
    best = int(np.argmax(near))
    return lines[best] if near[best] == len(views) else None


def _line(first: Stack, second: Stack) -> Point | None:
    """Return the direction in which two planes meet; None if they are nearly parallel."""
    line = np.cross(first.normal, second.normal)
    length = float(np.linalg.norm(line))
    return None if length < np.sin(np.radians(_APART_DEG)) else line / length


def _along_scanner(stack: Stack) -> bool:
    return any(_tilt(stack, axis) < _SCANNER_DEG for axis in np.eye(3))


def _tilt(stack: Stack, axis: Point) -> float:
    """Return the angle between a stack's normal and an axis, 0 to 90 degrees."""
    return _between(stack.normal, axis)


def _between(first: Point, second: Point) -> float:
    """Return the angle between two lines in space, 0 to 90 degrees."""
    cosine = abs(float(first @ second)) / float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.degrees(np.arccos(min(cosine, 1.0))))


def _crossing(stacks: Sequence[Stack], frame: HeartFrame) -> Point | None:
    """Return a point on the line where most long-axis planes meet; None if fewer than three meet."""
    planes = [stack for stack in stacks if 90 - _tilt(stack, frame.base) < _LONG_AXIS_DEG]
    crossing: tuple[int, float, Point] | None = None
    for first, second in combinations(planes, 2):
        matrix = np.array([first.normal, second.normal, frame.base])
        if abs(np.linalg.det(matrix)) < 0.3:
            continue
        middles = _middle(first), _middle(second)
        level = float(frame.base @ (middles[0] + middles[1]) / 2)
        point = np.linalg.solve(
            matrix, [float(first.normal @ middles[0]), float(second.normal @ middles[1]), level]
        )
        near = [
            distance
            for distance in (plane_distance(plane, point) for plane in planes)
            if distance < _CONCURRENT_MM
        ]
        candidate = (len(near), -sum(near), point)
        if crossing is None or candidate[:2] > crossing[:2]:
            crossing = candidate
    return crossing[2] if crossing is not None and crossing[0] >= 3 else None


def _middle(stack: Stack) -> Point:
    return stack.centre(stack.n_slices // 2)


def plane_distance(stack: Stack, point: Point) -> float:
    """Return the distance of a point from the middle plane of a stack, mm."""
    return abs(float(stack.normal @ (point - _middle(stack))))


@dataclass(frozen=True, slots=True)
class SeenView:
    """View of a stack by geometry: probability of each view, and the evidence in words."""

    likely: dict[str, float]
    evidence: str


def view_by_geometry(stack: Stack, frame: HeartFrame) -> SeenView | None:
    """Return the probabilities of the four views and of `other`.

    If no stack defines the axis, stacks of fewer than three slices are less certain to be short axis.
    """
    tilt = _tilt(stack, frame.base)
    if frame.known and tilt < _PARALLEL_DEG:
        return _sure("sax", 0.97, f"{stack.n_slices} slices parallel to the short axis ({tilt:.0f} degrees)")
    if not frame.known and tilt < _SHORT_AXIS_DEG:
        if stack.n_slices < _FEWEST_SLICES:
            return _sure("sax", 0.7, f"a plane {tilt:.0f} degrees from a typical short axis")
        return _sure("sax", 0.97, f"{stack.n_slices} slices {tilt:.0f} degrees from a typical short axis")
    leaning = 90 - tilt
    if leaning > _LONG_AXIS_DEG + (0 if frame.known else 4):
        return _sure("other", 0.9, f"leans by {leaning:.0f} degrees on the long axis, which no view does")
    return _long_axis(stack, frame, leaning)


def _sure(view: str, probability: float, evidence: str) -> SeenView:
    views = ("sax", *PROTOTYPES, "other")
    rest = (1 - probability) / (len(views) - 1)
    return SeenView({name: probability if name == view else rest for name in views}, evidence)


def _long_axis(stack: Stack, frame: HeartFrame, leaning: float) -> SeenView:
    angle = frame.angle(np.cross(frame.base, stack.normal)) % 180
    spread = _SPREAD_DEG if frame.known else 1.3 * _SPREAD_DEG
    weights = {view: np.exp(-0.5 * (_apart(angle, at) / spread) ** 2) for view, at in PROTOTYPES.items()}
    evidence = f"a plane at {angle:.0f} degrees about the long axis, leaning by {leaning:.0f}"
    weights["other"] = 0.02
    if frame.axis is not None:
        away = plane_distance(stack, frame.axis)
        through = float(np.exp(-0.5 * (max(away - 4.0, 0.0) / _SPREAD_MM) ** 2))
        weights = {view: weight * (1.0 if view == "other" else through) for view, weight in weights.items()}
        evidence += f", {away:.0f} mm from the axis of the left ventricle"
    else:
        weights["other"] = 0.05
    total = sum(weights.values())
    likely = {view: 0.98 * float(weight / total) + 0.005 for view, weight in weights.items()}
    return SeenView({"sax": 1 - sum(likely.values()), **likely}, evidence)


def _apart(first: float, second: float) -> float:
    """Return the angle between two lines, degrees."""
    return abs((first - second + 90) % 180 - 90)
