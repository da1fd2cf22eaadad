"""Sequence and view of each stack, with witnesses and confidence; one stack is taken per volume.

Views follow from the angle between a plane and the heart's long axis (`orient`): four-, two- and
three-chamber planes lie near 8, 67 and 128 degrees about it (protocol 1.3). The phantom has 3, 63 and 123,
one real study has 12, 70 and 133.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from cardiolens.curation.ingest.conventions import volume_of
from cardiolens.curation.ingest.frame_records import WHOLE_CYCLE, Stack, Witness
from cardiolens.curation.ingest.reasons import HOLDS, Flag, Reason
from cardiolens.curation.ingest.sequence import CLASSES, best, component_of, disagree, weigh
from cardiolens.study.anatomy import SHORT_AXIS, sequences
from cardiolens.study.orientation import PROTOTYPES, HeartFrame
from cardiolens.study.volume_manifest import DisplayTransform

VIEWS = (SHORT_AXIS, *PROTOTYPES, "other")
_DECLARED = 0.98  # share of correct volumes among those that a layout names
_NAMED_VIEW = 0.8  # share of correct names among series names that name one view
_NAMED_OTHER = 0.85
_REFUTED = 0.02  # likelihood of a declared view below which geometry contradicts it
_SPREAD_DEG, _SPREAD_MM = 13.0, 8.0
SHORT_AXIS_DEG, _PARALLEL_DEG = 35.0, 15.0  # of a normal to the typical and to the known axis
LONG_AXIS_DEG = 25.0  # between a plane and the axis
FEWEST_SLICES = 3  # of a stack that defines the axis
_WHOLE_STACK = 6  # slices that, with whole cycles, only a short-axis cine has

AS_STORED = DisplayTransform(transpose=True)  # voxels are stored (column, row)
Status = Literal["taken", "waits", "left_out"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """One stack with its proposed sequence and view, the confidence in both, and what pictures show."""

    stack: Stack
    sequence: str
    view: str
    confidence: float
    witnesses: tuple[tuple[str, Witness], ...]  # (sequence or view, witness)
    alternatives: dict[str, float]  # probability of each sequence and view above 1 %
    flags: tuple[Flag, ...]
    status: Status = "taken"
    reason: Reason | None = None
    detail: str = ""  # of the reason
    component: str = ""
    stack_id: str = ""  # key of decisions
    ordered: bool = False  # whether a short axis is known to run from base to apex
    labels: str = ""  # label map of its masks; empty if none is used
    transform: DisplayTransform = AS_STORED
    times: Mapping[str, int] = field(default_factory=dict)  # ed_phase, es_phase; t_on, t_peak

    @property
    def confirmed(self) -> bool:
        """Whether a person decided on sequence and view."""
        return any(witness.source == "person" for _, witness in self.witnesses)

    @property
    def volume_id(self) -> str:
        """Volume id of sequence and view; empty if studies have no such volume."""
        return volume_of(self.sequence, self.view)

    @property
    def display(self) -> DisplayTransform | None:
        """How a layout declares that the stored frames are shown."""
        declared = self.stack.first.declared
        return None if declared is None else declared.display

    @property
    def over_time(self) -> bool:
        """Whether the sequence has phases."""
        return sequences()[self.sequence].over_time != "nothing"

    def left_out(self, reason: Reason, detail: str = "", *, waits: bool = False) -> "Proposal":
        """Return a copy that is left out or waits, with the reason."""
        return replace(self, status="waits" if waits else "left_out", reason=reason, detail=detail)

    def flagged(self, *flags: Flag, factor: float = 1.0) -> "Proposal":
        """Return a copy with further flags and the confidence multiplied by `factor`."""
        every = tuple(dict.fromkeys((*self.flags, *flags)))
        return replace(self, flags=every, confidence=self.confidence * factor)

    def timed(self, *flags: Flag, **times: int) -> "Proposal":
        """Return a copy with these times and further flags."""
        return replace(self.flagged(*flags), times={**self.times, **times})

    def witnessed(self, subject: str, witness: Witness) -> "Proposal":
        """Return a copy with a further witness."""
        return replace(self, witnesses=(*self.witnesses, (subject, witness)))


def propose(stacks: Sequence[Stack], frame: HeartFrame) -> list[Proposal]:
    """Propose sequence and view of each stack independently."""
    return [_proposal(stack, frame) for stack in stacks]


def _proposal(stack: Stack, frame: HeartFrame) -> Proposal:
    """Return the likeliest volume, or the one that a layout names; geometry may contradict either."""
    declared, kinds = stack.first.declared, {words.kind for words in stack.words if words.kind}
    if declared is None:
        by_sequence, by_view = list(stack.witnesses), _view_words(stack, kinds)
        sequence_likely = weigh(by_sequence, CLASSES) if by_sequence else {"other": 1.0}
        view_likely = weigh(by_view, VIEWS)
    else:
        by_sequence, by_view = (
            [Witness("layout", says, _DECLARED, f"the layout {stack.first.of_set} says so")]
            for says in (declared.sequence, declared.view)
        )
        sequence_likely, view_likely = {declared.sequence: _DECLARED}, {declared.view: 1.0}
    is_contradicted = False
    if stack.placed:
        by_geometry, evidence = view_by_geometry(stack, frame)
        says, probability = best(by_geometry)
        by_view.append(Witness("geometry", says, probability, evidence))
        if declared is None:
            product = {name: view_likely[name] * max(by_geometry[name], 1e-4) for name in VIEWS}
            view_likely = {name: value / sum(product.values()) for name, value in product.items()}
        elif by_geometry[declared.view] < _REFUTED:
            view_likely, is_contradicted = {declared.view: 0.5, says: 0.5}, True
    if declared is None:
        is_contradicted = disagree(by_sequence) or disagree(by_view)
    is_typical = declared is None and stack.placed and not frame.known
    (sequence, sure), (view, view_sure) = best(sequence_likely), best(view_likely)
    proposal = Proposal(
        stack=stack,
        sequence=sequence,
        view=view,
        confidence=sure * view_sure,
        witnesses=(*(("sequence", each) for each in by_sequence), *(("view", each) for each in by_view)),
        alternatives={name: p for name, p in {**sequence_likely, **view_likely}.items() if p >= 0.01},
        flags=stack.flags,
        component=component_of(stack.first, stack.words[0]) if sequence == "lge" else "",
    ).flagged(*[Flag.WITNESSES] * is_contradicted, *[Flag.ORDER_BY_DEFAULT] * is_typical)
    return proposal if proposal.volume_id else _without_volume(proposal, kinds)


def _without_volume(proposal: Proposal, kinds: Collection[str]) -> Proposal:
    """Leave out a stack that is of no volume of a study, with the reason."""
    if scout := {"localizer", "scout"} & {*kinds}:
        return proposal.left_out(Reason.OTHER_IMAGE, min(scout))
    if proposal.sequence == "other" and "other_part" not in kinds:
        return proposal.left_out(Reason.OTHER_SEQUENCE)
    return proposal.left_out(Reason.OTHER_VIEW, "its name says another part" if "other_part" in kinds else "")


def _view_words(stack: Stack, kinds: Iterable[str]) -> list[Witness]:
    """Return the witness of the series names for a view; contradicting names lower its reliability."""
    if "other_part" in kinds:
        return [Witness("words", "other", _NAMED_OTHER, "the name says another part")]
    views = [words.view for words in stack.words if words.view]
    if not views:
        return []
    commonest = max(sorted(set(views)), key=views.count)
    reliability = max(_NAMED_VIEW * views.count(commonest) / len(views), 0.3)
    return [Witness("words", commonest, reliability, f"the name says {', '.join(sorted(set(views)))}")]


def view_by_geometry(stack: Stack, frame: HeartFrame) -> tuple[dict[str, float], str]:
    """Return the probabilities of the four views and of `other`, and the evidence in words.

    If no stack defines the axis, stacks of fewer than three slices are less certain to be short axis.
    """
    angle = stack.tilt(frame.base)
    if angle < (_PARALLEL_DEG if frame.known else SHORT_AXIS_DEG):
        axis = "the" if frame.known else "a typical"
        evidence = f"{stack.n_slices} slices {angle:.0f} degrees from {axis} short axis"
        return _sure(SHORT_AXIS, 0.97 if frame.known or stack.n_slices >= FEWEST_SLICES else 0.7), evidence
    leaning = 90 - angle
    if leaning > LONG_AXIS_DEG + (0 if frame.known else 4):
        evidence = f"leans by {leaning:.0f} degrees on the long axis, which no view does"
        return _sure("other", 0.9), evidence
    degrees = frame.angle(np.cross(frame.base, stack.normal)) % 180
    evidence = f"a plane at {degrees:.0f} degrees about the long axis, leaning by {leaning:.0f}"
    spread = _SPREAD_DEG if frame.known else 1.3 * _SPREAD_DEG
    apart = {view: abs((degrees - at + 90) % 180 - 90) for view, at in PROTOTYPES.items()}
    weights = {view: float(np.exp(-0.5 * (away / spread) ** 2)) for view, away in apart.items()}
    if frame.axis is not None:
        away = stack.distance_mm(frame.axis)
        through = float(np.exp(-0.5 * (max(away - 4.0, 0.0) / _SPREAD_MM) ** 2))
        weights = {view: weight * through for view, weight in weights.items()}
        evidence += f", {away:.0f} mm from the axis of the left ventricle"
    weights["other"] = 0.05 if frame.axis is None else 0.02
    total = sum(weights.values())
    likely = {view: 0.98 * weight / total + 0.005 for view, weight in weights.items()}
    return {SHORT_AXIS: 1 - sum(likely.values()), **likely}, evidence


def _sure(view: str, probability: float) -> dict[str, float]:
    rest = (1 - probability) / (len(VIEWS) - 1)
    return {name: probability if name == view else rest for name in VIEWS}


def choose(proposals: Iterable[Proposal], lge: str, threshold: float) -> list[Proposal]:
    """Take at most one proposal per volume; give every other proposal a reason."""
    decided: list[Proposal] = []
    by_volume: dict[str, list[Proposal]] = defaultdict(list)
    for proposal in proposals:
        waits = None if proposal.confirmed or proposal.status == "left_out" else _waits_for(proposal)
        if waits is not None:
            scan = proposal.stack.first.nifti
            doubt = scan.doubt if scan is not None and waits is Reason.NO_SPACING else ""
            decided.append(proposal.left_out(waits, doubt, waits=True))
        elif proposal.status == "left_out":
            decided.append(proposal)
        else:
            by_volume[proposal.volume_id].append(proposal)
    for rivals in by_volume.values():
        decided += _one_per_volume(rivals, lge, threshold)
    return sorted(decided, key=lambda proposal: (proposal.stack.series, proposal.stack.later))


def _waits_for(proposal: Proposal) -> Reason | None:
    """Return what a person must settle first, however sure sequence and view are."""
    if Flag.TEXT in proposal.flags:
        return Reason.BURNED_IN_TEXT
    if not proposal.stack.placed and proposal.display is None:
        return Reason.NO_POSITION
    if Flag.SPACING in proposal.flags:
        return Reason.NO_SPACING
    return None if HOLDS.isdisjoint(proposal.flags) else Reason.CONTRADICTED


def _is_one_frame(proposal: Proposal) -> bool:
    """Return whether a cine or first pass has one frame a place and nothing names it: others are missing."""
    first = proposal.stack.first
    return proposal.over_time and proposal.stack.n_phases == 1 and first.declared is None and not first.moment


def _one_per_volume(rivals: Sequence[Proposal], lge: str, threshold: float) -> list[Proposal]:
    first, *rest = sorted(rivals, key=lambda rival: _rank(rival, lge, threshold), reverse=True)
    if not first.confirmed:
        states = {words.state for rival in rivals for words in rival.stack.words if words.state}
        equal = [_rank(rival, lge, threshold)[:-1] == _rank(first, lge, threshold)[:-1] for rival in rest]
        flags = [Flag.REPEATS] * (len(states) > 1 or any(equal))
        flags += [Flag.INCOMPLETE] * any(rival.stack.n_slices > first.stack.n_slices for rival in rest)
        first = first.flagged(*flags)
        if _is_one_frame(first):
            first = first.flagged(Flag.PHASES, factor=0.0)
            first = first.left_out(Reason.CONTRADICTED, "one frame a place", waits=True)
        elif first.confidence < threshold:
            first = first.left_out(Reason.BELOW_THRESHOLD, waits=True)
    return [first, *(_beaten(rival, first) for rival in rest)]


def _rank(proposal: Proposal, lge: str, threshold: float) -> tuple[bool | int | tuple[int, int, int], ...]:
    """Return a sort key that is larger for the better rival.

    Phases that cover their cycle or first pass come first, then names; of short axes more slices win early.
    """
    stack = proposal.stack
    across = proposal.view == SHORT_AXIS
    is_named = any((each.sequence, each.view) == (proposal.sequence, proposal.view) for each in stack.words)
    return (
        proposal.confirmed,
        not _is_one_frame(proposal),
        proposal.component in ("", lge),
        proposal.confidence >= threshold,
        not proposal.over_time or stack.n_phases >= WHOLE_CYCLE,
        is_named and (stack.n_slices >= _WHOLE_STACK or not across),
        stack.n_slices if across else 0,
        int(10 * proposal.confidence + 0.5),
        stack.n_slices,
        stack.n_phases,
        stack.later,
    )


def _beaten(rival: Proposal, first: Proposal) -> Proposal:
    is_other = bool(rival.component) and rival.component != first.component
    return rival.left_out(Reason.REPEAT, f"the {first.component} image is taken" if is_other else "")
