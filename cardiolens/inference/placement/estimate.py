"""Estimate a model's seconds on GPUs from declared rates; accurate to an order of magnitude."""

from dataclasses import dataclass

from cardiolens.inference.placement.footprint import Candidate

REPLY_SHARE = 0.4
"""Expected length of a free reply, as a share of the tokens that it may have: an assumption. Public
measurements have .06, .24, .42 and .76 for four models that described photographs in at most 256 tokens
(bayis.co.uk, "Model Choice Determines VLM Inference Cost")."""

CHOICE_TOKENS = 4
"""Expected length of a reply that is an option: a letter and the end, or a few letters."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one GPU: assumptions for a data-centre GPU of the 80 GiB class, not measurements.

    To calibrate, take `tokens.computed`, `tokens.output` and `seconds.generate` from the manifest of a
    finished run: a run with short replies gives `prefill`, a run with long replies gives `decode`. A run
    tells after its first minutes by what factor both are off.
    """

    prefill: float = 80_000.0  # prompt tokens per second x billions of active parameters
    decode: float = 16_000.0  # output tokens per second x billions of active parameters, batched
    load_seconds: float = 60.0  # per engine start, without reading the weights
    load_gib_per_second: float = 1.0
    encoder_billions: float = 0.675  # parameters of Qwen2.5-VL's vision encoder, by vLLM's recipes
    patches: float = (
        4.0  # that the encoder reads per token of a frame: Qwen, Gemma 3 and InternVL merge 2 x 2
    )


def work_seconds(candidate: Candidate, rates: Rates) -> float:
    """Return one GPU's expected seconds for the remaining work: beginnings and frames computed once."""
    if candidate.computed_tokens is None:
        return most_seconds(candidate, rates)
    replies = candidate.output_tokens if candidate.reply_tokens is None else candidate.reply_tokens
    tokens = candidate.computed_tokens / rates.prefill + replies / rates.decode
    encoding = candidate.encoder_tokens * rates.patches * rates.encoder_billions / rates.prefill
    return tokens * candidate.billions + encoding


def most_seconds(candidate: Candidate, rates: Rates) -> float:
    """Return one GPU's seconds for the remaining work at most: no cached prefixes, full replies."""
    tokens = candidate.prompt_tokens / rates.prefill + candidate.output_tokens / rates.decode
    return tokens * candidate.billions


def load_seconds(candidate: Candidate, rates: Rates) -> float:
    """Return the seconds of one engine start; 0 without GPUs."""
    if candidate.needs != "gpu":
        return 0.0
    return rates.load_seconds + candidate.weight_gib / rates.load_gib_per_second
