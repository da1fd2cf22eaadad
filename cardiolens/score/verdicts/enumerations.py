"""Enumerations that answer yes or no for each option (protocol 16.2)."""

from collections.abc import Collection
from itertools import pairwise

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.reading import UNREADABLE, Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import NAMES, Clause, Polarity, Statement
from cardiolens.score.verdicts.reply_tokens import Kind, Token

_SIGNS = {"open", "close", "bar", "stop", "comma", "dash", "colon", "bullet"}
_BEFORE_NAME = frozenset({*_SIGNS, "label", "subject", "yes", "no", "join", "but", "reason"})
CONTINUES = frozenset({"join", "comma"})
TRANSPARENT = frozenset({"label", "subject", "close"})  # ignored between an option and its predicate


def enumeration(statements: list[Statement], one_of: Collection[str] = ()) -> Reading | None:
    """The affirmed options of a text whose clauses begin with options and say yes or no to each.

    An entry that only names what another entry denies affirms it: "Apex: enhancement" beside "Basal segment:
    no enhancement". Of `one_of`, the options of a question with one answer, the only affirmed one is chosen
    where every other has its entry, in whatever words. None where there is no such enumeration.
    """
    denied_nouns = _denied_nouns(statements)
    entries = {key for clause, _ in statements for key in _entry(clause)}
    if len(entries) > 2 and any(polarity == "no" and _entry(clause) for clause, polarity in statements):
        denied_nouns |= frozenset(words().findings)
    names_same = len(entries) > 1 and all(
        polarity == "bare" and _is_finding(clause) for clause, polarity in statements
    )
    is_elliptic = any(clause[-1].kind == "not" and _entry(clause) for clause, _ in statements)
    affirmed: list[str] = []
    denied: list[str] = []
    loose: list[str] = []
    weighed: list[str] = []
    for clause, stance in statements:
        polarity = "yes" if names_same else _in_contrast(clause, stance, denied_nouns)
        shows_it = is_elliptic and polarity == "bare" and any(token.kind == "verb" for token in clause)
        if shows_it or _is_abnormal_alone(clause, statements):
            polarity = "yes"  # "the lateral wall shows it, the septum does not"
        names = _entry(clause)
        if names and not one_of and is_broken_list(_from_first_name(clause)):
            return UNREADABLE
        if names and polarity in {"yes", "no"}:
            (affirmed if polarity == "yes" else denied).extend(names)
        elif names and one_of:
            weighed.extend(names)
        elif names:
            return None
        elif polarity != "no":
            loose.extend(_mentioned(clause, polarity))
    if not affirmed or (weighed and not set(one_of) <= {*affirmed, *denied, *weighed}):
        return None
    if weighed and (len(set(affirmed)) > 1 or loose or set(affirmed) & {*weighed, *denied}):
        return None
    contradicted = set(affirmed) & set(denied) or set(loose) - set(affirmed)
    if contradicted and len(entries) == 1:
        return None  # "I first thought B, but C is right" enumerates nothing
    return UNREADABLE if contradicted else reading_of(affirmed)


def _is_abnormal_alone(clause: Clause, statements: list[Statement]) -> bool:
    """Return whether a clause denies what all others call normal: "A moves normally, B doesn't"."""
    if clause[-1].kind != "not":
        return False
    other_clauses = [other_clause for other_clause, _ in statements if other_clause is not clause]
    return bool(other_clauses) and all(
        "no" in (kinds := {token.kind for token in other_clause}) and not kinds & {"not", "yes", "perhaps"}
        for other_clause in other_clauses
    )


def _is_finding(clause: Clause) -> bool:
    """Return whether a clause names an option and a finding, and says nothing else: "Basal: defect"."""
    words_of_clause = [
        token.text.lower() for token in clause if not token.key and token.kind not in _SIGNS | {"label"}
    ]
    return bool(_entry(clause)) and len(words_of_clause) == 1 and words_of_clause[0] in words().findings


def _in_contrast(clause: Clause, stance: Polarity, denied_nouns: frozenset[str]) -> Polarity:
    """The polarity of an entry beside entries that deny `denied_nouns`."""
    affirms = stance == "bare" and any(token.text.lower() in denied_nouns for token in clause)
    return "yes" if affirms and _entry(clause) else stance


def _denied_nouns(statements: list[Statement]) -> frozenset[str]:
    """What entries deny in one word: "enhancement" of "no enhancement"."""
    return frozenset(
        after.text.lower()
        for clause, polarity in statements
        if polarity == "no" and _entry(clause)
        for token, after in pairwise(clause)
        if token.kind == "not" and after.kind in {"subject", "word"}
    )


def _mentioned(clause: Clause, polarity: str) -> list[str]:
    """Options in a clause that is not an entry; lower-case texts count only if affirmed."""
    kinds = {"key", "text"}
    return [
        token.key
        for token in clause
        if token.kind in kinds and (token.text[0].isupper() or (token.kind == "text" and polarity == "yes"))
    ]


def _entry(clause: Clause) -> list[str]:
    """The options at the start of a clause; empty if it starts with anything else."""
    before = _BEFORE_NAME | {"verb"} if clause[-1].kind == "query" else _BEFORE_NAME  # "Is C abnormal?"
    start = next((at for at, token in enumerate(clause) if token.kind not in before), len(clause))
    if start == len(clause) or clause[start].kind not in NAMES or _is_small_letter(clause[start]):
        return []
    if clause[start].kind == "short" and [token.kind for token in clause[start + 1 : start + 2]] == ["word"]:
        return []  # "ischaemic scar"
    names = [token for token in clause[start:] if token.kind in NAMES]
    return [token.key for token in names if token.kind != "key" or token.text.isupper()]


def _from_first_name(clause: Clause) -> Clause:
    return clause[next(at for at, token in enumerate(clause) if token.kind in NAMES) :]


def _is_small_letter(token: Token) -> bool:
    return token.kind == "key" and token.text.islower()


def is_broken_list(clause: Clause) -> bool:
    """Return whether a list in a clause has an entry that is not an option ("A and the level below")."""
    kinds = [token.kind for token in _outside_brackets(clause) if token.kind not in TRANSPARENT]
    if kinds[-1:] == ["comma"]:  # before "whereas"
        kinds = kinds[:-1]
    for at, kind in enumerate(kinds):
        if kind in CONTINUES and (_is_name(kinds[:at][::-1]) != _is_name(kinds[at + 1 :])):
            return True
    return False


def _outside_brackets(clause: Clause) -> Clause:
    """A clause without remarks in brackets, which name no letter."""
    outside: Clause = []
    remark: Clause | None = None
    for token in clause:
        if remark is not None:
            remark.append(token)
            if token.kind == "close":
                outside += remark if any(inner.kind == "key" for inner in remark) else []
                remark = None
        elif token.kind == "open":
            remark = [token]
        else:
            outside.append(token)
    return outside + (remark or [])


def _is_name(kinds: list[Kind]) -> bool:
    """Return whether the first kind after conjunctions is that of an option."""
    return next((kind for kind in kinds if kind not in CONTINUES), None) in NAMES
