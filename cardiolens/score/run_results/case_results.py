"""Cases of images and text: a model's discussions, rationales and steps, accuracy by group, and ROUGE-L."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.benchmarks.medthinkvqa import CaseResponse, field_of
from cardiolens.protocol.dialogue.chain import SAMPLED, Steps
from cardiolens.protocol.dialogue.chain_tables import Step, read_chains, walk
from cardiolens.score.statistics.bootstrap import Interval, percentile, reason_for_none, resampling_weights
from cardiolens.score.verdicts.text_metrics import common_subsequence, tokens
from cardiolens.storage import tables
from cardiolens.storage.schemas import ASKED_BACK, COMPLETIONS, REQUESTS
from cardiolens.study.cohort import Cohort

FEWEST = 5  # cases of a group whose accuracy is given
ALL = "all"
_HEADING = re.compile(r"^[ \t>*#-]*image[ \t]+#?(\d+)[ \t*]*[:.)–-][ \t*]*", re.IGNORECASE | re.MULTILINE)
_BARE_LETTER = re.compile(r"\W*(?:(?:final )?answer(?: is)?\b)?\W*[A-E]\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WrittenDiscussion:
    """The discussion of one case."""

    text: str
    is_cut: bool  # by the limit of its tokens


def discussions_by_case(requests: Path, completions: Path, arm_id: str) -> Mapping[str, WrittenDiscussion]:
    """Return the discussions of an arm by study; a case without one has no entry.

    The arm's prompt has `steps: discussion`, so that the first request of each chain asks for it.
    """
    studies = {row["request_key"]: row["study_id"] for row in _requests(requests, arm_id)}
    return {
        studies[step.chain]: WrittenDiscussion(text, is_cut)
        for step, text, is_cut in _answered_steps(requests, completions, studies)
        if step.stage == 0
    }


def responses_by_case(requests: Path, completions: Path, arm_id: str) -> dict[str, CaseResponse]:
    """Return the responses of one arm by study; a case without a reply has no entry.

    The steps come from chains whose first two replies describe the images and summarise them.
    """
    rows = {row["request_key"]: row for row in _requests(requests, arm_id)}
    columns = ("request_key", "text", "finish_reason", "status")
    replies = {
        row["request_key"]: row
        for row in tables.read(completions, COMPLETIONS, columns).to_pylist()
        if row["request_key"] in rows and row["status"] == "ok"
    }
    stages: dict[str, list[str]] = {}
    for step, text, _ in _answered_steps(requests, completions, rows):
        stages.setdefault(step.chain, []).append(text)
    return {
        row["study_id"]: _response(row["frames"], replies[key], stages.get(key, []))
        for key, row in rows.items()
        if key in replies
    }


def _requests(requests: Path, arm_id: str) -> list[dict[str, Any]]:
    rows = tables.read(requests, REQUESTS, ("arm_id", "study_id", "frames", "request_key"))
    of_arm: list[dict[str, Any]] = rows.filter(pc.equal(rows["arm_id"], arm_id)).to_pylist()
    return of_arm


def _answered_steps(
    requests: Path, completions: Path, keys: Mapping[str, object]
) -> Iterator[tuple[Step, str, bool]]:
    """Yield the answered steps of some chains, each with its text and whether that is cut."""
    chains = {key: chain for key, chain in read_chains(requests).items() if key in keys}
    for step in walk({key: chain for key, chain in chains.items() if isinstance(chain, Steps)}, completions):
        if step.completion is not None and step.completion["status"] == "ok":
            yield step, str(step.completion["text"] or ""), step.completion["finish_reason"] == "length"


def _response(
    frames: Sequence[Mapping[str, Any]], reply: Mapping[str, Any], stages: Sequence[str]
) -> CaseResponse:
    words = "" if reply["finish_reason"] == SAMPLED else explanation_of(reply["text"] or "")
    if len(stages) != 3:  # images, summary, answer
        return CaseResponse(words)
    descriptions = by_image(stages[0], len(frames))
    slots = [frame["idx"] + 1 for frame in frames]
    return CaseResponse(
        words, None if descriptions is None else dict(zip(slots, descriptions, strict=True)), stages[1]
    )


def by_image(text: str, n_images: int) -> list[str] | None:
    """Split a text at its `Image 1:` headings into one description per image; None if they do not match.

    Lines without a heading belong to the image before. A single image needs no heading.
    """
    headings = list(_HEADING.finditer(text))
    if n_images == 1 and not headings:
        return [text.strip()] if text.strip() else None
    if [int(heading[1]) for heading in headings] != list(range(1, n_images + 1)):
        return None
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    return [text[heading.end() : end].strip() for heading, end in zip(headings, ends, strict=True)]


def explanation_of(text: str) -> str:
    """Return the explanation in a reply: of JSON its `explanation`, of a bare letter the empty string."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and "answer" in parsed:
        return str(parsed.get("explanation") or "")
    return "" if _BARE_LETTER.fullmatch(text) else text.strip()


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

    A requested case without a judged reply counts as wrong, as in the benchmark. A group of fewer than FEWEST
    cases has no accuracy.
    """
    answers = verdicts.filter(pc.equal(verdicts["channel"], "answer"))
    for arm in sorted(pc.unique(answers["arm_id"]).to_pylist()):
        groups: dict[tuple[str, str], list[tuple[bool, bool]]] = {(ALL, ALL): []}
        for row in answers.filter(pc.equal(answers["arm_id"], arm)).sort_by("study_id").to_pylist():
            case = bool(row["correct"]), row["parse_status"] not in ("ok", ASKED_BACK)
            for group in ((ALL, ALL), *cohort.studies[row["study_id"]].subgroups.items()):
                groups.setdefault(group, []).append(case)
        for (attribute, name), cases in sorted(
            groups.items(), key=lambda entry: (entry[0][0] != ALL, entry[0])
        ):
            count, hits, n_unread = len(cases), *map(sum, zip(*cases, strict=True))
            accuracy = Interval(100 * hits / count if count >= FEWEST else math.nan, math.nan, math.nan)
            if not reason_for_none(count):
                right = np.array([is_right for is_right, _ in cases])
                values = 100 * (resampling_weights(count, resamples, seed) @ right) / count
                accuracy = percentile(values, patients=count)
            ends = accuracy.value, accuracy.low, accuracy.high
            yield CaseScore(arm, attribute, name, *ends, count, hits, n_unread)


def rouge_l(reference: str, text: str) -> float:
    """ROUGE-L (Lin 2004): F1 of the longest common subsequence of words, 0..1; 0 if a text has no words."""
    reference_words, words = tokens(reference), tokens(text)
    common = common_subsequence(reference_words, words)
    return 2 * common / (len(reference_words) + len(words)) if common else 0.0


def step_overlap(record: Mapping[str, object], steps: Mapping[str, object]) -> tuple[float, float]:
    """ROUGE-L of step 1 (mean over images with a caption) and of step 2; NaN if either text is missing."""
    descriptions = steps.get("step1_per_image_findings")
    texts = list(map(str, descriptions)) if isinstance(descriptions, list) else []
    captions = [record.get(field_of(number, "caption")) for number in range(1, len(texts) + 1)]
    found = [rouge_l(str(caption), text) for caption, text in zip(captions, texts, strict=True) if caption]
    findings, summary = record.get("IMAGING_FINDINGS"), steps.get("step2_integrated_summary")
    second = rouge_l(str(findings), str(summary)) if findings and summary is not None else math.nan
    return float(np.mean(found)) if found else math.nan, second
