"""Word overlap of a report with its reference, and optional metrics: METEOR, BERTScore, and those of others.

An optional metric maps pairs of a reference and a text to named values of 0..1, one set per pair, which are
averaged over reports. If either text has no words, the values are 0.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from cardiolens.base.errors import InputError
from cardiolens.config.plugins import PluginError, blamed, is_word, make
from cardiolens.config.sweep import StatisticsSpec

Pairs = Sequence[tuple[str, str]]
TextMetric = Callable[[Pairs], list[dict[str, float]]]

_BERTSCORE = ("bertscore_precision", "bertscore_recall", "bertscore_f1")
_LONGEST = 512  # tokens of a text that a BERT-like encoder reads
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


class ReportMetric(Protocol):
    """A metric of another package, an entry point of `cardiolens.report_metrics`, made without arguments."""

    def score(self, pairs: Pairs) -> Sequence[float]:
        """Return one value of 0..1 for each pair of a reference and a text; either may be empty."""
        ...


def open_text_metrics(statistics: StatisticsSpec) -> list[TextMetric]:
    """Open the metrics of a configuration; InputError if a package, data or a model is missing."""
    opening: dict[str, Callable[[StatisticsSpec], TextMetric]] = {
        "meteor": _open_meteor,
        "bertscore": _open_bertscore,
    }
    return [
        _open_plugged(name) if is_word(name) else opening[name](statistics)
        for name in statistics.report_metrics
    ]


def _open_plugged(word: str) -> TextMetric:
    """Open a metric of another package; its values are called `package:name`."""
    name = word.partition("@")[0].replace(".", ":")
    metric: ReportMetric = make("report_metrics", word, ReportMetric)

    def scored(pairs: Pairs) -> list[dict[str, float]]:
        with blamed(word):
            values = [float(value) for value in metric.score(pairs)]
        if len(values) != len(pairs):
            raise PluginError(
                f"plugin {word}: gives {len(values)} values for {len(pairs)} reports; its maker must "
                "correct it"
            )
        if strange := [value for value in values if not 0 <= value <= 1]:
            raise PluginError(
                f"plugin {word}: gives {strange[0]}, which is not within 0..1; its maker must correct it"
            )
        return [{name: value} for value in values]

    return scored


def _open_meteor(_: StatisticsSpec) -> TextMetric:
    """METEOR (Banerjee and Lavie 2005) by NLTK with its defaults: exact, stem and synonym matches."""
    try:
        from nltk.corpus import wordnet
        from nltk.translate.meteor_score import single_meteor_score
    except ImportError:
        raise InputError(
            "statistics.report_metrics: meteor needs NLTK; run pip install 'cardiolens[text-metrics]', or "
            "leave it out"
        ) from None
    try:
        wordnet.ensure_loaded()
    except LookupError:
        raise InputError(
            "statistics.report_metrics: meteor needs NLTK's WordNet data; run python -m nltk.downloader "
            "wordnet, or bring corpora/wordnet in a folder that NLTK_DATA names, or leave it out"
        ) from None

    def meteor(reference: str, text: str) -> float:
        reference_words, words = tokens(reference), tokens(text)
        return float(single_meteor_score(reference_words, words)) if reference_words and words else 0.0

    return lambda pairs: [{"meteor": meteor(*pair)} for pair in pairs]


def _open_bertscore(statistics: StatisticsSpec) -> TextMetric:
    folder, layer = statistics.bertscore_model, statistics.bertscore_layer
    if folder is None or layer is None or not (folder / "config.json").is_file():
        raise InputError(
            "statistics.report_metrics: bertscore needs the folder of an encoder on this machine, got "
            f"bertscore_model={folder}, and the layer to compare, got bertscore_layer={layer} (17 for "
            "roberta-large); give both, or leave it out"
        )
    try:
        encoder = _Encoder(folder, layer)
    except ImportError:
        raise InputError(
            "statistics.report_metrics: bertscore needs torch and transformers; use an environment of "
            "requirements/setup.sh, or leave it out"
        ) from None
    return lambda pairs: [dict(zip(_BERTSCORE, encoder.compare(*pair), strict=True)) for pair in pairs]


class _Encoder:
    """BERTScore (Zhang et al. 2020) without IDF weights and without rescaling, as package bert-score has it.

    Each token is matched with the nearest of the other text by the cosine of one hidden layer; the marks of
    begin and end may be matched but do not count.
    """

    def __init__(self, folder: Path, layer: int) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = AutoModel.from_pretrained(folder, local_files_only=True).eval().to(self._device)
        if not 0 <= layer <= model.config.num_hidden_layers:
            raise InputError(
                f"statistics.bertscore_layer: {layer} is no layer of {folder}; give one of 0..."
                f"{model.config.num_hidden_layers}"
            )
        self._model: Any = model
        self._layer = layer

    def compare(self, reference: str, text: str) -> tuple[float, float, float]:
        """Precision, recall and F1 of a text."""
        (reference_vectors, reference_mask), (text_vectors, text_mask) = (
            self._embed(reference),
            self._embed(text),
        )
        if not (reference_mask.any() and text_mask.any()):
            return 0.0, 0.0, 0.0
        similarity = text_vectors @ reference_vectors.T
        precision = float(similarity.max(dim=1).values[text_mask].mean())
        recall = float(similarity.max(dim=0).values[reference_mask].mean())
        return precision, recall, 2 * precision * recall / (precision + recall)

    def _embed(self, text: str) -> tuple[Any, Any]:
        """Normalised vectors (token, width) of a text, and which tokens count."""
        import torch

        longest = getattr(self._model.config, "max_position_embeddings", _LONGEST)
        limit = min(self._tokenizer.model_max_length, _LONGEST, int(longest))
        inputs = self._tokenizer(
            text, return_tensors="pt", truncation=True, max_length=limit, return_special_tokens_mask=True
        ).to(self._device)
        mask = ~inputs.pop("special_tokens_mask")[0].bool()
        with torch.inference_mode():
            hidden = self._model(**inputs, output_hidden_states=True).hidden_states[self._layer][0]
        return torch.nn.functional.normalize(hidden.float(), dim=-1), mask
