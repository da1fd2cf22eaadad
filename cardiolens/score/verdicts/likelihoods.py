"""The likeliest option of a reply that gives a likelihood of each, or ranks them (protocol 17.16)."""

import re
from itertools import pairwise

from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import NAMES
from cardiolens.score.verdicts.reply_tokens import Token

_SAYS_LIKELIHOOD = frozenset(
    {
        "of",
        "p",
        "i",
        "pick",
        "choose",
        "more",
        "most",
        "highest",
        "probable",
        "likely",
        "one",
        "so",
        "%",
        "confident",
        "confidence",
        "probability",
        "likelihood",
        "chance",
        "certainty",
    }
)
_BETWEEN = frozenset(
    {
        "comma",
        "semicolon",
        "newline",
        "open",
        "close",
        "colon",
        "stop",
        "dash",
        "bar",
        "bullet",
        "label",
        "join",
    }
)
_LIKELIHOODS = frozenset(
    {
        "sure",
        "confident",
        "confidence",
        "certain",
        "probability",
        "likelihood",
        "chance",
        "likely",
        "give",
        "say",
    }
)
_SUM, _SLACK = 100, 5  # per cent that the likelihoods of a reply add up to
_ABOVE = ">"
_DECIMAL, _DIGIT = re.compile(r"(?<![\d.])[01]?\.\d+(?![\d.])"), re.compile(r"\d")


def with_per_cent(text: str) -> str:
    """A text whose numbers are shares of one, with these in per cent; any other text as it is."""
    numbers = _DECIMAL.findall(text)
    is_whole = len(numbers) > 1 and abs(sum(map(float, numbers)) - 1) <= _SLACK / _SUM
    if not is_whole or _DIGIT.search(_DECIMAL.sub("", text)):
        return text
    return _DECIMAL.sub(lambda number: f"{float(number[0]) * _SUM:.0f} %", text)


def likeliest(tokens: list[Token], texts: OptionTexts) -> Reading | None:
    """The option of the highest likelihood, or the first of a ranking ("C > D"); None without either."""
    return _first_of_ranking(tokens, texts) or _of_shares(tokens, texts)


def _is_of_likelihood(tokens: list[Token], further_signs: int) -> bool:
    """Return whether the shares of a sentence are likelihoods, and not those of blood ejected."""
    spoken = {token.text.lower() for token in tokens}
    return further_signs == 0 and not spoken.isdisjoint(_LIKELIHOODS)


def _first_of_ranking(tokens: list[Token], texts: OptionTexts) -> Reading | None:
    spoken = [token for token in tokens if token.kind not in {"stop", "newline", "label"}]
    names, signs = spoken[::2], spoken[1::2]
    is_ranking = (
        len(signs) > 0 and len(names) == len(signs) + 1 and all(sign.text == _ABOVE for sign in signs)
    )
    if not is_ranking or any(token.kind not in NAMES or token.key not in texts.keys for token in names):
        return None
    return reading_of([names[0].key]) if len({token.key for token in names}) == len(names) else None


def _of_shares(tokens: list[Token], texts: OptionTexts) -> Reading | None:
    """The option of the highest likelihood, where every number is one option's and all add up to a whole."""
    entries: list[str | int] = []
    is_told = False  # in a sentence, where other numbers are of other things
    for token in tokens:
        if token.key in texts.keys and token.kind in NAMES:
            entries += [token.key] if entries[-1:] != [token.key] else []
        elif token.text.isdigit():
            entries.append(int(token.text))
        elif token.text.lower() not in _SAYS_LIKELIHOOD and token.kind not in _BETWEEN:
            is_told = True
    closing = entries.pop() if len(entries) % 2 and isinstance(entries[-1], str) else ""
    keys = [entry for entry in entries if isinstance(entry, str)]
    shares = [entry for entry in entries if isinstance(entry, int)]
    is_paired = all(isinstance(entry, str) != isinstance(after, str) for entry, after in pairwise(entries))
    signs = sum(token.text == "%" for token in tokens)
    is_whole = (
        abs(sum(shares) - _SUM) <= _SLACK
        and signs > 0
        and (not is_told or _is_of_likelihood(tokens, signs - len(shares)))
    )
    if not is_paired or not is_whole or len(keys) != len(shares) or len(keys) < 2:
        return None
    if len(set(keys)) < len(keys) or not set(keys) <= texts.keys or 2 * max(shares) <= _SUM:
        return None
    likeliest_key = keys[shares.index(max(shares))]
    return reading_of([likeliest_key]) if closing in {"", likeliest_key} else None
