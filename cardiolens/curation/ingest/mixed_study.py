"""Ids that an anonymiser spoilt: one study for several people, or a study for each single image.

One examination has one scanner and one person. Derived images may come from a workstation, and do not count.
"""

from collections.abc import Callable, Mapping, Sequence

from cardiolens.curation.ingest.image import Image

_FACTS: dict[str, Callable[[Image], str]] = {
    "manufacturers": lambda image: image.person.manufacturer.upper().split(" ")[0],
    "models": lambda image: image.person.model.upper(),
    "field strengths": lambda image: "" if image.person.tesla is None else f"{image.person.tesla:.1f}",
    "sexes": lambda image: image.person.sex.upper(),
    "ages": lambda image: image.person.age.upper(),
}
_SCATTERED = 20  # studies of one image each, from which a patient's ids are spoilt


def scattered(studies: Mapping[str, Sequence[Image]]) -> set[str]:
    """Return the studies of a patient who has many of one image each: nothing tells what belongs together."""
    of_patient: dict[str, list[str]] = {}
    for study_id, images in studies.items():
        if images[0].reading is None:
            of_patient.setdefault(images[0].identity.patient, []).append(study_id)
    return {
        study_id
        for ids in of_patient.values()
        if len(ids) >= _SCATTERED and all(len(studies[each]) == 1 for each in ids)
        for study_id in ids
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
