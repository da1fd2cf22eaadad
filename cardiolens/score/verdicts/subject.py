"""Whether a statement speaks of what its question asks: "RV function is normal" says nothing of the LV."""

import functools
import re
from collections.abc import Iterable

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reply_clauses import Clause
from cardiolens.score.verdicts.reply_tokens import Token

_WORD = re.compile(r"[^\W\d_]+\d?")
_ADJECTIVE = re.compile(r"\w*(?:al|ed|ly|ic|ive|ous|ent|ant|ory|orm|mal|ned|ing)")
_CHAMBERS = {"la": "atrium", "ra": "atrium", "lv": "ventricle", "rv": "ventricle"}
_PLAIN = frozenset({"small", "large", "or", "to", "size", "neither", "none", "no", "and", "trace"})


class Subject:
    """The structures and properties that a question asks about; unknown if its wording is."""

    def __init__(self, question: str, texts: OptionTexts) -> None:
        self._is_known = bool(question)
        own_words = {word for option_words in texts.own.values() for word in option_words}
        self._words = frozenset(_WORD.findall(question.lower()))
        self._asked = _structures(_WORD.findall(question.lower())) | _structures(own_words)

    def is_foreign(self, token: Token, clause: Clause, clauses: list[Clause]) -> bool:
        """Return whether an option's text in a clause says something of another subject.

        Only a text without a noun of its own can ("Normal"). Where the question is not known, a reply that
        speaks of several subjects leaves open which of them it asks about.
        """
        if not _is_attribute(token.text):
            return False
        if self._is_known:
            own_part = next(
                (part for part in _parts(_without_remark(clause, token)) if token in part), clause
            )
            spoken_of = _structures_in(others for others in own_part if others is not token)
            if not spoken_of and not _is_followed_by_remark(clause, token):
                spoken_of = _structures_in(others for others in clause if others is not token)
            return not spoken_of <= self._asked
        structures = next(
            filter(None, (_structures_in(part) for part in _parts(clause) if token in part)), frozenset()
        )
        return bool(structures) and any(
            others and others != structures
            for clause in clauses
            for others in map(_structures_in, _parts(clause))
        )

    def is_own(self, clause: Clause) -> bool:
        """Return whether a clause names what the question asks about, and nothing else."""
        structures = _structures_in(token for token in clause if token.kind != "text")
        return self._is_known and bool(structures) and structures <= self._asked

    def shared_words(self, head: str) -> int:
        """How many words of a heading the question has, too; 0 if it has any other."""
        head_words = _WORD.findall(head.lower())
        is_own = all(
            word in self._words
            or (_structures([word]) & self._asked and _CHAMBERS.get(word, "") in {"", *self._asked})
            for word in head_words
        )
        return len(head_words) if is_own else 0

    def is_of_others(self, clause: Clause) -> bool:
        """Return whether a clause names what the question does not ask about."""
        return not _structures_in(token for token in clause if token.kind != "text") <= self._asked

    def is_foreign_in(self, clauses: list[Clause]) -> bool:
        """Return whether a text in any of the clauses is said of another subject."""
        return any(
            token.kind == "text" and self.is_foreign(token, clause, clauses)
            for clause in clauses
            for token in clause
        )


def _without_remark(clause: Clause, token: Token) -> Clause:
    """A clause up to the bracket that follows a token."""
    start = clause.index(token)
    return clause[: next((at for at in range(start, len(clause)) if clause[at].kind == "open"), len(clause))]


def _is_followed_by_remark(clause: Clause, token: Token) -> bool:
    return [later.kind for later in clause[clause.index(token) + 1 :][:1]] == ["open"]


def _is_attribute(text: str) -> bool:
    return all(_ADJECTIVE.fullmatch(word) or word in _PLAIN for word in _WORD.findall(text.lower()))


def _structures_in(tokens: Iterable[Token]) -> frozenset[str]:
    return _structures(word for token in tokens for word in _WORD.findall(token.text.lower()))


def _parts(clause: Clause) -> list[Clause]:
    """A clause between its commas."""
    parts: list[Clause] = [[]]
    for token in clause:
        if token.kind in {"comma", "join"}:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _structures(of_words: Iterable[str]) -> frozenset[str]:
    names = _spellings()
    return frozenset(names[word] for word in of_words if word in names)


@functools.cache
def _spellings() -> dict[str, str]:
    """Each spelling of a structure or property, and the name that it counts as."""
    return {
        spelling: name for name, spellings in words().structures.items() for spelling in (name, *spellings)
    }
