"""What "all", or "all walls except B and C", names."""

from cardiolens.score.verdicts.elimination import NORMAL
from cardiolens.score.verdicts.lists import leading
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import UNREADABLE, NotReadableError, Reading, reading_of
from cardiolens.score.verdicts.reply_tokens import Token

_ALL_OF_THEM = frozenset(
    {"all", "all of above", "all of them", "alle", *(f"all {count}" for count in ("three", "four", "five"))}
)


_LEFT_SIDE = frozenset({"lv", "left"})


_OPEN_SIGNS = frozenset({"stop", "newline", "semicolon", "comma", "but", "query"})


_OPENING = 4  # tokens


_ALL = frozenset({"all", "every", "everything", "alle"})


_EXCEPT = frozenset({"except", "excluding", "without", "other than", "apart from", "außer", "but not"})


_ALL_BUT = frozenset({"all but", "everything but"})

_LEAD = frozenset(
    {"open", "colon", "dash", "label", "newline", "stop", "close", "bar", "verb", "subject", "bullet"}
)


def complement(tokens: list[Token], texts: OptionTexts) -> Reading | None:
    """The options that "all", or "all walls except B and C", names; None for any other text."""
    tokens = _without_letters(_from_all(tokens))
    opens = tokens[:1] and (tokens[0].text.lower() in _EXCEPT)
    if not opens and not any(token.text in _ALL or token.text in _ALL_BUT for token in tokens[:_OPENING]):
        return None
    is_of_left = any(token.text.lower() in _LEFT_SIDE for token in tokens)
    own_keys = [
        key
        for key, text in texts.options
        if not NORMAL.match(text) and not (is_of_left and text.startswith("Right"))
    ]
    spoken_words = [
        token.text.lower() for token in tokens if token.kind not in _LEAD | {"comma"} or token.text in _ALL
    ]
    if spoken_words and " ".join(spoken_words) in _ALL_OF_THEM:
        return reading_of(own_keys)
    if (
        tokens
        and tokens[0].text.lower() in _EXCEPT
        and (complement_of := _but_first(own_keys, tokens[1:], texts))
    ):
        return complement_of
    at = next((at for at, token in enumerate(tokens) if token.kind == "not"), 0)
    before = [token for token in tokens[:at] if token.kind not in _LEAD]
    first_word = tokens[at].text if tokens else ""
    if not (first_word in _ALL_BUT and not before) and not (
        first_word in _EXCEPT and before and before[0].text.lower() in _ALL and all(not t.key for t in before)
    ):
        return None
    return _without(own_keys, tokens[at + 1 :], before, texts)


def _but_first(own_keys: list[str], rest: list[Token], texts: OptionTexts) -> Reading | None:
    """The options beside those listed first: "except for the inferior wall, T2 signal is increased"."""
    while rest and rest[0].text == "for":
        rest = rest[1:]
    names = [at for at, token in enumerate(rest) if token.key]
    if not names:
        return None
    predicate = rest[names[-1] + 1 :]
    while predicate and predicate[0].kind == "subject":
        predicate = predicate[1:]
    try:
        listed = leading(rest[: names[-1] + 1], texts, several=True)
    except NotReadableError:
        return None
    kinds = {token.kind for token in predicate}
    is_said = (
        predicate[:1]
        and predicate[0].kind == "comma"
        and "yes" in kinds
        and kinds.isdisjoint({"no", "not", "perhaps"})
    )
    if not listed or not listed[1] or not is_said:
        return None
    return reading_of([key for key in own_keys if key not in listed[0].keys])


def _without_letters(tokens: list[Token]) -> list[Token]:
    """Tokens without letters in a bracket at their end: "all of the above (A-E)"."""
    at = next((at for at, token in enumerate(tokens) if token.kind == "open"), 0)
    inner = {token.kind for token in tokens[at + 1 :]}
    return tokens[:at] if at and inner <= {"key", "dash", "comma", "close", "stop", "join"} else tokens


def _from_all(tokens: list[Token]) -> list[Token]:
    """Tokens without what affirms before "all": "motion is abnormal at all levels except the apex"."""
    at = next((at for at, token in enumerate(tokens) if token.text in _ALL), 0)
    opening = tokens[:at]
    is_affirmed = any(token.kind == "yes" and token.text != "seen" for token in opening) and any(
        token.kind == "verb" for token in opening
    )
    speaks_on = any(token.key or token.kind in {*_OPEN_SIGNS, "not", "no", "perhaps"} for token in opening)
    return tokens[at:] if is_affirmed and not speaks_on else tokens


def _without(
    own_keys: list[str], rest: list[Token], before: list[Token], texts: OptionTexts
) -> Reading | None:
    """The options beside those that `rest` lists, or these themselves where the others are denied."""
    while rest and rest[0].text == "for":
        rest = rest[1:]
    judgements = [*before, *(token for token in rest if not token.key)]
    while rest and rest[-1].kind in {"yes", "no", "verb", "subject", "stop", "newline"}:
        rest = rest[:-1]
    try:
        list_and_end = leading(rest, texts, several=True)
    except NotReadableError:
        return None
    if not list_and_end or not list_and_end[1]:
        return None
    if any(token.kind in {"not", "perhaps", "query"} for token in judgements):
        return UNREADABLE
    if any(token.kind == "no" for token in judgements):  # "all walls are spared except the septum"
        return list_and_end[0]
    return reading_of([key for key in own_keys if key not in list_and_end[0].keys])
