"""Option texts in prose, in clauses that do not deny them (protocol 7.6, 16.2)."""

from itertools import pairwise

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.enumerations import CONTINUES, TRANSPARENT, is_broken_list
from cardiolens.score.verdicts.reading import UNREADABLE, Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import Clause, Statement
from cardiolens.score.verdicts.reply_tokens import Token
from cardiolens.score.verdicts.subject import Subject

_PREDICATES = frozenset({"verb", "colon", "dash", "bar"})


def prose(
    statements: list[Statement],
    *,
    several: bool,
    brief: bool,
    after_mark: bool,
    subject: Subject | None = None,
    all_clauses: list[Clause] | None = None,
) -> Reading | None:
    """The options whose texts a reply in prose affirms; None if there are none.

    A text counts if it is written as in the options. After a mark (`after_mark`), in a `brief` reply of one
    sentence and in a conclusion it counts in any case, a single word at the end of its clause only ("normal
    thickness" is no function). Without a mark one of several options counts at the end of its clause only,
    in any case as a predicate ("is thinned"). A text that is said of another `subject` than the question's
    does not count.
    """
    if subject:
        statements = [
            statement
            for statement in statements
            if not any(
                subject.is_foreign(token, statement.clause, all_clauses or [])
                for token in statement.clause
                if token.kind == "text"
            )
        ]
    keys: list[str] = []
    for clause, polarity in statements:
        texts = [token for token in clause if token.kind == "text"]
        if polarity == "no" or not texts:
            continue
        loosely = brief or after_mark or _concludes(clause)
        affirmed = [
            token for token in texts if _is_quoted(token, clause) or (loosely and _is_meant(token, clause))
        ]
        if several and not after_mark:
            affirmed = [token for token in affirmed if _closes(token, clause)]
        if polarity == "open" or (several and affirmed and _is_incomplete(clause, polarity)):
            return UNREADABLE
        keys.extend(token.key for token in affirmed)
    if not keys:
        return None
    return UNREADABLE if _names_others(statements, keys, several) else reading_of(keys)


def is_one_sentence(tokens: list[Token]) -> bool:
    """Return whether a text ends at its first full stop, semicolon, question mark or line."""
    ends = [at for at, token in enumerate(tokens) if token.kind in {"stop", "newline", "semicolon", "query"}]
    return all(at == len(tokens) - 1 for at in ends)


def _is_quoted(token: Token, clause: Clause) -> bool:
    """Return whether a text is written as in the options: with a capital that is not a sentence's first."""
    return clause == [token] or (
        token.text[0].isupper() and (_has_several_words(token) or clause[0] is not token)
    )


def _is_meant(token: Token, clause: Clause) -> bool:
    """Return whether a text counts in any case: it has several words or ends its clause."""
    return _has_several_words(token) or _ends_with(clause, token)


def _closes(token: Token, clause: Clause) -> bool:
    """Return whether a clause ends with a text, quoted or as a predicate."""
    return _ends_with(clause, token) and (_is_quoted(token, clause) or _is_predicate(token, clause))


def _has_several_words(token: Token) -> bool:
    return any(sign in token.text.strip() for sign in " -\n")


def _is_predicate(token: Token, clause: Clause) -> bool:
    """Return whether a verb precedes a text, with only further options in between."""
    before = clause[: clause.index(token)]
    skipped = {*CONTINUES, "text", "label"}
    return next((earlier.kind for earlier in reversed(before) if earlier.kind not in skipped), None) == "verb"


def _concludes(clause: Clause) -> bool:
    return clause[0].text.lower() in words().conclusions


def _ends_with(clause: Clause, token: Token) -> bool:
    """Return whether only further options follow a text."""
    after = clause[clause.index(token) + 1 :]
    return all(later.kind in CONTINUES | {"text", "label", "close", "also"} for later in after)


def _is_incomplete(clause: Clause, polarity: str) -> bool:
    """Return whether a list in prose has an entry that is not an option, or an unknown predicate."""
    kinds = [token.kind for token in clause if token.kind not in TRANSPARENT]
    unjudged = any(kind == "text" and after in _PREDICATES for kind, after in pairwise(kinds))
    return is_broken_list(clause) or (unjudged and polarity != "yes")


def _names_others(statements: list[Statement], keys: list[str], several: bool) -> bool:
    """Return whether a clause that is not a denial mentions an option beyond `keys`."""
    kinds = {"text", "part", "short"} if several else {"text"}
    return any(
        token.kind in kinds and token.key not in keys
        for clause, polarity in statements
        if polarity != "no"
        for token in clause
    )
