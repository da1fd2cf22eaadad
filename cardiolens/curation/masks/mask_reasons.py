"""Reasons for uncertain answers from masks."""

from enum import StrEnum


class Reason(StrEnum):
    """A reason why a mask gives no certain answer."""

    NOT_LABELLED = "not_labelled"  # the label map lacks the structure, or the sequence has no mask
    ONE_MOMENT = "one_moment"  # end-diastole or end-systole is not labelled
    NO_BODY_SIZE = "no_body_size"  # volumes are graded by body surface
    BETWEEN_GRADES = "between_grades"  # or the grade depends on an unknown sex
    NO_MOTION = "no_motion"  # masks at two phases give volumes, not wall motion
    BULGING = "bulging"  # a thin wall may bulge; bulging is not measured
    NO_SEGMENTS = "no_segments"  # slice order unknown, display contradicted, or no closed ring of muscle
    APICAL_CAP = "apical_cap"  # short-axis slices do not cut the apical cap
    SEGMENT_IN_DOUBT = "segment_in_doubt"  # the answer depends on segments that are barely affected
    LAYER_IN_DOUBT = "layer_in_doubt"
    STRUCTURE_NOT_LABELLED = "structure_not_labelled"  # papillary muscles or the RV free wall
    HIDDEN_BY_SCAR = "hidden_by_scar"  # the label map allows only one lesion per voxel
    NOT_PLAUSIBLE = "not_plausible"  # end-systole is not smaller than end-diastole


MEANINGS: dict[Reason, str] = {
    Reason.NOT_LABELLED: "the masks do not label the structure",
    Reason.ONE_MOMENT: "end-diastole or end-systole is not labelled",
    Reason.NO_BODY_SIZE: "volumes are graded by body surface, which is not known",
    Reason.BETWEEN_GRADES: "the measurement lies between two options",
    Reason.NO_MOTION: "masks at two phases do not show how a wall moves",
    Reason.BULGING: "a thin wall may bulge, which is not measured",
    Reason.NO_SEGMENTS: "the slice order or the display is uncertain, or no ring of muscle is closed",
    Reason.APICAL_CAP: "the answer depends on the apical cap, which the slices do not cut",
    Reason.SEGMENT_IN_DOUBT: "the answer depends on segments that are barely affected",
    Reason.LAYER_IN_DOUBT: "the depth of a lesion fits no layer, or several",
    Reason.STRUCTURE_NOT_LABELLED: "papillary muscles or the wall of the right ventricle are not labelled",
    Reason.HIDDEN_BY_SCAR: "the label map allows only one lesion per voxel, so scar hides oedema",
    Reason.NOT_PLAUSIBLE: "the cavity is not smaller in end-systole",
}
