"""Word overlap of a report with its reference: the counts behind ROUGE-L and BLEU-4."""

import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+")
_ORDERS = (1, 2, 3, 4)


def tokens(text: str) -> list[str]:
    """Lower-case words without punctuation."""
    return _WORD.findall(text.lower())


def common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    best = [0] * (len(second) + 1)
    for word in first:
        diagonal = 0
        for at, word_of_second in enumerate(second, start=1):
            above = best[at]
            best[at] = diagonal + 1 if word == word_of_second else max(above, best[at - 1])
            diagonal = above
    return best[-1]


def overlap_counts(reference: str, hypothesis: str) -> dict[str, float]:
    """Count `lcs`, both lengths, and for n = 1..4 clipped `match_n` and all `gram_n` of the hypothesis."""
    reference_words, words = tokens(reference), tokens(hypothesis)
    counts: dict[str, float] = {
        "lcs": common_subsequence(reference_words, words),
        "reference_words": len(reference_words),
        "words": len(words),
    }
    for order in _ORDERS:
        grams, reference_grams = _grams(words, order), _grams(reference_words, order)
        counts[f"match_{order}"] = sum((grams & reference_grams).values())
        counts[f"gram_{order}"] = sum(grams.values())
    return counts


def _grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(order)), strict=False))
