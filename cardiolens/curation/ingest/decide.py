"""Apply a person's decisions to the proposals of a study; confirmed proposals bypass the threshold."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cardiolens.curation.ingest.decisions import Choice, Choices, contradicted
from cardiolens.curation.ingest.evidence import Witness
from cardiolens.curation.ingest.image import Image
from cardiolens.curation.ingest.nifti.nifti_file import SPACING_FLAGS
from cardiolens.curation.ingest.propose import Proposal
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.series_grouping import reversed_stack
from cardiolens.curation.ingest.stack import Stack

Identify = Callable[[Sequence[str]], str]  # parts of a stack's identity → its id


def with_ids(
    proposals: Sequence[Proposal], pixels: Mapping[Image, Any], identify: Identify
) -> list[Proposal]:
    """Set the stack id of each proposal; number stacks that share all parts of their identity."""
    identified, used_ids = [], set()
    for proposal in sorted(proposals, key=lambda each: (each.stack.series, each.stack.later)):
        parts = _parts(proposal.stack, pixels)
        copy = 1
        while (stack_id := identify([*parts, str(copy)])) in used_ids:
            copy += 1
        used_ids.add(stack_id)
        identified.append(replace(proposal, stack_id=stack_id))
    return identified


def _parts(stack: Stack, pixels: Mapping[Image, Any]) -> list[str]:
    """Return what every export of a stack shares: series (else frame contents), plane, kind of image."""
    first = min(stack.images(), key=lambda image: (image.identity.series, image.instance_number))
    plane = [f"{value + 0.0:.2f}" for value in (*first.row_direction, *first.column_direction)]
    kind = [first.component, "/".join(first.image_type), str(first.echo), f"{first.rows}x{first.columns}"]
    series = {image.identity.series for image in stack.images()}
    if all(series):
        return [*sorted(series), *plane, *kind]
    frames = sorted(
        hashlib.sha256(np.asarray(pixels[image]).tobytes()).hexdigest() for image in stack.images()
    )
    return ["content", *frames, *plane, *kind]


def decided_by(
    proposals: Sequence[Proposal], choices: Choices, misfits: Callable[[Stack, Choice], bool]
) -> list[Proposal]:
    """Apply each choice to the proposal of its stack; a refused choice only adds a flag.

    `misfits` tells whether a choice gives a stack a mask that is none of it.
    """
    ours = [choices[each.stack_id] for each in proposals if each.stack_id in choices]
    twice = contradicted(ours)
    return [_decided(each, choices.get(each.stack_id), twice, misfits) for each in proposals]


def _decided(
    proposal: Proposal, choice: Choice | None, twice: set[str], misfits: Callable[[Stack, Choice], bool]
) -> Proposal:
    if choice is None:
        return proposal
    if choice.status == "excluded":
        return proposal.left_out(Reason.EXCLUDED)
    declared = proposal.stack.first.declared
    by_layout = "" if declared is None else declared.sequence
    refused = "two_stacks" if choice.volume_id in twice else None
    refused = refused or choice.refused(proposal.stack.n_phases, by_layout)
    refused = refused or _refused_spacing(proposal, choice)
    refused = refused or ("mask" if misfits(proposal.stack, choice) else None)
    if refused is not None:
        return proposal.flagged(f"decision_refused_{refused}", factor=0.0)
    sequence, view = str(choice.sequence), str(choice.view)
    witnesses = tuple(
        (subject, Witness("person", says, 1.0, "confirmed"))
        for subject, says in (("sequence", sequence), ("view", view))
    )
    forward = choice.along_normal == runs_along_normal(proposal.stack)
    return replace(
        proposal,
        sequence=sequence,
        view=view,
        confidence=1.0,
        witnesses=(*proposal.witnesses, *witnesses),
        status="taken",
        reason=None,
        stack=proposal.stack if forward else reversed_stack(proposal.stack),
    )


def _refused_spacing(proposal: Proposal, choice: Choice) -> str | None:
    """Refuse a decision that leaves the size of voxels open, or names a place that does not tell it."""
    if choice.spacing is None:
        return "spacing" if set(SPACING_FLAGS) & set(proposal.flags) else None
    return None if stated_mm(proposal.stack, choice) is not None else "spacing"


def stated_mm(stack: Stack, choice: Choice) -> tuple[float, float, float] | None:
    """Return the lengths of columns, rows and slices that a person states; None if nothing is stated."""
    if not isinstance(choice.spacing, str):
        return choice.spacing
    reading = stack.first.reading
    return None if reading is None else reading.places_mm.get(choice.spacing)


def runs_along_normal(stack: Stack) -> bool:
    """Return whether slice numbers grow along the plane's normal; True for a single slice."""
    return float((stack.corner(stack.n_slices - 1) - stack.corner(0)) @ stack.normal) >= 0
