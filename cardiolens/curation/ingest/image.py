"""Record of one frame's header, the same for classic DICOM, multi-frame DICOM and NIfTI."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from cardiolens.base.untrusted.file_place import Place
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.study.volume_manifest import DisplayTransform

Vector = tuple[float, float, float]


class RejectedError(Exception):
    """A file or frame is unusable for one reason; `detail` quotes nothing of a header."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason.value)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Identity:
    """Hospital identifiers of a frame; they stay in memory and are written only as keyed hashes."""

    patient: str
    study: str
    series: str
    instance: str
    accession: str = ""
    date: str = ""
    birth_date: str = ""
    device: str = ""  # serial number of the scanner
    height_m: float | None = None
    weight_kg: float | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """Facts about patient and scanner that a study may keep, as in the header."""

    sex: str = ""
    age: str = ""
    manufacturer: str = ""
    model: str = ""
    tesla: float | None = None
    height_cm: float | None = None
    weight_kg: float | None = None
    site: str = ""
    group: str = ""  # the set's own name of the patient's disease
    lv_edv_ml: float | None = None  # volumes of the left ventricle, measured by the set
    lv_esv_ml: float | None = None

    def completed_by(self, header: "Person") -> "Person":
        """These facts, as a set publishes them, with those of the header that the set does not tell."""
        return replace(
            self,
            sex=self.sex or header.sex,
            age=self.age or header.age,
            manufacturer=self.manufacturer or header.manufacturer,
            model=self.model or header.model,
            tesla=header.tesla if self.tesla is None else self.tesla,
        )


@dataclass(frozen=True, slots=True)
class HeaderRule:
    """What a layout says of the NIfTI headers of its set."""

    spacing: Literal["agree", "pixdim", "sform"] = "agree"
    positions: bool = (
        True  # False: an affine along the scanner's axes is no position, and tells how arrays are stored
    )
    xyzt: bool = False  # slices on the third axis, phases on the fourth
    timed: bool = True  # False: the fourth voxel length is no time
    stored: str = ""  # where stored columns and rows point by an affine that is no position, such as LP
    spacing_mm: Vector | None = None  # stated by a person or an information file, instead of the header's


ORDINARY = HeaderRule()  # of a header that no layout speaks of


@dataclass(frozen=True, slots=True)
class Outline:
    """Files with the outlines of a left ventricle: inside its muscle, and outside if that was drawn."""

    inner: Place
    outer: Place | None = None


@dataclass(frozen=True, slots=True)
class MaskFrame:
    """The mask of a frame: its place, and the label map of its values."""

    place: Place
    frame: int
    labels: str
    rule: HeaderRule
    outline: Outline | None = None  # the mask is drawn from it


@dataclass(frozen=True, slots=True)
class LooseMask:
    """A mask of a set's study that a person may give to a volume, whatever the layout says of it."""

    place: Place
    grid: tuple[int, int, int, int]  # slices, phases, rows, columns
    digests: tuple[str, ...]  # of its frames
    kind: str  # what it is by the layout, alike in all studies of the set
    labels: str
    rule: HeaderRule
    why: str  # it is of no volume; empty for one that is

    def fits(self, slices: int, rows: int, columns: int) -> bool:
        """Return whether its frames are those of a stack of this size."""
        return (self.grid[0], *self.grid[2:]) == (slices, rows, columns)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a layout says of a frame's volume."""

    layout: str
    sequence: str
    view: str
    order: str  # header, mask, base_to_apex or apex_to_base
    display: DisplayTransform | None  # where the header holds no position


@dataclass(frozen=True, slots=True)
class Reading:
    """How a frame was extracted from a NIfTI file, whose header says less than DICOM's."""

    evidence: str  # for the meaning of the axes
    flags: tuple[str, ...] = ()
    placed: bool = True  # False: the position in the patient is unknown
    one_phase: bool = False  # the file's name declares a single phase
    sure: bool = True  # False: a person decides which axis is which
    rule: HeaderRule = ORDINARY
    places_mm: Mapping[str, Vector] = field(default_factory=dict)  # lengths of columns, rows, slices by place
    ringed: bool = False  # a mask of the same grid shows rings around a cavity
    doubt: str = ""  # on the size of voxels, in words


@dataclass(frozen=True, slots=True, eq=False)  # frames compare by identity, not by header
class Image:
    """One frame: the header fields that decide its stack, class and position. Lengths in mm, times in ms.

    Positions and directions are DICOM's: toward the patient's left, back and head.
    """

    place: Place
    frame: int  # of a multi-frame file, from 0; 0 for a classic one
    identity: Identity
    person: Person
    rows: int
    columns: int
    spacing: tuple[float, float]  # between rows, between columns
    position: Vector
    row_direction: Vector  # along a row, as the column number grows
    column_direction: Vector
    slope: float = 1.0
    intercept: float = 0.0
    maker_scale: tuple[float, float] | None = None  # slope and intercept of the vendor's private elements
    inverted: int | None = None  # lowest plus highest value that can be stored, where high values are dark
    series_number: int = 0
    acquisition: int = 0
    instance_number: int = 0
    description: str = ""
    protocol: str = ""
    sequence_name: str = ""
    image_type: tuple[str, ...] = ()
    scanning: tuple[str, ...] = ()
    variant: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    component: str = ""  # M, P, R or I of a complex image, if declared
    thickness: float | None = None
    trigger: float | None = None
    temporal: int | None = None
    clock: float | None = None  # time of day of the acquisition, s
    inversion: float | None = None
    echo: float | None = None
    flip: float | None = None
    velocity: float | None = (
        None  # encoded by phase contrast, as the maker counts it; 0 or None for other images
    )
    phases_declared: int | None = None
    temporals_declared: int | None = None  # temporal positions
    images_declared: int | None = None  # of its acquisition
    beat: float | None = None  # length of a heartbeat, ms
    apart: float | None = None  # of neighbouring slices, as declared
    location: float | None = None  # along the normal, as declared beside the position
    flags: tuple[str, ...] = ()  # of the stack that it becomes part of
    reading: Reading | None = None  # of a frame of a NIfTI file
    moment: str = ""  # ED or ES, if a sidecar or a file name declares it
    of_set: str = ""  # the layout of the set that the file belongs to
    declared: Declared | None = None  # by a layout
    mask: MaskFrame | None = None
    tags: tuple[str, ...] = field(default=(), repr=False)  # keywords of all header elements
