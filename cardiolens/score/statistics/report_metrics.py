"""Report scores of protocol 3.3 as arithmetic on sums, for one cohort or many resamples at once."""

from collections.abc import Collection, Mapping

import numpy as np

from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio

Sums = Mapping[str, Floats]

ENTITY_COUNTS = (
    *("tp", "fp", "fn", "abnormal_tp", "abnormal_fp", "abnormal_fn"),
    *("gates", "contradicted", "fields", "fields_equal"),
)
TEXT_COUNTS = (
    *("lcs", "reference_words", "words", "reports", "rouge_l"),
    *(f"{kind}_{n}" for kind in ("match", "gram") for n in (1, 2, 3, 4)),
)

# means over reports of the values of optional metrics, where these are enabled
_PLUGGED = ("meteor", "bertscore_precision", "bertscore_recall", "bertscore_f1")


def optional_metrics(counts: Collection[str]) -> tuple[str, ...]:
    """Return the optional metrics among the names of counts; those of other packages are `package:name`."""
    return (*(name for name in _PLUGGED if name in counts), *sorted(name for name in counts if ":" in name))


def of_fields(sums: Sums) -> dict[str, Floats]:
    """Scores of the structured fields: micro over reports."""
    return of_entities(sums) | {"field_match": ratio(sums["fields_equal"], sums["fields"])}


def of_entities(sums: Sums) -> dict[str, Floats]:
    """Entity precision, recall and F1, F1 of abnormal entities, and three error rates."""
    return {
        "entity_f1": _f1(sums, ""),
        "entity_precision": _precision(sums),
        "entity_recall": _recall(sums),
        "abnormal_f1": _f1(sums, "abnormal_"),
        "hallucination": ratio(sums["abnormal_fp"], sums["abnormal_tp"] + sums["abnormal_fp"]),
        "omission": ratio(sums["abnormal_fn"], sums["abnormal_tp"] + sums["abnormal_fn"]),
        "contradiction": ratio(sums["contradicted"], sums["gates"]),
    }


def of_text(sums: Sums) -> dict[str, Floats]:
    """Entity scores of the text, mean ROUGE-L F1 over reports, corpus BLEU-4, and the optional ones."""
    entities = {f"text_{name}": value for name, value in of_entities(sums).items()}
    means = {name: ratio(sums[name], sums["reports"]) for name in ("rouge_l", *optional_metrics(sums))}
    return entities | means | {"bleu_4": bleu_4(sums)}


def rouge_l(lcs: Floats, words: Floats, reference_words: Floats) -> Floats:
    """ROUGE-L F1 of single reports (Lin 2004); NaN where both texts are empty, 0 where one is."""
    return ratio(2 * lcs, words + reference_words)


def bleu_4(sums: Sums) -> Floats:
    """Corpus BLEU-4 (Papineni et al. 2002) with add-one smoothing for n > 1 (Lin and Och 2004)."""
    words, reference = sums["words"], sums["reference_words"]
    precisions = [ratio(sums["match_1"], sums["gram_1"])]
    precisions += [(sums[f"match_{n}"] + 1) / (sums[f"gram_{n}"] + 1) for n in (2, 3, 4)]
    brevity = np.exp(np.minimum(0.0, 1 - ratio(reference, words)))
    score = brevity * np.prod(np.stack(precisions), axis=0) ** 0.25
    return np.where(reference == 0, np.nan, np.where(words == 0, 0.0, score))


def _f1(sums: Sums, kind: str) -> Floats:
    right = sums[f"{kind}tp"]
    return ratio(2 * right, 2 * right + sums[f"{kind}fp"] + sums[f"{kind}fn"])


def _precision(sums: Sums) -> Floats:
    return _one_side(sums["tp"], sums["fp"], sums["fn"])


def _recall(sums: Sums) -> Floats:
    return _one_side(sums["tp"], sums["fn"], sums["fp"])


def _one_side(right: Floats, wrong: Floats, other: Floats) -> Floats:
    """right / (right + wrong); 0 where only this side is empty, NaN where both are."""
    value = np.nan_to_num(ratio(right, right + wrong))
    return np.where(right + wrong + other == 0, np.nan, value)
