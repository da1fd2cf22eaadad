"""Options of structured decoding, sampling and log-probabilities for one request."""

from cardiolens.config.model import Sampling
from cardiolens.inference.engine.ask import Ask

_MAX_LOGPROBS = 20  # per token; vLLM's limit unless configured (max_logprobs)


def structured_output_args(ask: Ask) -> dict[str, str | list[str]]:
    """Return vLLM's structured output arguments: legal reply, text that ends in one, JSON, or frame names."""
    constraint = ask.constraint
    if constraint.naming is not None:
        return {"regex": constraint.naming.pattern}
    if constraint.schema:
        return {"json": constraint.schema}
    return {"regex": constraint.pattern} if constraint.line else {"choice": list(constraint.legal)}


def sampling_of(sampling: Sampling, ask: Ask) -> tuple[float, int | None]:
    """Return temperature and seed of a request: its own if it is one of several samples, else the model's."""
    temperature = sampling.temperature if ask.temperature is None else ask.temperature
    return temperature, sampling.seed if ask.seed is None else ask.seed


def must_be_legal_reply(ask: Ask) -> bool:
    """Return whether the whole reply must be legal, so that its tokens give option probabilities."""
    return bool(ask.constraint.legal) and not ask.constraint.line


def alternatives(ask: Ask) -> int:
    """Return the number of tokens that may come next in a direct reply.

    Each letter with and without a leading space, plus four for comma, space and end; at most 20.
    """
    letters = {letter for reply in ask.constraint.legal for letter in reply if letter.isalpha()}
    return min(2 * len(letters) + 4, _MAX_LOGPROBS)


def one_letter(ask: Ask) -> bool:
    """Return whether each legal reply is one letter, so that the first token gives all probabilities."""
    return must_be_legal_reply(ask) and all(len(reply) == 1 for reply in ask.constraint.legal)
