"""Why parts of an export are left out, and what a person should look at: both lists, each with what to do.

`docs/reference/import.md` is made of these lists.
"""

from cardiolens.base.phrasing import NameWithMeaning


class Reason(NameWithMeaning):
    """Why a file, a frame or a stack is left out or waits; every unused file has exactly one."""

    # files
    HOUSEKEEPING = "housekeeping", "is a file of an archive, a disc or an operating system; nothing to do"
    UNREADABLE = "unreadable", "is empty, a link, too large or not readable; copy the file, check permissions"
    PACKED = "packed", "is a zip file or another archive; unpack it, and import the folder"
    NO_IMAGE = "no_image", "is no grey MR image; nothing to do, unless it should be one"
    BROKEN_FILE = "broken_file", "is damaged, or declares what it does not hold; export it again"
    NO_DECODER = "no_decoder", "is compressed; pip install 'cardiolens[dicom]' brings the decoders"
    BURNED_IN_TEXT = "burned_in_text", "declares or shows text, perhaps a name; export it without text"
    BAD_SHAPE = "bad_shape", "has axes or sizes that no volume has; write one volume a file, as x, y, z, t"
    NO_POSITION = "no_position", "has no usable position; confirm its display, or export with it"
    NO_SPACING = "no_spacing", "has no usable size of voxels; state it (confirm), or export with it"
    MASK = "mask", "is a mask that is of no image taken; nothing to do, unless a layout should name it"
    DUPLICATE = "duplicate", "repeats an earlier file; nothing to do"
    NOT_OF_LAYOUT = "not_of_layout", "is no file that the layout names; nothing to do, or layout=none"
    # people
    PATIENT_UNCLEAR = (
        "patient_unclear",
        "is of one patient or several: give each a folder, or subject='a regular expression of the patient "
        "in paths'; in DICOM, keep study UIDs and birth dates",
    )
    MIXED_STUDY = "mixed_study", "is of a study of several scanners or persons; export each alone"
    # series and stacks
    OTHER_IMAGE = "other_image", "is a scout, flow, tagged, map, tiled or derived image; nothing to do"
    OTHER_SEQUENCE = "other_sequence", "has an unknown sequence, or one of no study; if wrong, confirm it"
    OTHER_VIEW = "other_view", "has an unknown view, or one of no study; confirm it if that is wrong"
    REPEAT = "repeat", "was acquired again, or a better stack of the view is used; confirm it to take it"
    INCOMPLETE = "incomplete", "lacks phases, or nothing orders them; export the whole series"
    CONTRADICTED = "contradicted", "has flags that contradict order, display or size; look, and confirm it"
    BELOW_THRESHOLD = "below_threshold", "has less confidence than the threshold; look at it, and confirm it"
    EXCLUDED = "excluded", "was excluded by a person; nothing to do"
    FAILED = "failed", "belongs to a study that could not be imported; report it with the kind of error"


class Flag(NameWithMeaning):
    """What a person should look at in a volume; those of `HOLDS` let it wait."""

    TEXT = "text_in_picture", "all its frames show a row of text, perhaps a name; it waits: look at it"
    WITNESSES = "witnesses_disagree", "name, tags, times or geometry disagree on sequence or view; look at it"
    ORDER = "slice_order_contradicted", "mask or blood puts the base at the other end; it waits: turn it"
    DISPLAY = "display_contradicted", "mask or layout contradict how it is shown; it waits: turn it upright"
    POSITION = "position_unknown", "its header has no position; without a layout it waits: show it upright"
    SPACING = (
        "spacing_unsettled",
        "header, sidecar or size of the heart contradict its voxels; it waits: state it",
    )
    PLACES = "slices_contradicted", "slices overlap or share a position; it waits: check their order"
    PHASES = "phases_contradicted", "header or information file contradict its phases; it waits: check them"
    MASK = "mask_contradicted", "its mask has other labels, no ring, or darker blood; it waits: look at it"
    UNMASKED = "mask_not_used", "a mask of its set cannot be read, or is of no known phase; the rest is taken"
    INCOMPLETE = "incomplete", "slices or phases are missing, or a larger stack was left out; compare it"
    REPEATS = (
        "repeats_left_out",
        "frames, slices, UIDs or stacks are there twice; the later are taken",
    )
    ORDER_BY_DEFAULT = (
        "order_by_default",
        "numbers, a typical axis or nothing order it; check its ends",
    )
    TIMES = "times_by_default", "end-systole or the first pass is not clear; mark it on the page of confirm"
    VALUES = "values_changed", "each frame has a scale of its own, or a fact of its set is no number; compare"


HOLDS = frozenset({Flag.ORDER, Flag.DISPLAY, Flag.PLACES, Flag.PHASES, Flag.MASK})
