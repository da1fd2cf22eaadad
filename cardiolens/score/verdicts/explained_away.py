"""What a line says after it has affirmed an option: "bright, but this is blood pool" (protocol 17.16)."""

import functools
import re
from typing import Literal

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.reply_tokens import Token

Effect = Literal["none", "denied", "open"]

_DENYING = frozenset({"not", "no"})
_LEADS_ON = frozenset({"but", "comma", "label"})
_BEFORE_OTHERS = frozenset({"stop", "semicolon", "comma", "but", "join"})
_OTHER_OPTIONS = frozenset({"others", "rest", "remaining", "other", "remainder"})
_SENTENCE = frozenset({"stop", "semicolon", "query"})


def effect(clause: list[Token], rest: list[Token], *, affirms: bool) -> Effect:
    """What the rest of a line does to an option that a clause affirms or only names.

    It denies the option where it names another cause or says no, and leaves it open where it objects in words
    that are not known. A new sentence counts only if it refers to what was said.
    """
    objection = _objection(rest)
    if is_another_cause(clause):
        return "denied"
    words_of_objection = _text(objection)
    if not words_of_objection or _despite().search(words_of_objection):
        return "none"
    if _cause().search(words_of_objection):
        return "denied"
    if not affirms:
        return "none"
    if any(token.kind in _DENYING for token in objection):
        return "denied"
    if all(token.kind in _LEADS_ON for token in objection):  # "... whereas the" goes on to another option
        objection = []
    return "open" if any(token.kind in {"but", "perhaps"} for token in objection) else "none"


def is_another_cause(clause: list[Token]) -> bool:
    """Return whether a clause names what looks like a finding and is none."""
    own = _text([token for token in clause if token.kind != "text"])
    return _cause().search(own) is not None and not _despite().search(own)


def _objection(rest: list[Token]) -> list[Token]:
    """The rest of a line up to a sentence that does not refer to what was said."""
    objection: list[Token] = []
    for at, token in enumerate(rest):
        if (
            token.kind in _BEFORE_OTHERS
            and {later.text.lower() for later in rest[at + 1 : at + 4]} & _OTHER_OPTIONS
        ):
            break
        if token.kind in _SENTENCE and not (
            rest[at + 1 :] and rest[at + 1].kind in {"pronoun", "no", "not", "label", "reason"}
        ):
            break
        objection.append(token)
    return objection


def _text(tokens: list[Token]) -> str:
    return " ".join(token.text.lower() for token in tokens)


@functools.cache
def _cause() -> re.Pattern[str]:
    return re.compile("|".join(words().other_causes))


@functools.cache
def _despite() -> re.Pattern[str]:
    causes = "|".join(words().other_causes)
    before = "|".join(words().despite)
    return re.compile(rf"(?:{before})(?:\s+\S+){{0,4}}?\s*(?:{causes})")
