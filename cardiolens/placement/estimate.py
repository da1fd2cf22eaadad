"""Estimated time of a model's work on GPUs: arithmetic on declared rates, an order of magnitude."""

from dataclasses import dataclass

from cardiolens.placement.footprint import Candidate


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one GPU. Our assumptions for a data-centre GPU of the 80 GiB class, measured nowhere yet.

    To calibrate: of a finished run's manifest take `tokens.computed`, `tokens.output` and
    `seconds.generate`; a run whose replies are short gives `prefill`, one with long replies `decode`.
    """

    prefill: float = 80_000.0  # prompt tokens a second x billions of active parameters
    decode: float = 16_000.0  # output tokens a second x billions of active parameters, batched
    load_seconds: float = 60.0  # of an engine start, besides reading the weights
    load_gib_per_second: float = 1.0


def work_seconds(candidate: Candidate, rates: Rates) -> float:
    """Seconds of one GPU for the work that is left, as if no prefix were cached and every reply full."""
    tokens = candidate.prompt_tokens / rates.prefill + candidate.output_tokens / rates.decode
    return tokens * candidate.billions


def load_seconds(candidate: Candidate, rates: Rates) -> float:
    """Seconds of one engine start."""
    if candidate.needs != "gpu":
        return 0.0
    return rates.load_seconds + candidate.weight_gib / rates.load_gib_per_second
