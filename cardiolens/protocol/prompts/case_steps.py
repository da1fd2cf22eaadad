"""Prompts of the MedThinkVQA steps that a model does itself before the answer."""

from cardiolens.protocol.dialogue.pending import mark

_IMAGES = "Step 1: findings of each image, as you described them:"
_FINDINGS = "Step 2: imaging findings of the case, as you summarised them:"


def steps_before(ending: str, n_images: int) -> tuple[str, str, str]:
    """Return the texts after the images for step 1, step 2 and the answer, which ends with `ending`."""
    first = (
        f"Step 1: describe the findings of each of the {n_images} images above, one line for each image, in "
        "their order, as `Image 1: ...`. Do not name a diagnosis."
    )
    images = f"{_IMAGES}\n{mark(0)}\n"
    second = (
        f"{images}Step 2: summarise the imaging findings of the whole case in one paragraph. Do not name a "
        "diagnosis."
    )
    return first, second, f"{images}{_FINDINGS}\n{mark(1)}\n{ending}"
