"""The submission file of MedThinkVQA: written from predictions, and checked line by line (protocol 12)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.medthinkvqa import LETTERS, PREDICTION, records

NAME = "medthinkvqa_test_submission.jsonl"
_STEPS = {
    "step1_per_image_findings": list,
    "step2_integrated_summary": str,
    "step3_differential_reasoning": str,
}

_LEGAL_STEPS = (
    "step1_per_image_findings (list of texts), step2_integrated_summary (text) and "
    "step3_differential_reasoning (text)"
)


@dataclass(frozen=True, slots=True)
class CaseResponse:
    """A model's response to a case besides its letter; steps only if they were requested."""

    rationale: str = ""
    images: Mapping[int, str] | None = None  # findings of each image shown, by its slot from 1
    summary: str | None = None

    def steps(self, n_images: int) -> dict[str, object]:
        """Return `prediction_twi` of a case; an image that was not shown gets empty findings."""
        if self.summary is None:
            return {}
        answers: dict[str, object] = {"step2_integrated_summary": self.summary}
        answers["step3_differential_reasoning"] = self.rationale
        if self.images is None:
            return answers
        return {"step1_per_image_findings": [self.images.get(k + 1, "") for k in range(n_images)]} | answers


def write_submission(
    path: Path, source: Source, predictions: Mapping[str, str], responses: Mapping[str, CaseResponse]
) -> None:
    """Write every record, unchanged and in order, with its prediction; InputError for a case without one.

    `predictions` and `responses` are by study name. No letter is guessed: a case with an
    unreadable reply counts as one without a prediction.
    """
    lines, file = [], source.files[0]
    for number, record in records(source):
        name = source.name_of(number)
        if predictions.get(name) not in LETTERS:
            raise InputError(
                f"{file}:{number}: prediction is missing; expected one of {', '.join(LETTERS)} for "
                "every case; ask again with answer_format=choice, which leaves no reply unreadable"
            )
        words = responses.get(name, CaseResponse())
        added: dict[str, object] = {"prediction": predictions[name], "prediction_rationale": words.rationale}
        if steps := words.steps(record["image_count"]):
            added["prediction_twi"] = steps
        lines.append(json.dumps({**record, **added}, ensure_ascii=False) + "\n")
    disk.write_text(path, "".join(lines))


def submission_problems(path: Path, source: Source) -> Iterator[str]:
    """Yield a line per error of a submission: location, field, legal values, and remedy."""
    case_records = records(replace(source, root=path.parent, files=(path,)))
    original, file = records(source), source.files[0]
    number = 0
    for number, record in original:
        line = next(case_records, None)
        if line is None:
            yield f"{path}:{number}: is missing; expected as many lines as {file} has cases; add it"
            return
        yield from (f"{path}:{number}: {problem}" for problem in _problems(line[1], record))
    for extra, _ in case_records:
        yield f"{path}:{extra}: is beyond the {number} cases of {file}; remove it"


def _problems(line: Mapping[str, Any], original: Mapping[str, Any]) -> Iterator[str]:
    for name, value in original.items():
        if name not in line and value is not None:
            yield f"{name} is missing; expected every original field unchanged; copy it"
        elif line.get(name) != value:
            yield f"{name} is not the original's; expected fields and order of cases unchanged; copy it"
    for name in line.keys() - original.keys() - set(PREDICTION):
        yield f"{name} is unknown; expected the original fields, {', '.join(PREDICTION)}; remove it"
    if line.get("prediction") not in LETTERS:
        yield f"prediction is {line.get('prediction')!r}; expected one of {', '.join(LETTERS)}"
    if not isinstance(line.get("prediction_rationale", ""), str):
        yield "prediction_rationale is no text; expected text, or no such field"
    yield from _step_problems(line.get("prediction_twi", {}), original)


def _step_problems(steps: object, original: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(steps, Mapping):
        yield f"prediction_twi is no object; expected {_LEGAL_STEPS}"
        return
    for name, value in steps.items():
        if name not in _STEPS or not isinstance(value, _STEPS[name]):
            yield f"prediction_twi.{name} is not legal; expected {_LEGAL_STEPS}"
    findings = steps.get("step1_per_image_findings", [])
    if isinstance(findings, list) and not all(isinstance(text, str) for text in findings):
        yield "prediction_twi.step1_per_image_findings holds what is no text; expected one text per image"
    elif isinstance(findings, list) and findings and len(findings) != original.get("image_count"):
        yield (
            f"prediction_twi.step1_per_image_findings has {len(findings)} texts; expected one per image, "
            f"{original.get('image_count')}"
        )
