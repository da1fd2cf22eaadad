"""House style: what the reports of a group say in words of their own, and the same in words of ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cardiolens.protocol.tasks.phrases import Phrase


@dataclass(frozen=True, eq=False)
class HouseStyle:
    """Headings and whole sentences of a house, each with what it says in words of ours.

    A sentence may have slots: `#` for a number, `{}` for words, `{name}` for one of the values of that name.
    Ours has those that are taken over; values are given in ours.
    """

    headings: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sentences: Mapping[str, str] = field(default_factory=dict)
    findings: frozenset[Phrase] = frozenset()  # phrases of ours that name a structure, a finding or a place
    fillers: frozenset[Phrase] = frozenset()  # phrases that change nothing of what a sentence says
