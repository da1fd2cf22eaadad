"""Statements about options in replies without a list: enumerations with yes or no, and prose (protocol 16.2)."""

from cardiolens.judging.clauses import NAMES, Clause, Statement, clauses, polarity
from cardiolens.judging.lexicon import words
from cardiolens.judging.lists import leading
from cardiolens.judging.option_text import OptionTexts
from cardiolens.judging.reading import UNREADABLE, NotReadableError, Reading, reading_of
from cardiolens.judging.tokens import Token

_BEFORE_NAME = frozenset(
    {"label", "open", "close", "bar", "yes", "no", "stop", "comma", "join", "dash", "but", "colon", "bullet", "colon", "subject"}
)
_CONTINUES = frozenset({"join", "comma"})
_NO_CHOICE = frozenset({*words().not_options, "option", "options", "choices", "选项"})
_TRANSPARENT = frozenset({"label", "subject", "close"})


def enumeration(stated: list[Statement]) -> Reading | None:
    """The options affirmed where clauses that begin with options say yes or no of each of them.

    None where there is no such enumeration.
    """
    affirmed: list[str] = []
    denied: list[str] = []
    loose: list[str] = []
    for clause, said in stated:
        names = _entry(clause)
        if names and _is_broken(clause):
            return UNREADABLE
        if names and said in {"yes", "no"}:
            (affirmed if said == "yes" else denied).extend(names)
        elif names:
            return None
        elif said != "no":
            loose.extend(
                token.key for token in clause if token.kind in {"key", "text"} and token.text[0].isupper()
            )
    if not affirmed:
        return None
    contradicted = set(affirmed) & set(denied) or set(loose) - set(affirmed)
    return UNREADABLE if contradicted else reading_of(affirmed)


def _entry(clause: Clause) -> list[str]:
    """The options that a clause begins with; a letter with another option's text is none."""
    start = next((at for at, token in enumerate(clause) if token.kind not in _BEFORE_NAME), len(clause))
    if start == len(clause) or clause[start].kind not in NAMES or clause[start].text.islower():
        return []
    names = [token for token in clause[start:] if token.kind in NAMES]
    return [token.key for token in names if token.kind != "key" or token.text.isupper()]


def prose(stated: list[Statement], *, several: bool, brief: bool) -> Reading | None:
    """The options whose texts a reply in prose affirms; None where it quotes none.

    Outside a reply of one sentence, a text of one word counts only if it is written as in the options, and any
    text only if it is, or if the sentence draws a conclusion. `brief` says that the reply is one sentence, or the
    statements an answer by themselves, in which any case counts.
    """
    named: list[str] = []
    for clause, said in stated:
        found = [token for token in clause if token.kind == "text"]
        if said == "no" or not found:
            continue
        counted = [token for token in found if _counts(token, clause, brief)]
        if said == "open" or (several and counted and _is_incomplete(clause, said)):
            return UNREADABLE
        named.extend(token.key for token in counted)
    if not named:
        return None
    return UNREADABLE if _others(stated, named, several) else reading_of(named)


def closing_letters(tokens: list[Token], texts: OptionTexts) -> Reading | None:
    """The letters that the last sentence of a reply ends with ("The abnormal walls are B and D."), its only ones."""
    opening = next((at for at, token in enumerate(tokens) if token.kind == "key" and token.text.isupper()), 0)
    before = tokens[:opening]
    sentence = clauses(before)[-1] if before else []
    if not sentence or sentence[-1].kind not in {"verb", "colon"} or polarity(sentence) in {"no", "open"}:
        return None
    if any(token.key or token.kind == "either" or token.text in _NO_CHOICE for token in sentence):
        return None
    try:
        found = leading(tokens[opening:], texts, several=True)
    except NotReadableError:
        return UNREADABLE
    return found[0] if found and found[1] else None


def is_one_sentence(tokens: list[Token]) -> bool:
    """Whether a text goes on neither behind a full stop nor on a further line."""
    ends = [at for at, token in enumerate(tokens) if token.kind in {"stop", "newline", "semicolon", "query"}]
    return all(at == len(tokens) - 1 for at in ends)


def _counts(token: Token, clause: Clause, brief: bool) -> bool:
    several_words = any(sign in token.text.strip() for sign in " -\n")
    verbatim = token.text[0].isupper() and (several_words or clause[0] is not token)
    if verbatim or clause == [token]:
        return True
    if several_words:
        return brief or _concludes(clause)
    return (brief or _concludes(clause)) and _ends_with(clause, token)


def _concludes(clause: Clause) -> bool:
    return clause[0].text.lower() in words().conclusions


def _ends_with(clause: Clause, token: Token) -> bool:
    """Whether nothing but further options follows a text: "normal thickness" is no function."""
    after = clause[clause.index(token) + 1 :]
    return all(later.kind in _CONTINUES | {"text", "label", "close"} for later in after)


def _is_incomplete(clause: Clause, said: str) -> bool:
    """Whether a list in prose has an entry that is no option, or a predicate that is not understood."""
    kinds = [token.kind for token in clause if token.kind not in _TRANSPARENT]
    unjudged = any(
        kind == "text" and after in {"verb", "colon", "dash", "bar"}
        for kind, after in zip(kinds, kinds[1:], strict=False)
    )
    return _is_broken(clause) or (unjudged and said != "yes")


def _is_broken(clause: Clause) -> bool:
    """Whether a list in a clause has an entry that is no option ("A and the level below")."""
    kinds = [token.kind for token in clause if token.kind not in _TRANSPARENT]
    for at, kind in enumerate(kinds):
        if kind in NAMES and kinds[at + 1 : at + 2] and kinds[at + 1] in _CONTINUES:
            rest = [after for after in kinds[at + 1 :] if after not in _CONTINUES]
            if not rest or rest[0] not in NAMES:
                return True
    return False


def _others(stated: list[Statement], named: list[str], several: bool) -> bool:
    """Whether a clause that is not a denial speaks of an option beyond those named."""
    kinds = {"text", "part", "short"} if several else {"text"}
    return any(
        token.kind in kinds and token.key not in named
        for clause, said in stated
        if said != "no"
        for token in clause
    )
