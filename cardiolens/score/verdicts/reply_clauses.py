"""Clauses of a reply, and whether they affirm or deny the options in them (protocol 16.2)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from cardiolens.score.verdicts.explained_away import effect, is_another_cause
from cardiolens.score.verdicts.reply_tokens import Token

Clause = list[Token]
Polarity = Literal["bare", "yes", "no", "open"]  # "bare": options without a predicate; "open": undecidable

NAMES = frozenset({"key", "text", "short"})
_ENDS = frozenset({"stop", "semicolon", "newline", "but", "query"})
_POLAR = frozenset({"yes", "no", "not"})
_SETS_AGAINST = frozenset(
    {"rather than", "instead of", "sparing", "excluding", "unlike", "as opposed to", "in contrast to"}
)
_PREFERS = frozenset({"rather", "more", "likely", "lieber", "eher"})
_WITHIN_NAMES = frozenset({"close", "subject", "label"})
_REPLIES = frozenset({"no", "nein", "nope", "non"})
LEAVES = frozenset({"leaves", "leaving", "leave"})
_MEASURES = frozenset({"to", "than"})
_UNSURE = frozenset({"perhaps", "query", "either"})
_SAYS_NOTHING = frozenset({"label", "word", "subject", "part", "bullet", "neutral", "pronoun"})


class Statement(NamedTuple):
    """A clause and its polarity towards the options in it."""

    clause: Clause
    polarity: Polarity


def statements(tokens: list[Token]) -> list[Statement]:
    """The clauses of a text that mention options, with their polarity after the rest of their line."""
    naming = [
        _without_remarks_on_denied(clause) for clause in clauses(tokens) if any(token.key for token in clause)
    ]
    ends = [clause[0].start for clause in naming[1:]] + [tokens[-1].start + 1] if naming else []
    return [
        Statement(clause, _lasting(polarity(clause), clause, _rest_of_line(tokens, clause, end)))
        for clause, end in zip(naming, ends, strict=True)
    ]


def is_explained_away(tokens: list[Token]) -> bool:
    """Return whether the first option of a text is affirmed and then denied on its line."""
    naming = [clause for clause in clauses(tokens) if any(token.key for token in clause)]
    if not naming or polarity(naming[0]) != "yes":
        return False
    return statements(tokens)[0].polarity != "yes"


def _without_remarks_on_denied(clause: Clause) -> Clause:
    """A clause that begins by denying, without remarks in brackets: "neither A (some move) nor B works"."""
    if clause[0].kind != "not":
        return clause
    outside, depth = Clause(), 0
    for at, token in enumerate(clause):
        depth += token.kind == "open" and not any(inner.key for inner in clause[at + 1 : at + 2])
        if not depth:
            outside.append(token)
        depth -= token.kind == "close" and depth > 0
    return outside if any(token.key for token in outside) else clause


def _lasting(stance: Polarity, clause: Clause, rest: Clause) -> Polarity:
    """The polarity of a clause after the rest of its line."""
    if clause[-1].kind == "query" and (answered := _answer_to(clause[:-1], rest)):
        return answered
    if stance == "open" and not _UNSURE & {token.kind for token in clause} and is_another_cause(clause):
        return "no"
    if stance not in {"yes", "bare"}:
        return stance
    effects: dict[str, Polarity] = {"none": stance, "denied": "no", "open": "open"}
    return effects[effect(clause, rest, affirms=stance == "yes")]


def _answer_to(question: Clause, rest: Clause) -> Polarity | None:
    """What "yes" or "no" says after a question of its own line: "enhancement? No."."""
    if _POLAR & {token.kind for token in question} - {"yes"}:
        return None
    kinds = [token.kind for token in rest if token.kind not in {"dash", "bar", "query"}]
    if kinds[:1] == ["yes"]:
        return "yes"
    return "no" if kinds[:1] and kinds[0] in {"no", "not"} else None


def _rest_of_line(tokens: list[Token], clause: Clause, end: int) -> Clause:
    """The tokens after a clause, up to a new line or the position of the next option."""
    rest = [token for token in tokens if clause[-1].start < token.start < end]
    newline = next((at for at, token in enumerate(rest) if token.kind == "newline"), len(rest))
    return rest[:newline]


def clauses(tokens: list[Token]) -> list[Clause]:
    """Split tokens where a sentence, a line, a contrast, a reason or a further statement begins."""
    split_clauses: list[Clause] = [[]]
    is_named = is_judged = False  # whether the clause has an option, and a yes, no or not from it on
    for at, token in enumerate(tokens):
        clause = split_clauses[-1]
        ahead = tokens[at + 1 : at + 2]
        if not clause and token.text in _REPLIES and ahead and ahead[0].kind == "comma":
            split_clauses += [[]]  # "No, enhancement is absent": a word on the question, not on the options
            continue
        is_against = token.text in _SETS_AGAINST or (
            (token.text == "without" or _compares(token, clause)) and _begins_with_name(ahead)
        )
        if (is_named or at == 0) and not is_judged and is_against:
            split_clauses.append([token._replace(kind="not")])
            is_named = is_judged = False
            continue
        ends = {"yes", "no", "not"} if token.kind == "open" else {"yes", "no"}
        if is_judged and clause[-1].kind in ends and _is_letter(token, ahead):
            split_clauses.append([token])  # "(A) no (B) yes"
            is_named, is_judged = token.kind == "key", False
            continue
        if token.text in LEAVES and (is_named or _denies_names(split_clauses[:-1])):
            split_clauses.append([token])  # "eliminating A and B leaves C"
            is_named = is_judged = False
            continue
        if is_named and _is_box(token) and _is_box(clause[0]) and not is_against:
            split_clauses.append([token])  # "[x] A [ ] B"
            is_named = is_judged = False
            continue
        if _begins_with_name(ahead) and (
            (token.kind == "bar" and is_judged)
            or (token.kind == "colon" and _concludes(split_clauses, is_judged))
        ):
            split_clauses.append([])  # "Mid-wall ✅ | Transmural ❌", "not small: normal"
            is_named = is_judged = False
            continue
        if token.kind in _ENDS and not _after_letter(token, clause):
            clause.extend([token] if token.kind == "query" else [])
        elif not _divides(token, tokens[at + 1 : at + 3], is_named=is_named, is_judged=is_judged):
            clause.append(token)
            is_named = is_named or token.kind in NAMES
            is_judged = is_judged or (is_named and token.kind in _POLAR)
            continue
        split_clauses.append([])
        is_named = is_judged = False
    return [clause for clause in split_clauses if clause]


def _denies_names(split_clauses: list[Clause]) -> bool:
    return any(token.key for clause in split_clauses for token in clause)


def _concludes(split_clauses: list[Clause], is_judged: bool) -> bool:
    """Return whether a colon ends denials, so that a conclusion follows: "not small, not large: normal"."""
    *before, clause = split_clauses
    kinds = {token.kind for token in clause}
    is_denied = is_judged or ("not" in kinds and any(token.key for earlier in before for token in earlier))
    return is_denied and "yes" not in kinds


def _is_box(token: Token) -> bool:
    """Return whether a token is a tick or a box, and no word."""
    return token.kind in {"yes", "no"} and not token.text[:1].isalnum() and token.text != ""


def _compares(token: Token, clause: Clause) -> bool:
    """Return whether what follows is set below what stands before: "B over C", "rather B than C"."""
    return token.text == "over" or (
        token.text == "than" and any(before.text.lower() in _PREFERS for before in clause)
    )


def _begins_with_name(tokens: Clause) -> bool:
    return bool(tokens) and tokens[0].kind in NAMES


def _is_letter(token: Token, ahead: Clause) -> bool:
    """Return whether a capital letter begins here, bare or in a bracket."""
    letter = ahead[0] if token.kind == "open" and ahead else token
    return letter.kind == "key" and letter.text.isupper()


def _after_letter(token: Token, clause: Clause) -> bool:
    """Return whether a full stop follows a list letter, as in "A. Basal segment"."""
    if token.kind != "stop" or not clause or clause[-1].kind != "key":
        return False
    return all(before.kind in {"label", "open", "yes", "no", "bar", "bullet"} for before in clause[:-1])


def _divides(token: Token, ahead: Clause, *, is_named: bool, is_judged: bool) -> bool:
    """Return whether a comma, an "and" or a reason starts a new statement."""
    if token.kind == "reason":
        return is_named
    if token.kind not in {"comma", "join"}:
        return False
    following = next((after.kind for after in ahead if after.kind not in {"label", "bullet"}), None)
    if following in _ENDS | {"not", "reason", "pronoun"}:
        return True
    return following in NAMES and is_judged


def polarity(clause: Clause) -> Polarity:
    """Polarity of a clause towards its options: "yes", "no", "open", or "bare" if it only names them."""
    kinds = [token.kind for at, token in enumerate(clause) if not joins_no_names(clause, at)]
    names = any(kind in NAMES for kind in kinds)
    if "perhaps" in kinds or "query" in kinds or (names and "either" in kinds and not _is_denied_list(kinds)):
        return "open"
    if not names and not _POLAR & set(kinds):
        return "bare"
    return _polarity_of_kinds([kind for kind in kinds if kind not in _SAYS_NOTHING])


def joins_no_names(clause: Clause, at: int) -> bool:
    """Return whether "to" or "than" stands before no option, and so leaves nothing open: "close to 1"."""
    if clause[at].text not in _MEASURES:
        return False
    following = next((token for token in clause[at + 1 :] if token.kind != "label"), None)
    return following is None or following.kind not in NAMES


def _is_denied_list(kinds: Sequence[str]) -> bool:
    """Return whether a denial precedes all options, or follows them: "not A or B", "A or B aren't seen"."""
    names = [at for at, kind in enumerate(kinds) if kind in NAMES]
    after = [kind for kind in kinds[names[-1] + 1 :] if kind not in _WITHIN_NAMES]
    return "not" in kinds[: names[0]] or after[:1] == ["not"]


def _polarity_of_kinds(kinds: list[str]) -> Polarity:
    """Polarity from options, predicates and denials only; a denied affirmation is a denial."""
    denials = [at for at, kind in enumerate(kinds) if kind in {"not", "no"}]
    if not denials:
        return "yes" if "yes" in kinds else "bare"
    affirmed = [at for at, kind in enumerate(kinds) if kind == "yes" and not _is_denied(kinds, at)]
    if affirmed or any(_is_obscure(kinds, at) for at in denials):
        return "open"
    return "no"


def _is_denied(kinds: list[str], at: int) -> bool:
    """Return whether "not" precedes an affirmation, with only options and a verb in between."""
    before = at - 1
    while before >= 0 and kinds[before] in {"verb", "join", "comma", "reason", *NAMES}:
        before -= 1
    return before >= 0 and kinds[before] == "not"


def _is_obscure(kinds: list[str], at: int) -> bool:
    """Return whether a denial is doubled ("not normal"), or its option is ambiguous ("A not B")."""
    if kinds[at] == "no":
        return at > 0 and kinds[at - 1] == "not"
    is_denied_list = "not" in kinds[: next((n for n, kind in enumerate(kinds) if kind in NAMES), 0)]
    return (
        at > 0
        and not is_denied_list
        and kinds[at - 1] in NAMES
        and any(kind in NAMES for kind in kinds[at + 1 :])
    )


def denies(clause: Clause) -> bool:
    """Return whether a clause denies its options."""
    return polarity(clause) == "no"


def is_open(clause: Clause) -> bool:
    """Return whether a clause is undecidable."""
    return polarity(clause) == "open"


def further_options(clause: Clause, keys: list[str]) -> list[Token]:
    """Letters and texts of options beyond `keys` in a clause that does not deny them."""
    further = [token for token in clause if token.kind in {"key", "text"} and token.key not in keys]
    further = [token for token in further if token.kind == "text" or token.text.isupper()]
    return [] if further and denies(clause) else further
