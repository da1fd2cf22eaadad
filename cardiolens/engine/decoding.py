"""What structured decoding is told about a request."""

import math
from collections.abc import Mapping

from cardiolens.engine.ask import Ask
from cardiolens.prompts.legal import last_line_pattern


def bound(ask: Ask) -> dict[str, str | list[str]]:
    """One of the legal replies, or any text that ends in one, in the terms of vLLM."""
    return {"regex": last_line_pattern(ask.legal)} if ask.reasons_first else {"choice": list(ask.legal)}


def one_letter(ask: Ask) -> bool:
    """Whether the reply is one letter, so that its first token tells the probability of every legal reply."""
    return bool(ask.legal) and not ask.reasons_first and all(len(reply) == 1 for reply in ask.legal)


def option_logprobs(first_token: Mapping[str, float], legal: tuple[str, ...]) -> dict[str, float]:
    """Log-probability of each legal letter, among the legal ones: decoding masks all others before."""
    return {
        letter: first_token[letter] for letter in legal if math.isfinite(first_token.get(letter, math.nan))
    }
