"""Reasons for uncertain answers from masks."""

from enum import StrEnum


class Reason(StrEnum):
    """A reason why a mask gives no certain answer, and its meaning."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> "Reason":
        reason = str.__new__(cls, value)
        reason._value_ = value
        reason.meaning = meaning
        return reason

    NOT_LABELLED = "not_labelled", "the masks do not label the structure"
    ONE_MOMENT = "one_moment", "end-diastole or end-systole is not labelled"
    NO_BODY_SIZE = "no_body_size", "volumes are graded by body surface, which is not known"
    BETWEEN_GRADES = "between_grades", "the measurement lies between two options"
    NO_MOTION = "no_motion", "masks at two phases do not show how a wall moves"
    BULGING = "bulging", "a thin wall may bulge, which is not measured"
    NO_SEGMENTS = (
        "no_segments",
        "the slice order or the display is uncertain, or no ring of muscle is closed",
    )
    APICAL_CAP = "apical_cap", "the answer depends on the apical cap, which the slices do not cut"
    SEGMENT_IN_DOUBT = "segment_in_doubt", "the answer depends on segments that are barely affected"
    LAYER_IN_DOUBT = "layer_in_doubt", "the depth of a lesion fits no layer, or several"
    STRUCTURE_NOT_LABELLED = (
        "structure_not_labelled",
        "papillary muscles or the wall of the right ventricle are not labelled",
    )
    HIDDEN_BY_SCAR = (
        "hidden_by_scar",
        "the label map allows only one lesion per voxel, so scar hides oedema",
    )
    NOT_PLAUSIBLE = "not_plausible", "the cavity is not smaller in end-systole"


MEANINGS = {reason: reason.meaning for reason in Reason}
