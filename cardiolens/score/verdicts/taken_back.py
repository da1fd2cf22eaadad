"""Statements behind a marked answer that say the opposite in the options' words (protocol 17.16)."""

from cardiolens.score.verdicts.elimination import NORMAL
from cardiolens.score.verdicts.reading import Keys
from cardiolens.score.verdicts.reply_clauses import NAMES, Clause, polarity, statements
from cardiolens.score.verdicts.reply_tokens import Token, Tokenizer
from cardiolens.score.verdicts.subject import Subject
from cardiolens.score.verdicts.topics import Topics

_SAYS_NOTHING = frozenset({"label", "subject", "close", "also"})


def is_taken_back(tail: str, keys: Keys, tokenizer: Tokenizer, question: str, *, several: bool) -> bool:
    """Return whether a text states another option of what is asked for, or denies one of the answer.

    "The function is normal." takes back "ANSWER: C", as "The inferior wall is normal." does of several.
    """
    if not several and not tokenizer.texts.spelling.search(tail):
        return False
    tokens = tokenizer.tokens(tail)
    topics = Topics.of(question)
    own = [
        clause
        for clause, _ in statements(tokens)
        if not topics.are_left_by(" ".join(token.text for token in clause))
    ]
    if several:
        normal = {key for key, text in tokenizer.texts.options if NORMAL.match(text)}
        return any(_denies(clause, set(keys) - normal) for clause in own)
    if any(token.key in keys and token.kind == "text" for token in tokens):
        return False
    subject = Subject(question, tokenizer.texts)
    return any(subject.is_own(clause) and _states(clause, keys) for clause in own)


def _denies(clause: Clause, keys: set[str]) -> bool:
    """Return whether a clause says no of its only options: "the inferior wall is normal"."""
    names = [at for at, token in enumerate(clause) if _names(token)]
    if not names or not {clause[at].key for at in names} <= keys or polarity(clause) != "no":
        return False
    predicate = [token.kind for token in clause[names[-1] + 1 :] if token.kind not in _SAYS_NOTHING]
    return predicate[:2] in (["verb", "no"], ["verb", "not"]) or clause[0].kind == "not"


def _states(clause: Clause, keys: Keys) -> bool:
    """Return whether a clause says another option of the subject: "the function is normal"."""
    at = next((at for at, token in enumerate(clause) if token.kind == "text"), 0)
    return (
        at > 0 and clause[at - 1].kind == "verb" and clause[at].key not in keys and polarity(clause) == "bare"
    )


def _names(token: Token) -> bool:
    return token.kind in NAMES and (token.kind != "key" or token.text.isupper())
