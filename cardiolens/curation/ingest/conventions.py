"""Layouts of archives: one YAML file each, in `conf/layout` or of the user's own."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import choices
from cardiolens.base.untrusted.bounded_files import read_yaml
from cardiolens.config.base import Spec, describe
from cardiolens.config.conf_names import conf_folders
from cardiolens.config.plugins import PluginError, blamed, code_of, is_word, load, pinned
from cardiolens.curation.ingest.frame_records import ORDINARY, HeaderRule
from cardiolens.curation.masks.labels import label_maps
from cardiolens.study.anatomy import sequences
from cardiolens.study.volume_manifest import DisplayTransform

FOLDER = "layout"  # below conf/
_MOST_BYTES = 1 << 18
_PLACES = re.compile(r"\{([a-z]+)\}|(\*\*?)")
_GROUPS = {"session": r"ses-[A-Za-z0-9]+", "phase": r"\d{1,4}", "moment": "ED|ES|ed|es"}
_NIFTI = r"\.nii(?:\.gz)?(?:/[^/]+\.nii(?:\.gz)?)?"  # some unpackers put x.nii into a folder x.nii
_NO_SUBJECT = r"[^/]+?"

Column = Annotated[str, Field(min_length=1)]
FactName = (
    Literal["ed", "es", "phases", "group", "sex", "age", "height_cm", "weight_kg", "vendor", "site"]
    | (Literal["field_tesla", "slice_mm", "lv_edv_ml", "lv_esv_ml"])
)


class FileRule(Spec):
    """Files of one kind, by a pattern of their paths: an image, or a mask of images.

    `{subject}` is the patient, `{session}` one of several examinations, `{phase}` and `{moment}` the phase,
    `*` any text within a name. Folders before the pattern are free. Case counts in `{subject}` alone, and
    `.nii` stands for `.nii.gz` too, and for a folder of that name with the file.
    """

    files: str
    image: str | None = None  # the volume that the file is, such as cine_sax
    mask_of: tuple[str, ...] = ()  # the volumes that the file is a mask of
    moment: Literal["ED", "ES"] | None = None  # the moment of a file of one phase
    needed: bool = False  # without such a file the layout is not proposed: others share its other names

    @model_validator(mode="after")
    def _is_one_thing(self) -> "FileRule":
        if (self.image is None) == (not self.mask_of):
            raise ValueError(f"{self.files}: is no image and no mask, or both; give image or mask_of")
        for volume in (self.image, *self.mask_of):
            if volume is not None and volume not in legal_volumes():
                raise ValueError(
                    f"{self.files}: no study holds a volume {volume!r}; choose of "
                    f"{', '.join(legal_volumes())}"
                )
        return self


class RefusedFiles(Spec):
    """Files of a repackaged version, which is refused with the reason."""

    files: str
    reason: str


class FactRule(Spec):
    """The column or key of a fact, and how it is read."""

    column: Column
    counts_from: Literal[0, 1] = 1  # of ed and es: the number of the first phase


class InfoRule(Spec):
    """A file with facts about subjects: pairs of one subject, or a table with a row each.

    Pairs without `{subject}` in `files` are of the only subject with images in that folder or below it.
    """

    files: str
    kind: Literal["pairs", "table"]
    subject: Column | None = None  # column of a table with the subject's name
    facts: Mapping[FactName, FactRule]

    @model_validator(mode="after")
    def _has_subjects(self) -> "InfoRule":
        if (self.kind == "table") != (self.subject is not None):
            raise ValueError(f"{self.files}: a table needs subject, and pairs have none; correct one")
        return self


class Convention(Spec):
    """A layout: its files, headers, information files, and what its groups answer."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
    title: str
    public: bool = False  # ids follow from the subjects' names alone, the same for everybody
    sources: tuple[str, ...] = ()  # where each trait was read
    place: str = ""  # where to get the set
    licence: str = ""
    limits: str = ""  # what its answers cannot say, and what is known of leakage
    subject: str = _NO_SUBJECT
    files: tuple[FileRule, ...] = ()
    dicom: str | None = None  # a pattern of a subject's DICOM files, instead of files; ** crosses folders
    proposed: bool = True  # False: taken only by name
    refused: tuple[RefusedFiles, ...] = ()
    information: tuple[InfoRule, ...] = ()
    header: HeaderRule = ORDINARY
    display: DisplayTransform | None = None  # of files without a position in the patient
    labels: str | None = None  # label map of the masks
    facts: Mapping[FactName, str] = {}  # the same for every subject
    groups: Mapping[str, Mapping[Literal["D01", "D02"], str]] = {}  # answers by group
    group_meanings: Mapping[str, str] = {}  # groups without an answer, and why
    group_by_subject: Mapping[str, str] = {}  # group by how the subject's name starts

    @model_validator(mode="after")
    def _is_legal(self) -> "Convention":
        if (self.dicom is None) == (not self.files):
            raise ValueError("has neither files of NIfTI nor dicom, or both; give one")
        if self.labels is not None and self.labels not in label_maps():
            raise ValueError(f"labels {self.labels!r}: choose of {', '.join(label_maps())}")
        if self.labels is None and any(rule.mask_of for rule in self.files):
            raise ValueError("has masks without labels; name their label map")
        patterns = [rule.files for rules in (self.files, self.refused, self.information) for rule in rules]
        try:
            re.compile(self.subject)
            for pattern in (*patterns, *([self.dicom] if self.dicom else [])):
                self.pattern(pattern)
        except re.error as error:
            raise ValueError(f"subject {self.subject!r}: is no regular expression ({error})") from None
        for pattern in [self.dicom] if self.dicom else [rule.files for rule in self.files]:
            if "{subject}" not in pattern:
                raise ValueError(f"{pattern}: does not name the patient; write {{subject}} in it")
        return self

    def pattern(self, template: str) -> re.Pattern[str]:
        """Return the regular expression of a path pattern; ValueError names an unknown place."""
        return _pattern(template, self.subject)


