"""Names of views and sequences that code is about: the heart's, and those of questions without a study."""

from collections.abc import Mapping

from cardiolens.study.anatomy import Sequence, heart

SHORT_AXIS = "sax"
PICTURE = "picture"  # sequence of questions on one picture of a public benchmark, whose volume is CASE_IMAGES
CASE_IMAGES = "images"  # sequence, view and volume_id of case images, which belong to no study


def sequences() -> Mapping[str, Sequence]:
    """Return the sequences of the heart, which import, masks, drafts and phantoms are about."""
    return heart().sequences
