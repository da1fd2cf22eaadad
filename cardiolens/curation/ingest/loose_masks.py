"""Masks that a person gives to a volume: whether they fit, and the frames of the volume with them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cardiolens.curation.ingest.decide import Identify
from cardiolens.curation.ingest.decisions import Choice
from cardiolens.curation.ingest.image import Image, LooseMask, MaskFrame
from cardiolens.curation.ingest.stack import Stack

Masks = Mapping[str, LooseMask]  # of a study, by their ids


def with_mask_ids(masks: Sequence[LooseMask], identify: Identify) -> dict[str, LooseMask]:
    """Return the masks of a study by ids that every copy of the set shares; equal masks share one."""
    return {identify(["mask", *mask.digests]): mask for mask in masks}


def fitting(stack: Stack, masks: Masks) -> list[str]:
    """Return the ids of the masks whose frames are those of a stack."""
    if stack.first.reading is None:
        return []
    size = stack.n_slices, stack.first.rows, stack.first.columns
    return [name for name, mask in masks.items() if mask.fits(*size) and mask.grid[1] in (1, stack.n_phases)]


def misfits(stack: Stack, choice: Choice, masks: Masks) -> bool:
    """Return whether a choice gives a stack a mask that does not fit, or does not say of which phase."""
    fit = fitting(stack, masks)
    return any(
        name not in fit
        or (phase is None) != (masks[name].grid[1] == stack.n_phases)
        or (phase or 0) >= stack.n_phases
        for name, phase in choice.loose_masks.items()
    )


def with_given_masks(stack: Stack, choice: Choice, masks: Masks) -> Stack:
    """Return a stack whose frames have the masks that a person gave it, in place of any others there.

    Masks that the layout names stay at the other frames, unless the person says that they are not its.
    """
    per_file = Counter(image.place for image in stack.images())
    grid = []
    for line in stack.grid:
        images = []
        for phase, image in enumerate(line):
            slice_number = image.frame // (per_file[image.place] // stack.n_slices)
            bare = replace(image, mask=None) if choice.mask is False else image
            images.append(_masked(bare, slice_number, phase, choice, masks))
        grid.append(tuple(images))
    return replace(stack, grid=tuple(grid))


def _masked(image: Image, slice_number: int, phase: int, choice: Choice, masks: Masks) -> Image:
    for name, of_phase in choice.loose_masks.items():
        mask = masks[name]
        if of_phase in (None, phase):
            number = slice_number * mask.grid[1] + (phase if mask.grid[1] > 1 else 0)
            image = replace(image, mask=MaskFrame(mask.place, number, mask.labels, mask.rule))
    return image
