"""Old ids of studies, patients and reports, wherever they stand in a text, however their parts are joined."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cardiolens.curation.release.identities import fold
from cardiolens.study.manifest import Study

SHORTEST = 4  # letters and digits of an id that no text holds by chance; a shorter one may be a word
_RUN = re.compile(r"[^\W\d_]+|\d+")  # letters or digits
_WIDEST_GAP = 3  # characters between two parts of an id


@dataclass(frozen=True)
class OldIds:
    """The old ids as joined letters and digits, without case."""

    ids: Collection[str]
    longest: int = field(init=False)  # in runs

    def __post_init__(self) -> None:
        object.__setattr__(self, "longest", max((len(_RUN.findall(name)) for name in self.ids), default=0))

    def find(self, folded: str) -> Iterator[tuple[int, int]]:
        """Yield from where to where an old id stands in a folded text."""
        runs = list(_RUN.finditer(folded))
        for first in range(len(runs)):
            joined = ""
            for last in range(first, min(first + self.longest, len(runs))):
                if last > first and runs[last].start() - runs[last - 1].end() > _WIDEST_GAP:
                    break
                joined += runs[last][0].casefold()
                if joined in self.ids:
                    yield runs[first].start(), runs[last].end()


def old_ids(studies: Mapping[str, Study]) -> OldIds:
    """Collect the ids of studies, their patients and reports, and the names of their folders."""
    names = (
        name
        for study in studies.values()
        for name in (
            study.study_id,
            study.manifest.patient_id,
            study.manifest.report_id or "",
            study.folder.name,
        )
    )
    return OldIds(frozenset(_joined(names)))


def is_short(folded_id: str) -> bool:
    """Whether a passage that is an old id has so few letters and digits that it may mean something else."""
    return sum(map(str.isalnum, folded_id)) < SHORTEST


def _joined(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if joined := "".join(_RUN.findall(fold(name))).casefold():
            yield joined
