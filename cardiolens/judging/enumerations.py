"""Enumerations that go through the options and say yes or no of each (protocol 16.2)."""

from cardiolens.judging.clauses import NAMES, Clause, Statement
from cardiolens.judging.reading import UNREADABLE, Reading, reading_of

_SIGNS = {"open", "close", "bar", "stop", "comma", "dash", "colon", "bullet"}
_BEFORE_NAME = frozenset({*_SIGNS, "label", "subject", "yes", "no", "join", "but"})
CONTINUES = frozenset({"join", "comma"})
TRANSPARENT = frozenset({"label", "subject", "close"})  # say nothing between an option and what follows it


def enumeration(stated: list[Statement]) -> Reading | None:
    """The options affirmed where clauses that begin with options say yes or no of each of them.

    None where there is no such enumeration.
    """
    affirmed: list[str] = []
    denied: list[str] = []
    loose: list[str] = []
    for clause, said in stated:
        names = _entry(clause)
        if names and is_broken_list(clause):
            return UNREADABLE
        if names and said in {"yes", "no"}:
            (affirmed if said == "yes" else denied).extend(names)
        elif names:
            return None
        elif said != "no":
            loose.extend(_mentioned(clause))
    if not affirmed:
        return None
    contradicted = set(affirmed) & set(denied) or set(loose) - set(affirmed)
    return UNREADABLE if contradicted else reading_of(affirmed)


def _mentioned(clause: Clause) -> list[str]:
    return [token.key for token in clause if token.kind in {"key", "text"} and token.text[0].isupper()]


def _entry(clause: Clause) -> list[str]:
    """The options that a clause begins with; a letter with another option's text is none."""
    start = next((at for at, token in enumerate(clause) if token.kind not in _BEFORE_NAME), len(clause))
    if start == len(clause) or clause[start].kind not in NAMES or clause[start].text.islower():
        return []
    names = [token for token in clause[start:] if token.kind in NAMES]
    return [token.key for token in names if token.kind != "key" or token.text.isupper()]


def is_broken_list(clause: Clause) -> bool:
    """Whether a list in a clause has an entry that is no option ("A and the level below")."""
    kinds = [token.kind for token in clause if token.kind not in TRANSPARENT]
    for at, kind in enumerate(kinds):
        if kind in NAMES and kinds[at + 1 : at + 2] and kinds[at + 1] in CONTINUES:
            rest = [after for after in kinds[at + 1 :] if after not in CONTINUES]
            if not rest or rest[0] not in NAMES:
                return True
    return False
