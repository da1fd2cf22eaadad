"""Estimate of a model's seconds on GPUs from declared rates: an order of magnitude."""

from dataclasses import dataclass

from cardiolens.inference.placement.footprint import Candidate


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one GPU: assumptions for a data-centre GPU of the 80 GiB class, not measured.

    To calibrate, take `tokens.computed`, `tokens.output` and `seconds.generate` from the manifest of a
    finished run: one with short replies gives `prefill`, one with long replies `decode`.
    """

    prefill: float = 80_000.0  # prompt tokens per second x billions of active parameters
    decode: float = 16_000.0  # output tokens per second x billions of active parameters, batched
    load_seconds: float = 60.0  # of an engine start, without reading the weights
    load_gib_per_second: float = 1.0


def work_seconds(candidate: Candidate, rates: Rates) -> float:
    """Seconds of one GPU for the work left: an upper bound, without cached prefixes and with full replies."""
    tokens = candidate.prompt_tokens / rates.prefill + candidate.output_tokens / rates.decode
    return tokens * candidate.billions


def load_seconds(candidate: Candidate, rates: Rates) -> float:
    """Seconds of one engine start."""
    if candidate.needs != "gpu":
        return 0.0
    return rates.load_seconds + candidate.weight_gib / rates.load_gib_per_second
