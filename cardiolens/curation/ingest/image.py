"""One frame of an export as its header tells it: classic and multi-frame DICOM end in the same record."""

from dataclasses import dataclass, field

from cardiolens.curation.ingest.find import Place
from cardiolens.curation.ingest.reasons import Reason

Vector = tuple[float, float, float]


class RejectedError(Exception):
    """A file or frame that cannot be used, for one reason; `detail` holds nothing that a header said."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason.value)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Identity:
    """Names of a frame in the hospital; they stay in memory, and leave it only as keyed hashes."""

    patient: str
    study: str
    series: str
    instance: str
    accession: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Person:
    """Facts about patient and scanner that a study may keep, as the header gives them."""

    sex: str = ""
    age: str = ""
    manufacturer: str = ""
    tesla: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How a frame was cut out of a NIfTI file, whose header says less than DICOM's."""

    evidence: str  # by which its axes were told
    flags: tuple[str, ...] = ()
    placed: bool = True  # False: nothing says where it lies in the patient
    one_phase: bool = False  # its file's name says that it holds one phase
    sure: bool = True  # False: a person decides which axis is which


@dataclass(frozen=True, slots=True, eq=False)  # a frame is itself, whatever its header says
class Image:
    """One frame: what decides its group, its class and its place. Lengths are mm, times ms.

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
    row_direction: Vector  # along which the column number grows
    column_direction: Vector
    slope: float = 1.0
    intercept: float = 0.0
    maker_scale: tuple[float, float] | None = None  # slope and intercept by the maker's account
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
    component: str = ""  # M, P, R or I of a complex image, where it is said
    thickness: float | None = None
    trigger: float | None = None
    temporal: int | None = None
    clock: float | None = None  # time of day of the acquisition, s
    inversion: float | None = None
    echo: float | None = None
    flip: float | None = None
    phases_declared: int | None = None
    reading: Reading | None = None  # of a frame of a NIfTI file
    moment: str = ""  # ED or ES, where a file or its name declares the frame to be that
    tags: tuple[str, ...] = field(default=(), repr=False)  # keywords of all elements of its header
