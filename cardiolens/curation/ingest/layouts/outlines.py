"""Which outlines of a set belong to which DICOM image: by the set's own name of the case and a number."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from cardiolens.base.untrusted.file_place import Place
from cardiolens.curation.ingest.image import Image, Outline
from cardiolens.curation.ingest.layouts.convention import Convention, OutlineRule

_NUMBER = re.compile(r"(\d+)\D*$")  # the last number of a name
_LAST_NUMBER = re.compile(r"\d+$")


@dataclass(frozen=True, slots=True)
class Outlines:
    """Outlines by subject and number of the image, and all their files."""

    rule: OutlineRule | None = None
    of_image: Mapping[tuple[str, int], Outline] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # path → subject

    def of(self, subject: str, path: str, image: Image) -> Outline | None:
        """Return the outlines of an image, if it is of the series that was drawn."""
        number = _NUMBER.search(PurePosixPath(path).name)
        if self.rule is None or number is None:
            return None
        series = f"{PurePosixPath(path).parent} {image.description}".upper()
        return self.of_image.get((subject, int(number[1]))) if self.rule.series.upper() in series else None


def outlines_of(convention: Convention, cases: Mapping[str, str], files: Mapping[str, Place]) -> Outlines:
    """Return the outlines among files; `cases`: the set's own name of each subject's case."""
    rule = convention.outlines
    if rule is None:
        return Outlines()
    pattern = convention.pattern(rule.files)
    subject_of = {_case(case): subject for subject, case in cases.items() if case}
    places: dict[tuple[str, int], dict[str, Place]] = {}
    used: dict[str, str] = {}
    for path, place in sorted(files.items()):
        match = pattern.match(path)
        subject = subject_of.get(_case(match["case"])) if match else None
        if match is None or subject is None:
            continue
        places.setdefault((subject, int(match["number"])), {})[match["side"].lower()] = place
        used[path] = subject
    drawn = {key: Outline(sides["i"], sides.get("o")) for key, sides in places.items() if "i" in sides}
    return Outlines(rule, drawn, used)


def _case(name: str) -> str:
    """Return a case's name without zeros before its last number: SC-HF-I-01 is SC-HF-I-1."""
    return _LAST_NUMBER.sub(lambda number: str(int(number[0])), name.strip().upper())
