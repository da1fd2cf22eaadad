"""What structured decoding is told about a request."""

import math
from collections.abc import Mapping

from cardiolens.engine.ask import Ask

_MOST = 20  # log-probabilities that vLLM gives a token unless configured


def bound(ask: Ask) -> dict[str, str | list[str]]:
    """One of the legal replies, or any text that ends in one, in the terms of vLLM."""
    held = ask.constraint
    return {"regex": held.pattern} if held.reasons_first else {"choice": list(held.legal)}


def direct(ask: Ask) -> bool:
    """Whether the whole reply is a legal one, so that its tokens tell how probable every option was."""
    return bool(ask.constraint.legal) and not ask.constraint.reasons_first


def alternatives(ask: Ask) -> int:
    """How many tokens may come next in a direct reply: letters with and without a space, comma, end."""
    letters = {letter for reply in ask.constraint.legal for letter in reply if letter.isalpha()}
    return min(2 * len(letters) + 4, _MOST)


def one_letter(ask: Ask) -> bool:
    """Whether the reply is one letter, so that its first token tells the probability of every legal reply."""
    return direct(ask) and all(len(reply) == 1 for reply in ask.constraint.legal)


def option_logprobs(first_token: Mapping[str, float], legal: tuple[str, ...]) -> dict[str, float]:
    """Log-probability of each legal letter, among the legal ones: decoding masks all others before."""
    return {
        letter: first_token[letter] for letter in legal if math.isfinite(first_token.get(letter, math.nan))
    }
