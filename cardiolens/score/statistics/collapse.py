"""Category collapse (protocol 8.4): answers that default to a few categories.

Indices are over parsed answers only; `unparsed` is the share of all others.
"""

import numpy as np

from cardiolens.score.statistics.items import Bools, Floats, Ints
from cardiolens.score.statistics.metrics import ratio, without_unparsed

# the flag of 8.4, and the excess over its prevalence from which the most frequent answer counts (16.13)
COLLAPSE_INDEX = 0.3
MODAL_SHARE = 0.8
MODAL_EXCESS = 0.1
EXCESS = 0.05


ENTROPY_DEFICIT = "entropy_deficit"


def of_confusion(confusion: Floats) -> dict[str, Floats]:
    """Indices of matrices (..., gold, predicted), the last predicted column unparsed."""
    table = without_unparsed(confusion)
    gold, called = _shares(table.sum(axis=-1)), _shares(table.sum(axis=-2))
    size = table.shape[-1]
    entropy, gold_entropy = _entropy(called) / np.log(size), _entropy(gold) / np.log(size)
    mode = np.argmax(called, axis=-1)[..., None]
    modal_share = np.take_along_axis(called, mode, axis=-1)[..., 0]
    absorption = _absorption(table, mode)
    excess = modal_share - np.take_along_axis(gold, mode, axis=-1)[..., 0]
    return {
        "entropy": entropy,
        "gold_entropy": gold_entropy,
        ENTROPY_DEFICIT: gold_entropy - entropy,
        "effective_classes": np.exp(_entropy(called)),
        "modal_share": modal_share,
        "modal_excess": excess,
        "absorption": absorption,
        # in proportion to the excess below EXCESS: misses of a rare finding are no collapse
        "collapse_index": absorption * (1 - entropy) * np.clip(excess / EXCESS, 0, 1),
        "shift": 0.5 * np.abs(called - gold).sum(axis=-1),
        "unparsed": ratio(confusion[..., -1].sum(axis=-1), confusion.sum(axis=(-2, -1))),
    }


def is_collapsed(indices: dict[str, Floats], excess_low: float) -> Bools:
    """Return whether indices reach the flag of 8.4 and the interval of the modal excess lies above EXCESS.

    `excess_low` is the interval's lower end (protocol 16.13).
    """
    narrow = (indices["modal_share"] >= MODAL_SHARE) & (indices["modal_excess"] >= MODAL_EXCESS)
    reached = (indices["collapse_index"] >= COLLAPSE_INDEX) | narrow
    return np.asarray(reached & (excess_low > EXCESS))


def of_calls(masks: Ints, calls: Floats, size: int) -> dict[str, Floats]:
    """Indices of multi-select answers: `calls[..., set]` counts each distinct set predicted, a bit mask."""
    parsed_calls = np.where(masks > 0, calls, 0)
    answered = parsed_calls.sum(axis=-1)
    members = (masks[:, None] >> np.arange(size)) & 1  # (set, option)
    picked = parsed_calls @ members.astype(np.float64)
    return {
        "mean_cardinality": ratio(picked.sum(axis=-1), answered),
        "select_all": ratio(parsed_calls[..., masks == 2**size - 1].sum(axis=-1), answered),
        "select_first_only": ratio(parsed_calls[..., masks == 1].sum(axis=-1), answered),
        "modal_set_share": ratio(parsed_calls.max(axis=-1), answered),
        "call_entropy": _entropy(_shares(picked)) / np.log(size),
        "unparsed": ratio(calls.sum(axis=-1) - answered, calls.sum(axis=-1)),
    }


def _absorption(table: Floats, mode: Ints) -> Floats:
    """P(predicted = mode given gold is another class)."""
    into_mode = np.take_along_axis(table, mode[..., None], axis=-1)[..., 0]  # (..., gold)
    of_others = np.arange(table.shape[-1]) != mode
    return ratio((into_mode * of_others).sum(axis=-1), (table.sum(axis=-1) * of_others).sum(axis=-1))


def _shares(counts: Floats) -> Floats:
    return ratio(counts, counts.sum(axis=-1, keepdims=True))


def _entropy(shares: Floats) -> Floats:
    """Entropy of shares (..., class), in nats; an empty class adds nothing."""
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.where(np.isnan(shares).any(axis=-1), np.nan, -(shares * logs).sum(axis=-1))
