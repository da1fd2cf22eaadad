"""Reasons to leave out parts of an export; every unused file has exactly one reason."""

from enum import StrEnum


class Reason(StrEnum):
    """Why a file, a frame or a stack is left out; `rejects.jsonl` names it."""

    # files
    HOUSEKEEPING = "housekeeping"  # DICOMDIR, __MACOSX, .DS_Store, .ipynb_checkpoints
    EMPTY_FILE = "empty_file"
    UNREADABLE = "unreadable"  # the operating system refuses access
    UNSAFE_PATH = "unsafe_path"  # a link, or an archive member that leads out of the archive
    BROKEN_ARCHIVE = "broken_archive"
    ENCRYPTED_ARCHIVE = "encrypted_archive"
    NESTED_ARCHIVE = "nested_archive"  # or any file that is packed otherwise than as zip
    TOO_LARGE = "too_large"
    NOT_DICOM = "not_dicom"
    BROKEN_HEADER = "broken_header"
    # images, by their headers
    NOT_AN_IMAGE = "not_an_image"  # a report, a PDF, a presentation state, a directory
    NOT_MR = "not_mr"
    SECONDARY_CAPTURE = "secondary_capture"
    NO_STUDY = "no_study"
    NO_PIXELS = "no_pixels"
    COLOUR = "colour"
    BAD_BITS = "bad_bits"
    BAD_MATRIX = "bad_matrix"
    NO_POSITION = "no_position"
    BAD_POSITION = "bad_position"
    NO_SPACING = "no_spacing"
    BAD_RESCALE = "bad_rescale"
    BURNED_IN_TEXT = "burned_in_text"
    STUDY_PER_IMAGE = "study_per_image"  # an anonymiser gave each image a study of its own
    MIXED_STUDY = "mixed_study"  # images of several scanners or persons under one study
    DUPLICATE = "duplicate"
    # NIfTI
    PATIENT_UNCLEAR = "patient_unclear"
    NIFTI_PAIR = "nifti_pair"
    BROKEN_NIFTI = "broken_nifti"
    BAD_VOXELS = "bad_voxels"
    TOO_MANY_VOXELS = "too_many_voxels"
    BAD_AXES = "bad_axes"
    NOT_FINITE = "not_finite"
    MASK = "mask"
    NO_IMAGE = "no_image"  # a sidecar without an image
    BAD_SIDECAR = "bad_sidecar"
    AXES_UNCLEAR = "axes_unclear"
    NOT_OF_LAYOUT = "not_of_layout"
    SPACING_UNSETTLED = "spacing_unsettled"
    CONTRADICTED = "contradicted"
    # pixels
    NO_DECODER = "no_decoder"
    BROKEN_PIXELS = "broken_pixels"
    READER_ENDED = "reader_ended"  # the process that parsed or decoded it ended, or ran out of time
    CONSTANT = "constant"
    # series and stacks
    LOCALIZER = "localizer"
    SCOUT = "scout"
    TI_SCOUT = "ti_scout"
    MOSAIC = "mosaic"  # several slices as tiles of one matrix
    PHASE_CONTRAST = "phase_contrast"
    TAGGING = "tagging"
    MAP = "map"
    DERIVED = "derived"
    OTHER_PART = "other_part"  # right ventricle, outflow tracts, vessels
    OTHER_SEQUENCE = "other_sequence"
    OTHER_WEIGHTING = "other_weighting"  # T1, proton density, or a spin echo that nothing calls T2-weighted
    OTHER_VIEW = "other_view"
    OTHER_COMPONENT = "other_component"  # the phase-sensitive image beside the magnitude, or the reverse
    REPEAT = "repeat"
    INCOMPLETE_SLICE = "incomplete_slice"
    UNORDERED = "unordered"
    BELOW_THRESHOLD = "below_threshold"
    PREPARE_REFUSES = "prepare_refuses"
    EXCLUDED = "excluded"
    FAILED = "failed"


