"""Which file of an export is what, by a layout: roles of images and masks, and facts of subjects."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.file_place import Place
from cardiolens.curation.ingest.image import ORDINARY, Declared, HeaderRule, Image, MaskFrame
from cardiolens.curation.ingest.layouts.convention import (
    Convention,
    FileRule,
    RefusedFiles,
    conventions,
    volume_kind,
)
from cardiolens.curation.ingest.layouts.information import Facts, facts_of_subjects
from cardiolens.curation.ingest.layouts.outlines import Outlines, outlines_of
from cardiolens.curation.ingest.names import Name

_IMAGES = (".nii", ".nii.gz")
_FEWEST_SHARE = 0.5  # of the NIfTI files below a source; a layout that explains fewer is not proposed
_MOST_NAMED = 3  # files that a message names


@dataclass(frozen=True, slots=True)
class FileRole:
    """What one file is."""

    subject: str
    study: str  # of the subject: itself, or one of its sessions
    volume: str  # of an image
    mask_of: tuple[str, ...]  # of a mask
    name: Name
    rule: HeaderRule
    declared: Declared | None
    first_is_ed: bool = False

    @property
    def is_mask(self) -> bool:
        return bool(self.mask_of)


@dataclass(frozen=True, slots=True)
class Assignment:
    """All files of an export by a layout."""

    convention: Convention
    roles: Mapping[str, FileRole]
    facts: Mapping[str, Facts] = field(default_factory=dict)
    unlabelled: frozenset[str] = frozenset()
    subjects: Mapping[str, str] = field(default_factory=dict)  # of DICOM files
    outlines: Outlines = field(default_factory=Outlines)  # of DICOM images

    @property
    def information(self) -> set[str]:
        """Files that tell facts about subjects."""
        return {path for facts in self.facts.values() for path in facts.files} | self.outlines.files.keys()

    @property
    def labels(self) -> str:
        return self.convention.labels or ""

    def facts_of(self, subject: str) -> Facts:
        """Return the facts of a subject; empty if no file tells any."""
        return self.facts.get(subject, Facts())

    def of_subject(self, path: str, images: Sequence[Image]) -> list[Image]:
        """Return the frames of a DICOM file as those of its subject."""
        subject = self.subjects[path]
        ours = [_of_subject(image, subject, self.facts_of(subject), self.convention.name) for image in images]
        return [self._with_outline(image, subject, path) for image in ours]

    def _with_outline(self, image: Image, subject: str, path: str) -> Image:
        outline = self.outlines.of(subject, path, image)
        if outline is None:
            return image
        return replace(image, mask=MaskFrame(outline.inner, 0, self.labels, ORDINARY, outline))

    def is_unlabelled(self, path: str) -> bool:
        """Return whether a mask is one of those that the set leaves empty."""
        return path in self.unlabelled


def assign(
    convention: Convention, files: Mapping[str, Place], information: Mapping[str, Place]
) -> Assignment:
    """Assign a role to each NIfTI file; read the facts of subjects from the other files.

    InputError for a repackaged version, two files that would be the same, and if no file fits.
    """
    _check_refused(convention, [*files, *information])
    matches = {path: match for path in files if (match := _match(convention, path)) is not None}
    if not any(match.rule.image for match in matches.values()):
        raise InputError(
            f"layout={convention.name}: none of {len(files)} NIfTI files is an image of it; expected files "
            f"such as {_example(convention)}; correct source, or name another layout, or none: layout=none"
        )
    facts = facts_of_subjects(
        convention, {path: match.subject for path, match in matches.items()}, information
    )
    roles = {path: _role(convention, match) for path, match in matches.items()}
    _check_unique(convention, roles)
    unlabelled = {
        path
        for path, match in matches.items()
        if match.rule.unlabelled and convention.pattern(match.rule.unlabelled).match(path)
    }
    return Assignment(convention, roles, facts, frozenset(unlabelled))


def assign_dicom(convention: Convention, files: Mapping[str, Place]) -> Assignment:
    """Assign each DICOM file to its subject by its path; InputError if no file fits."""
    assert convention.dicom is not None
    _check_refused(convention, list(files))
    pattern = convention.pattern(convention.dicom)
    matches = {path: match["subject"] for path in files if (match := pattern.match(path))}
    if not matches:
        raise InputError(
            f"layout={convention.name}: none of {len(files)} files is an image of it; expected files such as "
            f"{convention.dicom}; correct source, or name another layout, or none with layout=none"
        )
    facts = facts_of_subjects(convention, matches, files)
    outlines = outlines_of(convention, {subject: told.case for subject, told in facts.items()}, files)
    return Assignment(convention, {}, facts, subjects=matches, outlines=outlines)


def _of_subject(image: Image, subject: str, facts: Facts, layout: str) -> Image:
    """Return a DICOM frame as one of a subject of a set, with what the set tells of it."""
    person = facts.person.completed_by(image.person)
    identity = replace(image.identity, patient=subject, study=subject)
    return replace(image, identity=identity, person=person, of_set=layout)


@dataclass(frozen=True, slots=True)
class Proposed:
    """A layout that fits an export, and by what."""

    convention: Convention
    evidence: str


def propose_layout(paths: Sequence[str]) -> Proposed | None:
    """Return the layout that explains most files of an export, if it explains at least half of them.

    InputError if the files are a repackaged version of a known set.
    """
    images = [path for path in paths if path.lower().endswith(_IMAGES)]
    if not images:
        return None
    layouts = [each for each in conventions().values() if each.files and each.proposed]
    for each in layouts:
        if refusal := _refusal(each, images):
            rule, refused = refusal
            if 2 * len(refused) > len(images):
                raise _repackaged(each, rule, refused)
    fits = Counter({each.name: _fit(each, images) for each in layouts})
    [(name, share)] = fits.most_common(1)
    rivals = [rival for rival, value in fits.items() if value == share and rival != name]
    if share < _FEWEST_SHARE or rivals:
        return None
    chosen = next(each for each in layouts if each.name == name)
    explained = [path for path in images if _match(chosen, path) is not None]
    example = next(path for path in explained if (match := _match(chosen, path)) and match.rule.image)
    return Proposed(
        chosen, f"{len(explained)} of {len(images)} files have its names, such as {_shape(chosen, example)}"
    )


def _fit(convention: Convention, images: Iterable[str]) -> float:
    """Return the share of files that a layout explains, if an image and all that it needs are among them."""
    listed = list(images)
    matches = [match for path in listed if (match := _match(convention, path)) is not None]
    needed = {rule.files for rule in convention.files if rule.needed}
    if not any(match.rule.image for match in matches) or not needed <= {
        match.rule.files for match in matches
    }:
        return 0.0
    return len(matches) / len(listed)


@dataclass(frozen=True, slots=True)
class _Matched:
    rule: FileRule
    subject: str
    phase: int | None
    moment: str
    session: str = ""

    @property
    def study(self) -> str:
        return f"{self.subject}/{self.session}" if self.session else self.subject


def _match(convention: Convention, path: str) -> _Matched | None:
    for rule in convention.files:
        match = convention.pattern(rule.files).match(path)
        if match is None:
            continue
        groups = match.groupdict()
        moment = (groups.get("moment") or "").upper() or rule.moment or ""
        phase = groups.get("phase")
        subject = groups.get("subject")
        if subject is None:
            continue
        session = groups.get("session") or ""
        return _Matched(rule, subject, None if phase is None else int(phase), moment, session)
    return None


def _role(convention: Convention, match: _Matched) -> FileRole:
    rule, volume = match.rule, match.rule.image or match.rule.mask_of[0]
    sequence, view = volume_kind(volume)
    header = convention.header
    name = Name(
        folder=f"{match.study}/{volume}",
        words=f"{sequence} {view}",
        base=volume,
        is_mask=bool(rule.mask_of),
        phase=match.phase,
        moment=match.moment,
    )
    display = rule.display or convention.display
    declared = Declared(convention.name, sequence, view, header.order, display) if rule.image else None
    return FileRole(
        match.subject,
        match.study,
        rule.image or "",
        rule.mask_of,
        name,
        header.rule(),
        declared,
        rule.first_phase == "ED",
    )


def _check_unique(convention: Convention, roles: Mapping[str, FileRole]) -> None:
    path_of: dict[tuple[object, ...], str] = {}
    for path, role in sorted(roles.items()):
        key = (role.study, role.volume, role.mask_of, role.name.phase, role.name.moment)
        if key in path_of:
            raise InputError(
                f"layout={convention.name}: {path_of[key]} and {path} are the same file of one subject by "
                "this layout; give a source with one copy of the set"
            )
        path_of[key] = path


def _check_refused(convention: Convention, paths: Sequence[str]) -> None:
    if refusal := _refusal(convention, paths):
        raise _repackaged(convention, *refusal)


def _refusal(convention: Convention, paths: Sequence[str]) -> tuple[RefusedFiles, list[str]] | None:
    for rule in convention.refused:
        pattern = convention.pattern(rule.files)
        if refused := [path for path in paths if pattern.match(path)]:
            return rule, refused
    return None


def _repackaged(convention: Convention, rule: RefusedFiles, paths: Sequence[str]) -> InputError:
    return InputError(
        f"layout={convention.name}: {len(paths)} files such as {', '.join(sorted(paths)[:_MOST_NAMED])} "
        f"are of a repackaged version: {rule.reason}; get the set from {convention.place or 'its makers'}, "
        "or import it as any NIfTI with layout=none"
    )


def _example(convention: Convention) -> str:
    return next(rule.files for rule in convention.files if rule.image)


def _shape(convention: Convention, path: str) -> str:
    match = _match(convention, path)
    return match.rule.files if match is not None else path
