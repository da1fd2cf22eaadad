"""The `study-1` manifest (protocol 1.2 and 9, stage 0), and the folder of a study that it describes."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import decode, parse_json, read_bytes
from cardiolens.config.base import Spec, describe
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.nifti import Header, read_header
from cardiolens.study.volume_manifest import Reading, VolumeManifest

MANIFEST_NAME = "study.json"
MAX_ID_LENGTH = 128
MOST_BYTES = 16 << 20  # size limit of study.json
_OR_ALLOW = ", or name the folder of its file in dataset.link_roots"  # which allows links into it
NARROWEST_BAND = 5  # years; narrower bands come close to a date of birth


def _band(value: str) -> str:
    ends = [int(end) for end in re.findall(r"\d+", value)]
    if len(ends) == 2 and ends[1] - ends[0] < NARROWEST_BAND - 1:
        raise ValueError(
            f"{value!r} spans fewer than {NARROWEST_BAND} years; expected a band such as 40-49 or 90+; "
            "widen it"
        )
    return value


AgeBand = Annotated[str, Field(pattern=r"^[0-9]{1,3}(-[0-9]{1,3}|\+)$"), AfterValidator(_band)]
Label = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,64}$")]


class StudyManifest(Spec):
    """The content of study.json: study, patient, cohorts and volumes."""

    schema_: Annotated[Literal["study-1"], Field(alias="schema")]
    study_id: str
    patient_id: Annotated[str, Field(min_length=1)]
    cohort: tuple[str, ...] = ()
    species: str = "human"
    report_id: str | None = None
    sex: Literal["female", "male", "other"] | None = None
    age_band: AgeBand | None = None
    vendor: Label | None = None
    field_tesla: Annotated[float, Field(gt=0, le=20, strict=True)] | None = None
    site: Label | None = None
    height_cm: Annotated[float, Field(gt=30, lt=260, allow_inf_nan=False, strict=True)] | None = None
    weight_kg: Annotated[float, Field(gt=1, lt=400, allow_inf_nan=False, strict=True)] | None = None
    volumes: Annotated[tuple[VolumeManifest, ...], Field(min_length=1)]

    @property
    def subgroups(self) -> dict[str, str]:
        """Subgroups of patient and scanner, by attribute."""
        groups = {"sex": self.sex, "age band": self.age_band, "vendor": self.vendor, "site": self.site}
        groups |= {"field strength": None if self.field_tesla is None else f"{self.field_tesla:g} T"}
        return {name: value for name, value in groups.items() if value is not None}

    @field_validator("study_id")
    @classmethod
    def _safe_id(cls, value: str) -> str:
        legal = 0 < len(value) <= MAX_ID_LENGTH and value.isprintable() and value != "."
        if not legal or ".." in value or "/" in value or "\\" in value:
            raise ValueError(
                f"expected 1 to {MAX_ID_LENGTH} printable characters without path separators or '..'; "
                "rename the study"
            )
        return value

    def _problems(self) -> Iterator[str]:
        for volume_id, count in Counter(volume.volume_id for volume in self.volumes).items():
            if count > 1:
                yield f"{count} volumes of view {volume_id!r}; expected one per view; keep one of them"


@dataclass(frozen=True, slots=True)
class Study:
    """A study folder with its checked manifest."""

    folder: Path
    manifest: StudyManifest
    manifest_sha256: str

    @property
    def study_id(self) -> str:
        return self.manifest.study_id

    @property
    def anatomy(self) -> Anatomy:
        return self.manifest.volumes[0].anatomy

    @property
    def n_pixels(self) -> int:
        """Number of pixels of all frames, by the declared shapes."""
        return sum(math.prod(volume.shape) for volume in self.manifest.volumes)

    def files(self) -> tuple[str, ...]:
        """Return the paths of all volumes and masks in the manifest, relative to the folder."""
        masks = (volume.mask.path for volume in self.manifest.volumes if volume.mask)
        return (*(volume.path for volume in self.manifest.volumes), *masks)


def read_study(folder: Path, roots: Sequence[Path] = (), anatomy: Anatomy | None = None) -> Study:
    """Read and check the manifest of a study folder; InputError names the file and what is wrong.

    Symbolic links may lead into the folders `roots`, and otherwise not out of the study folder. Fields that a
    volume's entry leaves out are taken from the header of its file. `anatomy` has the legal sequences and
    views; by default the heart's.
    """

    def header_of(path: str) -> Header:
        check_inside(folder, path, roots)
        return read_header(folder / path)

    if shown_name(folder) != folder.name:
        raise InputError("the folder's name is not UTF-8; expected a name that tables can hold; rename it")
    check_inside(folder, MANIFEST_NAME, roots)
    try:
        stored = read_bytes(folder / MANIFEST_NAME, MOST_BYTES)
        text = decode(stored)
        manifest = StudyManifest.model_validate_json(text, context=Reading(anatomy or heart(), header_of))
        parse_json(text)
    except OSError as error:
        raise InputError(
            f"{MANIFEST_NAME}: cannot be read ({error.strerror}); expected the study-1 manifest of the "
            "study; write it (of DICOM files, python -m cardiolens.ingest does) or remove the folder"
        ) from None
    except ValueError as error:  # also of keys that stand twice, of which pydantic takes the last
        raise InputError(f"{MANIFEST_NAME}: {describe(error)}; correct {MANIFEST_NAME}") from None
    study = Study(folder, manifest, hashlib.sha256(stored).hexdigest())
    for path in study.files():
        check_inside(folder, path, roots)
    return study


def read_studies(folder: Path, word: str) -> dict[str, Study]:
    """Read the studies in a folder that an option named, by id; InputError if there is none, or two alike."""
    studies: dict[str, Study] = {}
    for path in sorted(folder.glob(f"*/{MANIFEST_NAME}")):
        study = read_study(path.parent)
        if study.study_id in studies:
            raise InputError(f"{path.parent.name}: study_id {study.study_id} stands twice; rename one study")
        studies[study.study_id] = study
    if not studies:
        raise InputError(f"{word}={folder}: holds no study; expected folders with a {MANIFEST_NAME}")
    return studies


def shown_name(folder: Path) -> str:
    """Return a folder's name as text; bytes that are not UTF-8 become escapes."""
    return folder.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def check_inside(folder: Path, path: str, roots: Sequence[Path]) -> None:
    """Refuse a path that leads out of the folder, also through symbolic links, unless these end in `roots`.

    Otherwise a planted link could expose the data of another study. Messages never give the target of a
    link: archive names are often patient names.
    """
    by_link = bool(path) and not Path(path).is_absolute() and ".." not in Path(path).parts
    try:
        target = (folder / path).resolve()
        legal = [folder, *(roots if by_link else ())]
        if path and any(target.is_relative_to(root.resolve()) for root in legal):
            return
    except (ValueError, RuntimeError):  # a NUL in the path; a link that leads back to itself
        by_link = False
    raise InputError(
        f"{path}: leads out of the study folder; expected a file inside it, also after following symbolic "
        f"links; copy the file into the folder{_OR_ALLOW if by_link else ''}"
    )
