"""Option texts in prose, in clauses that do not deny them (protocol 7.6, 16.2)."""

from itertools import pairwise

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.enumerations import CONTINUES, TRANSPARENT, is_broken_list
from cardiolens.score.verdicts.reading import UNREADABLE, Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import Clause, Statement
from cardiolens.score.verdicts.reply_tokens import Token
from cardiolens.score.verdicts.subject import Subject

_IN_LIST = frozenset({*CONTINUES, "text", "label"})
_NO_PREDICATES = frozenset(
    {"describes", "describe", "refers", "refer", "requires", "require", "needs", "need"}
)
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
        is_own = subject is not None and subject.is_own(clause)
        loosely = brief or after_mark or is_own or _concludes(clause)
        affirmed = [
            token
            for token in texts
            if _is_quoted(token, clause) or (loosely and _is_meant(token, clause, is_own=is_own))
        ]
        if several and not after_mark:
            is_located = is_own and (
                polarity == "yes" or (brief and _finds(clause)) or _says_of_subject(clause)
            )
            is_list = loosely and all(token.kind in _IN_LIST for token in clause)
            affirmed = [
                token
                for token in affirmed
                if _closes(token, clause)
                or is_list
                or (is_located and _ends_with(clause, token, is_own=True))
            ]
        if polarity == "open" or (several and affirmed and _is_incomplete(clause, polarity)):
            return UNREADABLE
        keys.extend(token.key for token in affirmed)
    if not keys and not several:
        keys = _left_over(statements)
    if not keys:
        return None
    return UNREADABLE if _names_others(statements, keys, several) else reading_of(keys)


def _left_over(statements: list[Statement]) -> list[str]:
    """The one option that begins a clause where other options are denied, or that a clause prefers."""
    denied = {
        token.key for clause, polarity in statements if polarity == "no" for token in clause if token.key
    }
    begins = [
        (clause[0].key, clause)
        for clause, polarity in statements
        if polarity == "bare" and clause[0].kind == "text"
    ]
    keys = dict.fromkeys(key for key, clause in begins if denied - {key} or _prefers(clause))
    return list(keys) if len(keys) == 1 else []


def _prefers(clause: Clause) -> bool:
    return any(token.text.lower() in words().commits.after for token in clause[1:] if not token.key)


def is_one_sentence(tokens: list[Token]) -> bool:
    """Return whether a text ends at its first full stop, semicolon, question mark or line."""
    ends = [at for at, token in enumerate(tokens) if token.kind in {"stop", "newline", "semicolon", "query"}]
    return all(at == len(tokens) - 1 for at in ends)


def _is_quoted(token: Token, clause: Clause) -> bool:
    """Return whether a text is written as in the options: with a capital that is not a sentence's first."""
    return clause == [token] or (
        token.text[0].isupper() and (_has_several_words(token) or clause[0] is not token)
    )


def _is_meant(token: Token, clause: Clause, *, is_own: bool = False) -> bool:
    """Return whether a text counts in any case: it has several words or ends its clause."""
    return _has_several_words(token) or _ends_with(clause, token, is_own=is_own)


def _closes(token: Token, clause: Clause) -> bool:
    """Return whether a clause ends with a text, quoted or as a predicate."""
    return _ends_with(clause, token) and (_is_quoted(token, clause) or _is_predicate(token, clause))


def _finds(clause: Clause) -> bool:
    """Return whether a clause begins with a finding: "Enhancement at the basal and mid levels"."""
    first = next((token for token in clause if token.kind != "label"), None)
    looks_for = any(token.kind == "verb" for token in clause)
    return first is not None and first.text.lower() in words().findings and not looks_for


def _says_of_subject(clause: Clause) -> bool:
    """Return whether only words for the subject stand before a text: "RV wall normal"."""
    first = next(at for at, token in enumerate(clause) if token.kind == "text")
    return first > 0 and all(token.kind in {"subject", "label"} for token in clause[:first])


def _has_several_words(token: Token) -> bool:
    return any(sign in token.text.strip() for sign in " -\n")


def _is_predicate(token: Token, clause: Clause) -> bool:
    """Return whether a verb precedes a text, with only further options in between."""
    before = clause[: clause.index(token)]
    skipped = {*CONTINUES, "text", "label"}
    verb = next((earlier for earlier in reversed(before) if earlier.kind not in skipped), None)
    return verb is not None and verb.kind == "verb" and verb.text not in _NO_PREDICATES


def _concludes(clause: Clause) -> bool:
    return clause[0].text.lower() in words().conclusions


def _ends_with(clause: Clause, token: Token, *, is_own: bool = False) -> bool:
    """Return whether only further options follow a text; also what a question asks for, in its own clause."""
    after = clause[clause.index(token) + 1 :]
    remark = next((at for at, later in enumerate(after) if later.kind == "open"), len(after))
    if not any(later.key or later.kind in {"yes", "no", "not"} for later in after[remark:]):
        after = after[:remark]
    ends = CONTINUES | {"text", "label", "close", "also"} | ({"subject", "verb", "yes"} if is_own else set())
    return all(later.kind in ends for later in after)


def _is_incomplete(clause: Clause, polarity: str) -> bool:
    """Return whether a list in prose has an entry that is not an option, or an unknown predicate."""
    kinds = [token.kind for token in clause if token.kind not in TRANSPARENT]
    unjudged = any(kind == "text" and after in _PREDICATES for kind, after in pairwise(kinds))
    return is_broken_list(clause) or (unjudged and polarity != "yes")


def _names_others(statements: list[Statement], keys: list[str], several: bool) -> bool:
    """Return whether a clause that is not a denial mentions an option beyond `keys`."""
    kinds = {"text", "part", "short"} if several else {"text", "part"}
    return any(
        token.kind in kinds and token.key not in keys
        for clause, polarity in statements
        if polarity != "no"
        for token in clause
    )