MEANINGS: dict[Reason, str] = {
    Reason.HOUSEKEEPING: "is a file of an archive or an operating system, not an image",
    Reason.EMPTY_FILE: "is empty",
    Reason.UNREADABLE: "cannot be read; check its permissions",
    Reason.UNSAFE_PATH: "is a link, or leads out of its archive; copy the file itself",
    Reason.BROKEN_ARCHIVE: "is a damaged zip file; export it again",
    Reason.ENCRYPTED_ARCHIVE: "is an encrypted zip file; unpack it first",
    Reason.NESTED_ARCHIVE: "is packed, an archive within an archive, or not a zip file; unpack it first",
    Reason.TOO_LARGE: "is larger than any image of the heart; check the file",
    Reason.NOT_DICOM: "is not DICOM",
    Reason.BROKEN_HEADER: "is DICOM whose header cannot be parsed; export it again",
    Reason.NOT_AN_IMAGE: "is DICOM but no image, such as a report, a PDF or a presentation state",
    Reason.NOT_MR: "has a modality other than MR",
    Reason.SECONDARY_CAPTURE: "is a secondary capture, a picture of a screen",
    Reason.NO_STUDY: "names no study or no series",
    Reason.NO_PIXELS: "holds no pixels",
    Reason.COLOUR: "is in colour",
    Reason.BAD_BITS: "declares a bit depth that no grey image has",
    Reason.BAD_MATRIX: "has a matrix below 16 or above 4096",
    Reason.NO_POSITION: "has no position or orientation in the patient",
    Reason.BAD_POSITION: "has a position or orientation that defines no plane",
    Reason.NO_SPACING: "has no pixel spacing, or one that is not positive or too fine",
    Reason.BAD_RESCALE: "has a rescale slope that is zero, out of range or no number",
    Reason.BURNED_IN_TEXT: "declares or shows text in the image, which may name the patient",
    Reason.STUDY_PER_IMAGE: "has a study of its own, like others of its patient; export with study UIDs kept",
    Reason.MIXED_STUDY: "is of a study of several scanners or persons under one id; export each on its own",
    Reason.DUPLICATE: "repeats UID, position and pixels, or as NIfTI the frames, of an earlier file",
    Reason.PATIENT_UNCLEAR: "is of one patient or several: give each a folder, or subject='a regular "
    "expression of the patient in paths'; in DICOM, state birth dates",
    Reason.NIFTI_PAIR: "is half of a pair of header and voxels; convert the pair to a single .nii",
    Reason.BROKEN_NIFTI: "is damaged NIfTI, or smaller than its header says; export it again",
    Reason.BAD_VOXELS: "holds complex, coloured or extended voxels; convert it to grey values",
    Reason.TOO_MANY_VOXELS: "declares more voxels or frames than any volume of the heart; correct its shape",
    Reason.BAD_AXES: "has fewer than two or more than four axes; write one volume per file",
    Reason.NOT_FINITE: "has voxels that are infinite, or NaN within the picture; export it again",
    Reason.MASK: "is a mask by its name or its few values, not an image",
    Reason.NO_IMAGE: "is a sidecar without an image of the same name",
    Reason.BAD_SIDECAR: "is a sidecar that cannot be read; its image is imported without it",
    Reason.AXES_UNCLEAR: "has axes of time and slices that cannot be told apart; confirm them",
    Reason.NOT_OF_LAYOUT: "is none of the files that the layout names",
    Reason.SPACING_UNSETTLED: "has a header that is silent, unsure or wrong on the size of voxels; state it",
    Reason.CONTRADICTED: "has flags that contradict its order, display or size; look at it and confirm it",
    Reason.NO_DECODER: "is compressed; pip install 'cardiolens[dicom]' brings the decoders",
    Reason.BROKEN_PIXELS: "has pixels that cannot be decoded, or too few; export it again",
    Reason.READER_ENDED: "ended the process that reads it, or kept it busy for too long; export it again",
    Reason.CONSTANT: "has only one grey value",
    Reason.LOCALIZER: "is a localizer",
    Reason.SCOUT: "is a scout",
    Reason.TI_SCOUT: "is a scout of inversion times",
    Reason.MOSAIC: "holds several slices as tiles of one matrix; export the slices one by one",
    Reason.PHASE_CONTRAST: "is phase contrast (flow)",
    Reason.TAGGING: "is tagged",
    Reason.MAP: "is a parametric map, or a series from which one is made",
    Reason.DERIVED: "is a reformatted, projected, subtracted or otherwise derived image",
    Reason.OTHER_PART: "shows the right ventricle, an outflow tract or vessels; studies have no such view",
    Reason.OTHER_SEQUENCE: "has a sequence that is unknown or that studies do not include",
    Reason.OTHER_WEIGHTING: "is T1- or proton-weighted, or a spin echo that nothing calls T2-weighted",
    Reason.OTHER_VIEW: "has a view that is unknown or that studies do not include",
    Reason.OTHER_COMPONENT: "is a magnitude or phase-sensitive image whose counterpart is used",
    Reason.REPEAT: "was acquired again later, or a better stack of the same view is used",
    Reason.INCOMPLETE_SLICE: "is a slice whose number of phases differs from its stack's",
    Reason.UNORDERED: "has phases that no header field puts in order",
    Reason.FAILED: "belongs to a study that could not be imported; report it with the kind of error",
    Reason.BELOW_THRESHOLD: "is proposed with less confidence than the threshold; confirm it",
    Reason.PREPARE_REFUSES: "would be refused by prepare; look at it and confirm it",
    Reason.EXCLUDED: "was excluded by a person",
}
