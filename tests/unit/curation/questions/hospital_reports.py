"""Reports of hospitals with what they tell, by writers who saw neither rules nor results.

A file holds reports: `%% name | manner`, the text, `%= truth`. The truth is words: `L01=B` is told for
certain; `?L01=B` would be right, and need not be drafted; several `?` of one subtask are alternatives.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).with_name("hospitals")


@dataclass(slots=True)
class Truth:
    """Answers by subtask: those that a report tells, and those that a draft may have without being wrong."""

    told: dict[str, str] = field(default_factory=dict)
    right: dict[str, set[str]] = field(default_factory=dict)

    @staticmethod
    def of(words: str) -> "Truth":
        """Parse the truth of a report."""
        truth = Truth()
        for word in words.split():
            subtask, _, answer = word.lstrip("?").partition("=")
            if word[0] not in "?-" and answer:
                truth.told[subtask] = answer
            if answer:
                truth.right.setdefault(subtask, set()).add(answer)
        return truth

    def wrong(self, drafts: Mapping[str, str]) -> dict[str, str]:
        """Return the drafts that the report does not tell."""
        return {subtask: keys for subtask, keys in drafts.items() if keys not in self.right.get(subtask, ())}

    def counts(self, drafts: Mapping[str, str]) -> Counter[str]:
        """Count drafts, wrong ones, what is told, and what of it is drafted."""
        return Counter(
            drafts=len(drafts),
            wrong=len(self.wrong(drafts)),
            told=len(self.told),
            hits=sum(drafts.get(subtask) == keys for subtask, keys in self.told.items()),
        )


@dataclass(frozen=True, slots=True)
class Report:
    """A report with its truth."""

    name: str
    manner: str
    text: str
    truth: Truth


def read_labelled(path: Path) -> Iterator[Report]:
    """Yield the reports of a file, or of all files `*.txt` of a folder."""
    for file in sorted(path.glob("*.txt")) if path.is_dir() else [path]:
        for entry in re.split(r"^%% ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            head, _, rest = entry.partition("\n")
            body, _, words = rest.partition("\n%=")
            name, _, manner = head.partition(" | ")
            yield Report(name, manner.strip(), body + "\n", Truth.of(words))
