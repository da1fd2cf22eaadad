"""Two patients under one study: some anonymisers write the same ids into the images of several people.

One examination has one scanner and one person. Derived images may come from a workstation, and do not count.
"""

from collections.abc import Callable, Sequence

from cardiolens.curation.ingest.image import Image

_FACTS: dict[str, Callable[[Image], str]] = {
    "manufacturers": lambda image: image.person.manufacturer.upper().split(" ")[0],
    "models": lambda image: image.person.model.upper(),
    "field strengths": lambda image: "" if image.person.tesla is None else f"{image.person.tesla:.1f}",
    "sexes": lambda image: image.person.sex.upper(),
    "ages": lambda image: image.person.age.upper(),
}


def mixed(images: Sequence[Image]) -> str:
    """Return which facts of one examination differ within a study's original images, else nothing."""
    originals = [image for image in images if image.image_type[:1] != ("DERIVED",)]
    several = [
        name
        for name, fact in _FACTS.items()
        if len({value for image in originals if (value := fact(image))}) > 1
    ]
    return f"several {', '.join(several)}" if several else ""
