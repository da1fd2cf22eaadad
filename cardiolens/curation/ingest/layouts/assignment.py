"""Which file of an export is what, by a layout: roles of images and masks, facts of subjects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.curation.ingest.frame_records import Declared, Image
from cardiolens.curation.ingest.layouts.convention import (
    Convention,
    FileRule,
    convention,
    conventions,
    legal_volumes,
)
from cardiolens.curation.ingest.layouts.information import Facts, facts_of_subjects
from cardiolens.curation.ingest.owners import Name

_IMAGES = (".nii", ".nii.gz")
_FEWEST_SHARE = 0.5  # of the NIfTI files below a source; a layout that explains fewer is not proposed
_MOST_NAMED = 3  # files that a message names
NO_LAYOUT = "none"


@dataclass(frozen=True, slots=True)
class FileRole:
    """What one file is."""

    rule: FileRule
    subject: str
    study: str  # of the subject: itself, or one of its sessions
    name: Name
    declared: Declared | None  # of an image

    @property
    def key(self) -> tuple[object, ...]:
        """What no two files share."""
        return self.study, self.rule.image, self.rule.mask_of, self.name.phase, self.name.moment


@dataclass(frozen=True, slots=True)
class Assignment:
    """All files of an export by a layout."""

    layout: Convention
    roles: Mapping[str, FileRole] = field(default_factory=dict)  # of NIfTI files
    facts: Mapping[str, Facts] = field(default_factory=dict)
    subjects: Mapping[str, str] = field(default_factory=dict)  # of DICOM files

    @property
    def information(self) -> set[str]:
        """Files that tell facts about subjects."""
        return {path for facts in self.facts.values() for path in facts.files}

    def facts_of(self, subject: str) -> Facts:
        """Return the facts of a subject; empty if no file tells any."""
        return self.facts.get(subject, Facts())

    def of_subject(self, path: str, images: Sequence[Image]) -> list[Image]:
        """Return the frames of a DICOM file as those of its subject."""
        subject = self.subjects[path]
        facts = self.facts_of(subject)
        return [
            replace(
                image,
                identity=replace(image.identity, patient=subject, study=subject),
                person=facts.person.completed_by(image.person),
                of_set=self.layout.name,
            )
            for image in images
        ]


def assigned(
    word: str | None, nifti: Mapping[str, Path], other_files: Mapping[str, Path]
) -> Assignment | None:
    """Return what each file is by the layout that is named, or by the one that fits; None without one."""
    if word == NO_LAYOUT:
        return None
    if word is not None:
        return assign(convention(word), nifti, other_files)
    proposed = propose_layout(list(nifti))
    if proposed is None:
        return None
    chosen, evidence = proposed
    say(f"layout={chosen.name} is taken: {evidence}; layout=none imports without one")
    return assign(chosen, nifti, other_files)


def assign(convention: Convention, files: Mapping[str, Path], other_files: Mapping[str, Path]) -> Assignment:
    """Assign a role to each NIfTI file, or each DICOM file to its subject; read the facts of subjects.

    InputError for a repackaged version, two files that would be the same, and if no file fits.
    """
    _check_refused(convention, [*files, *other_files])
    roles: dict[str, FileRole] = {}
    if convention.dicom is None:
        roles = {path: role for path in files if (role := _role(convention, path)) is not None}
        subjects = {path: role.subject for path, role in roles.items()}
        is_any, expected = any(role.rule.image for role in roles.values()), _example(convention)
    else:
        matches = {path: convention.pattern(convention.dicom).match(path) for path in other_files}
        subjects = {path: match["subject"] for path, match in matches.items() if match}
        is_any, expected = bool(subjects), convention.dicom
    if not is_any:
        kind = "NIfTI files" if convention.dicom is None else "files"
        raise InputError(
            f"layout={convention.name}: none of {len(files or other_files)} {kind} is an image of it; "
            f"expected files such as {expected}; correct source, or name another layout, or none: layout=none"
        )
    path_of: dict[tuple[object, ...], str] = {}
    for path, role in sorted(roles.items()):
        if (twin := path_of.setdefault(role.key, path)) != path:
            raise InputError(
                f"layout={convention.name}: {twin} and {path} are the same file of one subject by this "
                "layout; give a source with one copy of the set"
            )
    facts = facts_of_subjects(convention, subjects, other_files)
    return Assignment(convention, roles, facts, {} if roles else subjects)


def propose_layout(paths: Sequence[str]) -> tuple[Convention, str] | None:
    """Return the layout that explains most files of an export and at least half of them, and by what.

    InputError if the files are a repackaged version of a known set.
    """
    images = [path for path in paths if path.lower().endswith(_IMAGES)]
    fits: list[tuple[int, Convention, dict[str, FileRole]]] = []
    for layout in conventions().values():
        if not images or not layout.files or not layout.proposed:
            continue
        _check_refused(layout, images, most=len(images) // 2)
        roles = {path: role for path in images if (role := _role(layout, path)) is not None}
        needed = {rule.files for rule in layout.files if rule.needed}
        has_image = any(role.rule.image for role in roles.values())
        if has_image and needed <= {role.rule.files for role in roles.values()}:
            fits.append((len(roles), layout, roles))
    fits.sort(key=lambda fit: fit[0], reverse=True)
    if not fits or fits[0][0] < _FEWEST_SHARE * len(images) or (fits[1:] and fits[1][0] == fits[0][0]):
        return None
    count, chosen, roles = fits[0]
    example = next(role.rule.files for role in roles.values() if role.rule.image)
    return chosen, f"{count} of {len(images)} files have its names, such as {example}"


def _role(convention: Convention, path: str) -> FileRole | None:
    """Return what a file is by the first rule that its path fits; None if it fits none."""
    for rule in convention.files:
        match = convention.pattern(rule.files).match(path)
        if match is None or "subject" not in match.groupdict():
            continue
        groups = match.groupdict(default="")
        subject, session, phase = (groups.get(name, "") for name in ("subject", "session", "phase"))
        study, volume = f"{subject}/{session}" if session else subject, rule.image or rule.mask_of[0]
        name = Name(
            folder=f"{study}/{volume}",
            words=" ".join(legal_volumes()[volume]),
            base=volume,
            is_mask=bool(rule.mask_of),
            phase=int(phase) if phase else None,
            moment=groups.get("moment", "").upper() or rule.moment or "",
        )
        declared = Declared(*legal_volumes()[volume], convention.display) if rule.image else None
        return FileRole(rule, subject, study, name, declared)
    return None


def _check_refused(convention: Convention, paths: Sequence[str], most: int = 0) -> None:
    """Check that at most so many files are of a repackaged version."""
    for rule in convention.refused:
        refused = sorted(filter(convention.pattern(rule.files).match, paths))
        if len(refused) > most:
            raise InputError(
                f"layout={convention.name}: {len(refused)} files such as {', '.join(refused[:_MOST_NAMED])} "
                f"are of a repackaged version: {rule.reason}; get the set from "
                f"{convention.place or 'its makers'}, or import it as any NIfTI with layout=none"
            )


def _example(convention: Convention) -> str:
    return next(rule.files for rule in convention.files if rule.image)
