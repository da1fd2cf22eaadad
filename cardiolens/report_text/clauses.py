"""Clauses: the parts of a sentence, one statement each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cardiolens.report_text.mentions import Mention

_HARD = frozenset({"contrasts", "exceptions", "semicolon"})
_SOFT = frozenset({"and", "comma", "with"})
_DENYING = ("no", "without")
_STATING = frozenset({"state", "predicate", "measure", "spared", "negated_behind"})


@dataclass(frozen=True, slots=True)
class Clause:
    """The mentions of one clause, and the connective before it."""

    mentions: tuple[Mention, ...]
    joint: str  # "start", or the kind of the connective
    kinds: frozenset[str]  # of the mentions

    @staticmethod
    def of(mentions: Sequence[Mention], joint: str) -> "Clause":
        """Build a clause from mentions."""
        return Clause(tuple(mentions), joint, frozenset(mention.kind for mention in mentions))

    @property
    def span(self) -> tuple[int, int]:
        return self.mentions[0].start, self.mentions[-1].end

    def of_kind(self, *kinds: str) -> list[int]:
        """Return the positions of the mentions of some kinds."""
        if self.kinds.isdisjoint(kinds):
            return []
        return [at for at, mention in enumerate(self.mentions) if mention.kind in kinds]


def clauses(mentions: Sequence[Mention]) -> list[Clause]:
    """Split a sentence at contrasts, and at commas and `and` between two statements."""
    return [clause for chunk, joint in _chunks(mentions) for clause in _statements(chunk, joint)]


def _chunks(mentions: Sequence[Mention]) -> Iterator[tuple[Sequence[Mention], str]]:
    start, joint = 0, "start"
    for at, mention in enumerate(mentions):
        kind = "semicolon" if mention.text == ";" else mention.kind
        if kind in _HARD:
            yield mentions[start:at], joint
            start, joint = at + 1, kind
    yield mentions[start:], joint


def _statements(chunk: Sequence[Mention], joint: str) -> Iterator[Clause]:
    breaks = [at for at in range(len(chunk)) if _may_break(chunk, at) and not _in_brackets(chunk, at)]
    start = 0
    for at, end in zip(breaks, [*breaks[1:], len(chunk)], strict=False):
        doubtful = chunk[at].kind == "with" and any(
            mention.kind == "uncertain" for mention in chunk[start:at]
        )
        # "thinned and scarred wall": what another sequence shows is no statement of its own there
        stating = _STATING if _joins_adjectives(chunk, at) else _STATING | {"foreign"}
        if (doubtful or _states(chunk[start:at], stating)) and _states(chunk[at:end], stating):
            yield Clause.of(chunk[start:at], joint)
            start, joint = (at, "without") if chunk[at].kind == "negated" else (at + 1, chunk[at].kind)
    if start < len(chunk):
        yield Clause.of(chunk[start:], joint)


def _joins_adjectives(chunk: Sequence[Mention], at: int) -> bool:
    """Return whether an `and` stands right between two findings: not in `no LGE, and the LV is dilated`."""
    neighbours = (*chunk[max(0, at - 1) : at], *chunk[at + 1 : at + 2])
    return chunk[at].kind == "and" and all(mention.kind in ("state", "foreign") for mention in neighbours)


def _may_break(chunk: Sequence[Mention], at: int) -> bool:
    """Return whether a clause may start here: at a connective, or at a further negation."""
    return chunk[at].kind in _SOFT or (chunk[at].kind == "negated" and chunk[at].text.split()[0] in _DENYING)


def _states(piece: Sequence[Mention], stating: frozenset[str]) -> bool:
    denied_again = bool(piece) and piece[-1].text == "not"  # "..., the right ventricle is not"
    return denied_again or any(mention.kind in stating for mention in piece)


def _in_brackets(chunk: Sequence[Mention], at: int) -> bool:
    opened = sum(mention.kind == "open" for mention in chunk[:at])
    return opened > sum(mention.kind == "close" for mention in chunk[:at])
