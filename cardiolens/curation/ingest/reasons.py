"""Why parts of an export are left out, and what a person should look at: both lists, each with what to do.

`docs/reference/import.md` is made of these lists.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Why a file, a frame or a stack is left out or waits; every unused file has exactly one."""

    # files
    HOUSEKEEPING = "housekeeping"
    UNREADABLE = "unreadable"
    PACKED = "packed"
    NO_IMAGE = "no_image"
    BROKEN_FILE = "broken_file"
    NO_DECODER = "no_decoder"
    BURNED_IN_TEXT = "burned_in_text"
    BAD_SHAPE = "bad_shape"
    NO_POSITION = "no_position"
    NO_SPACING = "no_spacing"
    MASK = "mask"
    DUPLICATE = "duplicate"
    NOT_OF_LAYOUT = "not_of_layout"
    # people
    PATIENT_UNCLEAR = "patient_unclear"
    MIXED_STUDY = "mixed_study"
    # series and stacks
    OTHER_IMAGE = "other_image"
    OTHER_SEQUENCE = "other_sequence"
    OTHER_VIEW = "other_view"
    REPEAT = "repeat"
    INCOMPLETE = "incomplete"
    CONTRADICTED = "contradicted"
    BELOW_THRESHOLD = "below_threshold"
    EXCLUDED = "excluded"
    FAILED = "failed"


MEANINGS: dict[Reason, str] = {
    Reason.HOUSEKEEPING: "is a file of an archive, a disc or an operating system; nothing to do",
    Reason.UNREADABLE: "is empty, a link, too large or not readable; copy the file itself, check permissions",
    Reason.PACKED: "is a zip file or another archive; unpack it, and import the folder",
    Reason.NO_IMAGE: "is no grey MR image; nothing to do, unless it should be one",
    Reason.BROKEN_FILE: "is damaged, or declares what it does not hold; export it again",
    Reason.NO_DECODER: "is compressed; pip install 'cardiolens[dicom]' brings the decoders",
    Reason.BURNED_IN_TEXT: "declares or shows text, which may name the patient; export it without text",
    Reason.BAD_SHAPE: "has axes or sizes that no volume has; write one volume a file, as x, y, z, t",
    Reason.NO_POSITION: "has no usable position in the patient; confirm its display, or export with it",
    Reason.NO_SPACING: "has no usable size of voxels; state it on the page of confirm, or export with it",
    Reason.MASK: "is a mask that is of no image taken; nothing to do, unless a layout should name it",
    Reason.DUPLICATE: "repeats an earlier file; nothing to do",
    Reason.NOT_OF_LAYOUT: "is none of the files that the layout names; nothing to do, or layout=none",
    Reason.PATIENT_UNCLEAR: "is of one patient or several: give each a folder, or subject='a regular "
    "expression of the patient in paths'; in DICOM, keep study UIDs and birth dates",
    Reason.MIXED_STUDY: "is of a study of several scanners or persons under one id; export each on its own",
    Reason.OTHER_IMAGE: "is a scout, flow, tagged, map, tiled or derived image; nothing to do",
    Reason.OTHER_SEQUENCE: "has a sequence that is unknown or in no study; confirm it if that is wrong",
    Reason.OTHER_VIEW: "has a view that is unknown or in no study; confirm it if that is wrong",
    Reason.REPEAT: "was acquired again, or a better stack of the view is used; confirm it to take it instead",
    Reason.INCOMPLETE: "lacks phases, or nothing orders them; export the whole series",
    Reason.CONTRADICTED: "has flags that contradict its order, display or size; look at it and confirm it",
    Reason.BELOW_THRESHOLD: "is proposed with less confidence than the threshold; look at it and confirm it",
    Reason.EXCLUDED: "was excluded by a person; nothing to do",
    Reason.FAILED: "belongs to a study that could not be imported; report it with the kind of error",
}


class Flag(StrEnum):
    """What a person should look at in a volume; those of `HOLDS` let it wait."""

    TEXT = "text_in_picture"
    WITNESSES = "witnesses_disagree"
    ORDER = "slice_order_contradicted"
    DISPLAY = "display_contradicted"
    POSITION = "position_unknown"
    SPACING = "spacing_unsettled"
    PLACES = "slices_contradicted"
    PHASES = "phases_contradicted"
    MASK = "mask_contradicted"
    UNMASKED = "mask_not_used"
    INCOMPLETE = "incomplete"
    REPEATS = "repeats_left_out"
    ORDER_BY_DEFAULT = "order_by_default"
    TIMES = "times_by_default"
    VALUES = "values_changed"


HOLDS = frozenset({Flag.ORDER, Flag.DISPLAY, Flag.PLACES, Flag.PHASES, Flag.MASK})
FLAG_MEANINGS: dict[Flag, str] = {
    Flag.TEXT: "all its frames show a row of text, which may name the patient; it waits: look at it",
    Flag.WITNESSES: "name, tags, structure and geometry disagree on sequence or view; look at the sheet",
    Flag.ORDER: "mask or blood put the base at the other end; it waits: turn the slices, or confirm them",
    Flag.DISPLAY: "its mask or layout contradicts how it is shown; it waits: turn it upright, or confirm it",
    Flag.POSITION: "its header tells no position in the patient; without a layout it waits: show it upright",
    Flag.SPACING: "header, sidecar and a heart's size do not agree on the size of voxels; it waits: state it",
    Flag.PLACES: "slices overlap or share a position; it waits: check their order",
    Flag.PHASES: "header, name or information file contradict its phases; it waits: check ED, ES and order",
    Flag.MASK: "its mask has other labels, no ring, or darker blood; it waits: confirm without it",
    Flag.UNMASKED: "a mask of its set cannot be read, or is of no known phase; the rest is taken",
    Flag.INCOMPLETE: "slices or phases are missing, or a larger stack was left out; compare with the scanner",
    Flag.REPEATS: "frames, slices, UIDs or stacks are there twice; the later are taken: compare them",
    Flag.ORDER_BY_DEFAULT: "blood, numbers or a typical axis order it, or nothing does; check base and apex",
    Flag.TIMES: "end-systole or the first pass is not clear; mark it on the page of confirm",
    Flag.VALUES: "each frame has a scale of its own, or a fact of its set is no number; compare them",
}
