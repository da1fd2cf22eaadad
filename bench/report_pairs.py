"""What text metrics and entity scores say of 50 contradictions and 50 paraphrases of report sentences.

    python -m bench.report_pairs                                   # ROUGE-L, BLEU-1, entities by the rules
    python -m bench.report_pairs encoder=FOLDER layer=6            # and BERTScore with that encoder
    python -m bench.report_pairs model=qwen3_vl_8b                 # and the judge of reports

The pairs (`bench/report_pairs.yaml`) were written before any metric was run on them.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from bench.report_text import Pair as EntityPair
from cardiolens.config.compose import read_spec
from cardiolens.config.sweep import StatisticsSpec
from cardiolens.curation.report_judge.report_errors import ReportPair, judge_reports
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.report_text.extract import extract
from cardiolens.score.verdicts.text_metrics import open_text_metrics, overlap_counts

PAIRS = Path(__file__).with_name("report_pairs.yaml")
CATALOGUE = load_catalogue("openprotocol-1")


@dataclass(frozen=True)
class Sentence:
    """A sentence with one that says the contrary and one that says the same."""

    sequence: str
    reference: str
    contrary: str
    same: str


Score = Callable[[str, str, str], float]  # of sequence, reference and text
Scores = Mapping[str, Sequence[float]]  # by kind, `contrary` and `same`; NaN: undefined


def sentences() -> list[Sentence]:
    """The sentences of the file."""
    return [Sentence(**entry) for entry in yaml.safe_load(PAIRS.read_text(encoding="utf-8"))]


def rouge_l(reference: str, text: str) -> float:
    """F1 of the longest common subsequence of words."""
    counts = overlap_counts(reference, text)
    return 2 * counts["lcs"] / (counts["reference_words"] + counts["words"])


def bleu_1(reference: str, text: str) -> float:
    """Share of the words of a text that its reference has."""
    counts = overlap_counts(reference, text)
    return counts["match_1"] / counts["gram_1"]


def entity_f1(sequence: str, reference: str, text: str) -> float:
    """F1 of the entities that the rules read in both; NaN where they read none in either."""
    first, second = entities(sequence, reference, text)
    return 2 * len(first & second) / whole if (whole := len(first) + len(second)) else float("nan")


def entities(sequence: str, reference: str, text: str) -> EntityPair:
    """What the rules read in both."""
    return set(extract(reference, sequence, CATALOGUE)), extract(text, sequence, CATALOGUE)


def by_kind(score: Score, pairs_of_file: Iterable[Sentence]) -> Scores:
    """Scores of both kinds of pairs, in the order of the file."""
    pairs_of_file = list(pairs_of_file)
    return {
        "contrary": [score(entry.sequence, entry.reference, entry.contrary) for entry in pairs_of_file],
        "same": [score(entry.sequence, entry.reference, entry.same) for entry in pairs_of_file],
    }


def line(name: str, scores: Scores) -> str:
    """A row of the table: means, and how often the contrary scores as high as the same or higher."""
    contrary, same = (np.asarray(scores[kind], float) for kind in ("contrary", "same"))
    is_defined = ~np.isnan(contrary) & ~np.isnan(same)
    wrong = int((contrary[is_defined] >= same[is_defined]).sum())
    means = " | ".join(f"{np.nanmean(values):.3f}" for values in (contrary, same))
    return f"| {name} | {means} | {wrong} of {is_defined.sum()} |"


def bertscore(folder: Path, layer: int) -> Score:
    """F1 of BERTScore with an encoder, as a run computes it."""
    options = {"report_metrics": ["bertscore"], "bertscore_model": folder, "bertscore_layer": layer}
    (metric,) = open_text_metrics(StatisticsSpec.model_validate(options))
    return lambda sequence, reference, text: metric([(reference, text)])[0]["bertscore_f1"]


def judged(pairs_of_file: Sequence[Sentence], words: Sequence[str]) -> str:
    """How many pairs of either kind a model finds an error in, in both orders."""
    sweep = read_spec(["tracker=none", *words])
    pairs = [
        ReportPair(entry.reference, text, fields_of(entry.sequence))
        for entry in pairs_of_file
        for text in (entry.contrary, entry.same)
    ]
    judgements = judge_reports(sweep, pairs)
    kinds = {"contrary": judgements[::2], "same": judgements[1::2]}
    counts = [
        f"{sum(bool(judgement and judgement.errors) for judgement in of_kind)} of {len(of_kind)} {kind} with "
        f"an error, {sum(judgement is None for judgement in of_kind)} unusable"
        for kind, of_kind in kinds.items()
    ]
    return "; ".join(counts)


def fields_of(sequence: str) -> tuple[str, ...]:
    """The fields of a sequence's report."""
    own = [entry for entry in CATALOGUE.subtasks.values() if entry.sequence == sequence]
    return tuple(entry.field for entry in own if entry.answer_type != "report")


def main() -> None:
    """Print the table."""
    words = [word for word in sys.argv[1:] if not word.startswith(("encoder=", "layer="))]
    options = dict(word.split("=", 1) for word in sys.argv[1:] if word not in words)
    pairs_of_file = sentences()
    print("| metric | mean, contrary | mean, same | contrary scores as high or higher |\n|---|---|---|---|")
    overlaps: dict[str, Score] = {
        "ROUGE-L": lambda _, reference, text: rouge_l(reference, text),
        "BLEU-1": lambda _, reference, text: bleu_1(reference, text),
    }
    if "encoder" in options:
        overlaps["BERTScore F1"] = bertscore(Path(options["encoder"]), int(options.get("layer", 6)))
    for name, score in (overlaps | {"entity F1, by the rules": entity_f1}).items():
        print(line(name, by_kind(score, pairs_of_file)))
    read = [bool(entities(entry.sequence, entry.reference, "")[0]) for entry in pairs_of_file]
    print(f"\nthe rules read an entity in {sum(read)} of {len(read)} references")
    for kind in ("contrary", "same"):
        pairs = [entities(entry.sequence, entry.reference, getattr(entry, kind)) for entry in pairs_of_file]
        print(
            f"{kind}: the same entities in {sum(first == second for first, second in pairs)} of {len(pairs)}"
        )
    if words:
        print(judged(pairs_of_file, words))


if __name__ == "__main__":
    main()
