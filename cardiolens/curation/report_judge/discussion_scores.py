"""Scores of judged case discussions: correct sentences by section, and value to learners."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cardiolens.benchmarks.judges import Discussion, Rating
from cardiolens.protocol.prompts.case_prompts import SECTIONS, VALUES
from cardiolens.score.statistics.bootstrap import Interval, cluster_interval, cluster_weights
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio


@dataclass(frozen=True, slots=True)
class DiscussionScore:
    """One score with a 95 % interval over cases: the share of correct sentences, or the mean of a value."""

    label: str
    n_cases: int
    n: int  # sentences, or discussions
    score: Interval


def discussion_scores(judged: Sequence[tuple[Discussion, Rating]]) -> Iterator[DiscussionScore]:
    """Yield the share of correct sentences (0..1) of each section and of all, then each mean value (0..2)."""
    for section in (*SECTIONS, "all sections"):
        flags = [
            [
                correct
                for (name, _), correct in zip(discussion.sentences, rating.correct, strict=True)
                if section in (name, "all sections")
            ]
            for discussion, rating in judged
        ]
        yield _score(section, judged, [sum(own) for own in flags], [len(own) for own in flags])
    for value in VALUES:
        yield _score(value, judged, [rating.values[value] for _, rating in judged], [1] * len(judged))


def _score(
    label: str, judged: Sequence[tuple[Discussion, Rating]], sums: Sequence[int], counts: Sequence[int]
) -> DiscussionScore:
    """Return the ratio of both sums; the bootstrap resamples cases with all of their discussions."""
    numbers, places = np.unique([discussion.case for discussion, _ in judged], return_inverse=True)
    totals: Floats = np.zeros((len(numbers), 2))
    np.add.at(totals, places, np.column_stack([sums, counts]).reshape(-1, 2))
    resampled = cluster_weights(len(numbers)) @ totals
    interval = cluster_interval(ratio(resampled[:, 0], resampled[:, 1]), len(numbers))
    return DiscussionScore(label, len(numbers), sum(counts), interval)
