"""Proposals: sequence and view of each stack with witnesses and confidence; one stack taken per volume."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cardiolens.curation.ingest.evidence import Witness, best, disagree, weigh
from cardiolens.curation.ingest.image import Declared
from cardiolens.curation.ingest.nifti.exported_files import FEWEST_PHASES
from cardiolens.curation.ingest.nifti.nifti_file import SPACING_FLAGS
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.sequence import CLASSES
from cardiolens.curation.ingest.series_grouping import component_of
from cardiolens.curation.ingest.stack import Stack
from cardiolens.curation.ingest.stack_geometry import WHOLE_STACK, view_by_geometry
from cardiolens.study.anatomy import SHORT_AXIS, sequences
from cardiolens.study.heart_frame import PROTOTYPES, HeartFrame

VIEWS = (SHORT_AXIS, *PROTOTYPES, "other")
TEXT_FLAG = "text_in_picture"  # a flagged stack always waits for a person
CONTRADICTIONS = (  # flags whose stacks always wait for a person
    "slice_order_contradicted",
    "display_contradicted_by_mask",
    "heart_of_no_size",
    "slices_overlap",
    "slices_by_location",
    "many_images_of_one_position",
    "phases_do_not_correspond",
    "phases_contradicted",
    "time_contradicted",
    "stored_otherwise_than_the_layout_says",
    "ed_es_contradicted_by_mask",
    "ed_es_beyond_the_phases",
    "mask_of_other_labels",
    "mask_elsewhere",
)
_DECLARED = 0.98  # share of correct volumes among those that a layout names
_NAMED_VIEW = 0.8  # share of correct names among series names that name one view
_NAMED_OTHER = 0.85
_REFUTED = 0.02  # likelihood of a declared view below which geometry contradicts it
_MASKED = 0.95  # share of short axes among stacks whose mask shows rings
_OWN_REASONS = {"localizer": Reason.LOCALIZER, "scout": Reason.SCOUT, "other_part": Reason.OTHER_PART}

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
    flags: tuple[str, ...]
    status: Status
    reason: Reason | None = None
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

    def left_out(self, reason: Reason, *, waits: bool = False) -> "Proposal":
        """Return a copy that is left out or waits, with the reason."""
        return replace(self, status="waits" if waits else "left_out", reason=reason)

    def flagged(self, *flags: str, factor: float = 1.0) -> "Proposal":
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
    if stack.ringed:
        witnesses.append(Witness("mask", SHORT_AXIS, _MASKED, "its mask shows rings around a cavity"))
        likely = weigh(witnesses, VIEWS)
    if seen_view is not None:
        says, probability = best(seen_view.likely)
        witnesses.append(Witness("geometry", says, probability, seen_view.evidence))
        product = {name: likely[name] * max(seen_view.likely[name], 1e-4) for name in VIEWS}
        likely = {name: value / sum(product.values()) for name, value in product.items()}
    view, view_sure = best(likely)
    flags = list(stack.flags)
    flags += ["sequence_witnesses_disagree"] if disagree(stack.witnesses) else []
    flags += ["view_witnesses_disagree"] if disagree(witnesses) else []
    flags += ["no_short_axis_to_compare"] if stack.placed and not frame.known else []
    proposal = Proposal(
        stack=stack,
        sequence=sequence,
        view=view,
        confidence=sure * view_sure,
        witnesses=(
            *(("sequence", each) for each in stack.witnesses),
            *(("view", each) for each in witnesses),
            *_read_axes(stack),
        ),
        alternatives={name: p for name, p in (sequence_likely | likely).items() if p >= 0.01},
        flags=tuple(flags),
        status="taken",
        component=component_of(stack.first, stack.words[0]) if sequence == "lge" else "",
    )
    if proposal.volume_id:
        return proposal
    reason = next((_OWN_REASONS[kind] for kind in kinds if kind in _OWN_REASONS), None)
    return proposal.left_out(reason or (_other_sequence(stack) if sequence == "other" else Reason.OTHER_VIEW))


def _other_sequence(stack: Stack) -> Reason:
    """Return why studies do not include a sequence: its weighting, if anything tells it."""
    weighted = any(words.sequence == "other" or words.technique for words in stack.words) or any(
        (each.source, each.says) == ("tags", "other") for each in stack.witnesses
    )
    return Reason.OTHER_WEIGHTING if weighted else Reason.OTHER_SEQUENCE


def _declared(stack: Stack, declared: Declared, frame: HeartFrame) -> Proposal:
    """Return the volume that a layout names; geometry that contradicts its view lowers the confidence."""
    evidence = f"the layout {declared.layout} says so"
    witnesses = [
        ("sequence", Witness("layout", declared.sequence, _DECLARED, evidence)),
        ("view", Witness("layout", declared.view, _DECLARED, evidence)),
        *_read_axes(stack),
    ]
    likely, flags = {declared.view: 1.0}, list(stack.flags)
    if stack.placed and (by_geometry := view_by_geometry(stack, frame)) is not None:
        says, probability = best(by_geometry.likely)
        witnesses.append(("view", Witness("geometry", says, probability, by_geometry.evidence)))
        if by_geometry.likely[declared.view] < _REFUTED:
            flags.append("view_witnesses_disagree")
            likely = {declared.view: 0.5, says: 0.5}
    return Proposal(
        stack=stack,
        sequence=declared.sequence,
        view=declared.view,
        confidence=_DECLARED * likely[declared.view],
        witnesses=tuple(witnesses),
        alternatives={declared.sequence: _DECLARED} | likely,
        flags=tuple(flags),
        status="taken",
        component=component_of(stack.first, stack.words[0]) if declared.sequence == "lge" else "",
    )


def _read_axes(stack: Stack) -> list[tuple[str, Witness]]:
    """Return the witness for the axes of a NIfTI file; nothing for DICOM."""
    reading = stack.first.reading
    if reading is None:
        return []
    says = "time and slices" if reading.sure else "unclear"
    return [("axes", Witness("pixels", says, 0.95 if reading.sure else 0.5, reading.evidence))]


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
            waiting = proposal.flagged("one_phase", factor=0.0)
            decided.append(waiting.left_out(Reason.BELOW_THRESHOLD, waits=True))
    for rivals in by_volume.values():
        decided += _one_per_volume(rivals, lge, threshold)
    return sorted(decided, key=lambda proposal: (proposal.stack.series, proposal.stack.later))


def _waits_for(proposal: Proposal) -> Reason | None:
    """What a person must settle before the stack can be taken, however sure its sequence and view are."""
    if TEXT_FLAG in proposal.flags:
        return Reason.BURNED_IN_TEXT
    if not proposal.stack.placed and not proposal.displayable:
        return Reason.NO_POSITION
    if set(SPACING_FLAGS) & set(proposal.flags):
        return Reason.SPACING_UNSETTLED
    if set(CONTRADICTIONS) & set(proposal.flags):
        return Reason.CONTRADICTED
    return None if proposal.stack.sure or _is_one_frame(proposal) else Reason.AXES_UNCLEAR


def _is_one_frame(proposal: Proposal) -> bool:
    """Return whether a cine or first pass of DICOM has one frame a place: the others are missing."""
    timed = sequences()[proposal.sequence].over_time != "nothing"
    return timed and proposal.stack.n_phases == 1 and proposal.stack.first.reading is None


def _one_per_volume(rivals: Sequence[Proposal], lge: str, threshold: float) -> list[Proposal]:
    ranked = sorted(rivals, key=lambda rival: _rank(rival, lge, threshold), reverse=True)
    first, rest = ranked[0], ranked[1:]
    if first.confirmed:
        return [first, *(_beaten(rival, first) for rival in rest)]
    states = {words.state for rival in ranked for words in rival.stack.words if words.state}
    if len(states) > 1:
        first = first.flagged("rest_and_stress")
    if any(_rank(rival, lge, threshold)[:-1] == _rank(first, lge, threshold)[:-1] for rival in rest):
        first = first.flagged("acquired_again_the_later_taken")
    if any(rival.stack.n_slices > first.stack.n_slices for rival in rest):
        first = first.flagged("stack_of_more_slices_left_out")
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
    component = bool(rival.component) and rival.component != first.component
    return rival.left_out(Reason.OTHER_COMPONENT if component else Reason.REPEAT)
