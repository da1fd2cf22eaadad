"""Scores of cases of images and text: accuracy by group of cases, and ROUGE-L of steps 1 and 2."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.benchmarks.medthinkvqa import field_of
from cardiolens.score.statistics.bootstrap import Interval, percentile, reason_for_none, resampling_weights
from cardiolens.score.verdicts.overlap import common_subsequence, tokens
from cardiolens.storage.schemas import ASKED_BACK
from cardiolens.study.cohort import Cohort

FEWEST = 5  # cases of a group whose accuracy is given
ALL = "all"


@dataclass(frozen=True, slots=True)
class CaseScore:
    """Accuracy of one arm on one group of cases, in percent with a 95 % interval; NaN where undefined."""

    arm_id: str
    attribute: str
    group: str
    accuracy: float
    low: float
    high: float
    n_cases: int
    n_right: int
    n_unread: int  # replies that could not be read, which count as wrong


def case_scores(verdicts: pa.Table, cohort: Cohort, *, resamples: int, seed: int) -> Iterator[CaseScore]:
    """Accuracy of every arm on all cases and on each group; the bootstrap resamples cases.

    A requested case without a judged reply counts as wrong, as in the benchmark.
    """
    answers = verdicts.filter(pc.equal(verdicts["channel"], "answer"))
    for arm in sorted(pc.unique(answers["arm_id"]).to_pylist()):
        rows = answers.filter(pc.equal(answers["arm_id"], arm)).sort_by("study_id").to_pylist()
        right = np.array([bool(row["correct"]) for row in rows])
        unread = np.array([row["parse_status"] not in ("ok", ASKED_BACK) for row in rows])
        for (attribute, group), members in _groups([row["study_id"] for row in rows], cohort).items():
            yield _score((arm, attribute, group), right[members], unread[members], resamples, seed)


def _groups(studies: list[str], cohort: Cohort) -> dict[tuple[str, str], list[int]]:
    """Row numbers of cases by attribute and group; the group of all cases comes first."""
    places_by_group: dict[tuple[str, str], list[int]] = {(ALL, ALL): list(range(len(studies)))}
    for place, study in enumerate(studies):
        for attribute, group in cohort.studies[study].subgroups.items():
            places_by_group.setdefault((attribute, group), []).append(place)
    return dict(sorted(places_by_group.items(), key=lambda entry: (entry[0][0] != ALL, entry[0])))


def _score(
    labels: tuple[str, str, str], right: np.ndarray, unread: np.ndarray, resamples: int, seed: int
) -> CaseScore:
    arm, attribute, group = labels
    count, hits, n_unread = len(right), int(right.sum()), int(unread.sum())
    if count < FEWEST:
        nan = float("nan")
        return CaseScore(arm, attribute, group, nan, nan, nan, count, hits, n_unread)
    accuracy = Interval(100 * hits / count, math.nan, math.nan)
    if not reason_for_none(count):
        weights = resampling_weights(count, resamples, seed)
        accuracy = percentile(100 * (weights @ right) / count, patients=count)
    return CaseScore(
        arm, attribute, group, accuracy.value, accuracy.low, accuracy.high, count, hits, n_unread
    )


def rouge_l(reference: str, text: str) -> float:
    """ROUGE-L (Lin 2004): F1 of the longest common subsequence of words, 0..1; 0 if a text has no words."""
    reference_words, words = tokens(reference), tokens(text)
    common = common_subsequence(reference_words, words)
    return 2 * common / (len(reference_words) + len(words)) if common else 0.0


def step_overlap(record: Mapping[str, object], steps: Mapping[str, object]) -> tuple[float, float]:
    """ROUGE-L of step 1 (mean over images with a caption) and of step 2; NaN if either text is missing."""
    descriptions = steps.get("step1_per_image_findings")
    texts = [str(text) for text in descriptions] if isinstance(descriptions, list) else []
    captions = [record.get(field_of(number, "caption")) for number in range(1, len(texts) + 1)]
    pairs = [(caption, text) for caption, text in zip(captions, texts, strict=True) if caption]
    first = (
        float(np.mean([rouge_l(str(reference), text) for reference, text in pairs]))
        if pairs
        else float("nan")
    )
    findings, summary = record.get("IMAGING_FINDINGS"), steps.get("step2_integrated_summary")
    second = rouge_l(str(findings), str(summary)) if findings and summary is not None else float("nan")
    return first, second
