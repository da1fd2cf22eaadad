"""Which file of an export is what, by a layout: roles of images and masks, facts of subjects, outlines."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.curation.ingest.frame_records import Declared, HeaderRule, Image, MaskFrame
from cardiolens.curation.ingest.layouts.convention import (
    Convention,
    FileRule,
    OutlineRule,
    RefusedFiles,
    convention,
    conventions,
    volume_kind,
)
from cardiolens.curation.ingest.layouts.information import Facts, facts_of_subjects
from cardiolens.curation.ingest.names import Name

_IMAGES = (".nii", ".nii.gz")
_FEWEST_SHARE = 0.5  # of the NIfTI files below a source; a layout that explains fewer is not proposed
_MOST_NAMED = 3  # files that a message names
_NUMBER = re.compile(r"(\d+)\D*$")  # the last number of a name
NO_LAYOUT = "none"


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
class Outlines:
    """Outlines by subject and number of the image, and all their files."""

    rule: OutlineRule | None = None
    of_image: Mapping[tuple[str, int], Mapping[str, Path]] = field(default_factory=dict)  # by side, i or o
    files: Mapping[str, str] = field(default_factory=dict)  # path → subject

    def mask_of(self, subject: str, path: str, image: Image, labels: str) -> MaskFrame | None:
        """Return the outlines of an image as its mask, if it is of the series that was drawn."""
        number = _NUMBER.search(PurePosixPath(path).name)
        series = f"{PurePosixPath(path).parent} {image.description}".upper()
        if self.rule is None or number is None or self.rule.series.upper() not in series:
            return None
        sides = self.of_image.get((subject, int(number[1])), {})
        return MaskFrame(sides["i"], 0, labels, None, sides.get("o")) if "i" in sides else None


@dataclass(frozen=True, slots=True)
class Assignment:
    """All files of an export by a layout."""

    layout: Convention
    roles: Mapping[str, FileRole]
    facts: Mapping[str, Facts] = field(default_factory=dict)
    unlabelled: frozenset[str] = frozenset()
    subjects: Mapping[str, str] = field(default_factory=dict)  # of DICOM files
    outlines: Outlines = field(default_factory=Outlines)  # of DICOM images

    @property
    def information(self) -> set[str]:
        """Files that tell facts about subjects."""
        return {path for facts in self.facts.values() for path in facts.files} | self.outlines.files.keys()

    def facts_of(self, subject: str) -> Facts:
        """Return the facts of a subject; empty if no file tells any."""
        return self.facts.get(subject, Facts())

    def outlines_of(self, subject: str) -> list[str]:
        """Return the files with outlines of a subject."""
        return [path for path, owner in self.outlines.files.items() if owner == subject]

    def of_subject(self, path: str, images: Sequence[Image]) -> list[Image]:
        """Return the frames of a DICOM file as those of its subject, with the outlines drawn on them."""
        subject = self.subjects[path]
        facts, layout = self.facts_of(subject), self.layout
        return [
            replace(
                image,
                identity=replace(image.identity, patient=subject, study=subject),
                person=facts.person.completed_by(image.person),
                of_set=layout.name,
                mask=self.outlines.mask_of(subject, path, image, layout.labels or ""),
            )
            for image in images
        ]


def _outlines_of(convention: Convention, facts: Mapping[str, Facts], files: Mapping[str, Path]) -> Outlines:
    """Return the outlines among files, by the set's own name of each subject's case."""
    rule = convention.outlines
    if rule is None:
        return Outlines()
    pattern = convention.pattern(rule.files)
    subject_of = {_case(told.case): subject for subject, told in facts.items() if told.case}
    places: dict[tuple[str, int], dict[str, Path]] = {}
    used: dict[str, str] = {}
    for path, place in sorted(files.items()):
        match = pattern.match(path)
        subject = subject_of.get(_case(match["case"])) if match else None
        if match is not None and subject is not None:
            places.setdefault((subject, int(match["number"])), {})[match["side"].lower()] = place
            used[path] = subject
    return Outlines(rule, places, used)


def _case(name: str) -> str:
    """Return a case's name without zeros before its last number: SC-HF-I-01 is SC-HF-I-1."""
    return re.sub(r"\d+$", lambda number: str(int(number[0])), name.strip().upper())


def assigned(word: str | None, nifti: Mapping[str, Path], others: Mapping[str, Path]) -> Assignment | None:
    """Return what each file is by the layout that is named, or by the one that fits; None without one."""
    if word == NO_LAYOUT:
        return None
    if word is not None:
        chosen = convention(word)
        if chosen.dicom is not None:
            return assign_dicom(chosen, others)
    else:
        proposed = propose_layout(list(nifti))
        if proposed is None:
            return None
        chosen, evidence = proposed
        say(f"layout={chosen.name} is taken: {evidence}; layout=none imports without one")
    return assign(chosen, nifti, others)


def assign(convention: Convention, files: Mapping[str, Path], information: Mapping[str, Path]) -> Assignment:
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


def assign_dicom(convention: Convention, files: Mapping[str, Path]) -> Assignment:
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
    outlines = _outlines_of(convention, facts, files)
    return Assignment(convention, {}, facts, subjects=matches, outlines=outlines)


def propose_layout(paths: Sequence[str]) -> tuple[Convention, str] | None:
    """Return the layout that explains most files of an export and at least half of them, and by what.

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
    names = f"{len(explained)} of {len(images)} files have its names"
    return chosen, f"{names}, such as {_shape(chosen, example)}"


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
    declared = Declared(convention.name, sequence, view, convention.display) if rule.image else None
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