@cache
def _pattern(template: str, subject: str) -> re.Pattern[str]:
    parts, at, used = [r"(?:^|.*/)"], 0, set[str]()
    places = {"subject": f"(?-i:{subject})", **_GROUPS}
    for match in _PLACES.finditer(template):
        parts.append(_literal(template[at : match.start()]))
        at, name = match.end(), match[1]
        if match[2]:
            parts.append(".*?" if match[2] == "**" else "[^/]*?")
        elif name not in places:
            raise ValueError(f"{template}: no place {{{name}}}; choose of {', '.join(places)}, or *")
        else:
            parts.append(f"(?-i:(?P={name}))" if name in used else f"(?P<{name}>{places[name]})")
            used.add(name)
    parts.append(_literal(template[at:]))
    return re.compile("".join(parts) + r"\Z", re.IGNORECASE)


def _literal(text: str) -> str:
    return re.escape(text).replace(re.escape(".nii"), _NIFTI)


@cache
def legal_volumes() -> dict[str, tuple[str, str]]:
    """Map each volume that a study may hold to its sequence and view."""
    return {kind.volume_id(view): (name, view) for name, kind in sequences().items() for view in kind.views}


def volume_of(sequence: str | None, view: str | None) -> str:
    """Return the volume of a sequence and view; empty if studies have no such volume."""
    return next((name for name, pair in legal_volumes().items() if pair == (sequence, view)), "")


def conventions() -> dict[str, Convention]:
    """Load all layouts by name; the user's own `conf/layout` comes before the packaged one."""
    paths: dict[str, Path] = {}
    for folder in conf_folders():
        for path in sorted((folder / FOLDER).glob("*.yaml")):
            paths.setdefault(path.stem, path)
    return {name: read_convention(path) for name, path in sorted(paths.items())}


def convention(word: str) -> Convention:
    """Return a layout by its name or by the path of its file; InputError lists the names."""
    if word.endswith((".yaml", ".yml")):
        return read_convention(Path(word))
    if is_word(word):
        return _plugged(word)
    layouts = conventions()
    if word not in layouts:
        raise InputError(
            f"layout={word}: no such layout; {choices(word, layouts)}, "
            "or give the path of your own .yaml file (docs/guides/import.md)"
        )
    return layouts[word]


def read_convention(path: Path) -> Convention:
    """Read one layout; InputError names the field that is wrong."""
    try:
        tree = read_yaml(path, _MOST_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"layout={path}: cannot be read ({reason}); give the path of a layout") from None
    if not isinstance(tree, dict):
        raise InputError(
            f"layout={path}: is no layout; expected names and values as in conf/layout/acdc.yaml"
        )
    return _validated(str(path), {"name": path.stem, **tree})


def _validated(word: str, tree: Mapping[str, object]) -> Convention:
    try:
        return Convention.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"layout={word}: {describe(error)}") from None


def _plugged(word: str) -> Convention:
    """Make the layout of another package; it is named after both, and its sources name the version."""
    try:
        word = pinned("layouts", word)
    except ValueError as error:
        raise InputError(f"layout={error}") from None
    factory = load("layouts", word)
    with blamed(word):
        tree: object = factory()
    if not isinstance(tree, Mapping) or "name" in tree:
        raise PluginError(
            f"plugin {word}: returns no layout; its maker must return names and values as in "
            "conf/layout/acdc.yaml, without name"
        )
    key = word.partition("@")[0]
    layout = _validated(word, {**tree, "name": re.sub(r"[.-]", "_", key)})
    made_by = f"plugin {word}, code {code_of('layouts', word)}"
    return layout.model_copy(update={"sources": (*layout.sources, made_by)})
