"""Estimate a model's seconds on GPUs from declared rates; accurate to an order of magnitude."""

from dataclasses import dataclass

from cardiolens.inference.placement.footprint import Candidate


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one GPU: assumptions for a data-centre GPU of the 80 GiB class, not measurements.

    To calibrate, take `tokens.computed`, `tokens.output` and `seconds.generate` from the manifest of a
    finished run: a run with short replies gives `prefill`, a run with long replies gives `decode`.
    """

    prefill: float = 80_000.0  # prompt tokens per second x billions of active parameters
    decode: float = 16_000.0  # output tokens per second x billions of active parameters, batched
    load_seconds: float = 60.0  # per engine start, without reading the weights
    load_gib_per_second: float = 1.0


def work_seconds(candidate: Candidate, rates: Rates) -> float:
    """Return one GPU's seconds for the remaining work: an upper bound, no cached prefixes, full replies."""
    tokens = candidate.prompt_tokens / rates.prefill + candidate.output_tokens / rates.decode
    return tokens * candidate.billions


def load_seconds(candidate: Candidate, rates: Rates) -> float:
    """Return the seconds of one engine start; 0 without GPUs."""
    if candidate.needs != "gpu":
        return 0.0
    return rates.load_seconds + candidate.weight_gib / rates.load_gib_per_second
