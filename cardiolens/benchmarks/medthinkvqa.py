"""MedThinkVQA: its records as its files have them, and its submission file, written and checked by line."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.benchmarks.benchmark import Source, Split, read_benchmark
from cardiolens.benchmarks.case import Case

LETTERS = ("A", "B", "C", "D", "E")
MOST_IMAGES = 49
PREDICTION = ("prediction", "prediction_rationale", "prediction_twi")  # what a submission adds
MAP = "medthinkvqa"
PROTOCOL = "medthinkvqa-1"
_STEPS = {
    "step1_per_image_findings": list,
    "step2_integrated_summary": str,
    "step3_differential_reasoning": str,
}
_LEGAL_STEPS = (
    "step1_per_image_findings (list of texts), step2_integrated_summary (text) and "
    "step3_differential_reasoning (text)"
)


def source_of(root: Path, split: Split = "test") -> Source:
    """Find the file of a split."""
    return Source.of(root, split, MAP)


def field_of(number: int, name: str) -> str:
    """Return the name of a field of an image slot, e.g. image_07_path."""
    return f"image_{number:02d}_{name}"


def records(source: Source) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the records of a file with line or row, without embedded images; InputError for a wrong one."""
    for number, row in enumerate(source.rows(), start=1):
        if row.error:
            raise InputError(f"{row.place}: {row.error}")
        yield number, row.record


def cases(source: Source, numbers: Collection[int]) -> dict[int, tuple[Mapping[str, Any], Case]]:
    """Return record and case by line or row; InputError for the first of `numbers` that is wrong."""
    read = read_benchmark(source, PROTOCOL)
    for number in sorted(numbers):
        if (failed := f"{source.split}-record-{number:05d}") in read.failed:
            raise InputError(read.failed[failed])
    of_number = {case.number: case for case in read.cases}
    return {number: (record, of_number[number]) for number, record in records(source) if number in numbers}


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
        images = None if self.images is None else [self.images.get(k + 1, "") for k in range(n_images)]
        return {
            **({} if images is None else {"step1_per_image_findings": images}),
            "step2_integrated_summary": self.summary,
            "step3_differential_reasoning": self.rationale,
        }


def write_submission(
    path: Path, source: Source, predictions: Mapping[str, str], responses: Mapping[str, CaseResponse]
) -> None:
    """Write every record, unchanged and in order, with its prediction; InputError for a case without one.

    `predictions` and `responses` are by study name. No letter is guessed: a case with an
    unreadable reply counts as one without a prediction.
    """
    lines = []
    for number, record in records(source):
        name = source.name_of(number)
        if predictions.get(name) not in LETTERS:
            raise InputError(
                f"{source.files[0]}:{number}: prediction is missing; expected one of {', '.join(LETTERS)} "
                "for every case; ask again with answer_format=choice, which leaves no reply unreadable"
            )
        words = responses.get(name, CaseResponse())
        added: dict[str, object] = {"prediction": predictions[name], "prediction_rationale": words.rationale}
        if steps := words.steps(record["image_count"]):
            added["prediction_twi"] = steps
        lines.append(json.dumps({**record, **added}, ensure_ascii=False) + "\n")
    disk.write_text(path, "".join(lines))


def submission_problems(path: Path, source: Source) -> Iterator[str]:
    """Yield a line per error of a submission: location, field, legal values, and remedy."""
    submitted = (line for _, line in records(replace(source, root=path.parent, files=(path,))))
    original = (record for _, record in records(source))
    for number, (line, record) in enumerate(zip_longest(submitted, original), start=1):
        if line is None or record is None:
            far = "beyond the cases" if record is None else "missing; expected a line for each case"
            yield f"{path}:{number}: is {far} of {source.files[0]}; give as many lines"
            return
        yield from (f"{path}:{number}: {problem}" for problem in _problems(line, record))


def _problems(line: Mapping[str, Any], original: Mapping[str, Any]) -> Iterator[str]:
    for name, value in original.items():
        if line.get(name) != value:
            yield f"{name} is not the original's; expected fields and order of cases unchanged; copy it"
    for name in line.keys() - original.keys() - set(PREDICTION):
        yield f"{name} is unknown; expected the original fields, {', '.join(PREDICTION)}; remove it"
    if line.get("prediction") not in LETTERS:
        yield f"prediction is {line.get('prediction')!r}; expected one of {', '.join(LETTERS)}"
    if not isinstance(line.get("prediction_rationale", ""), str):
        yield "prediction_rationale is no text; expected text, or no such field"
    steps = line.get("prediction_twi", {})
    if not isinstance(steps, Mapping):
        yield f"prediction_twi is no object; expected {_LEGAL_STEPS}"
        return
    for name, value in steps.items():
        if name not in _STEPS or not isinstance(value, _STEPS[name]):
            yield f"prediction_twi.{name} is not legal; expected {_LEGAL_STEPS}"
    texts, n_images = steps.get("step1_per_image_findings"), original.get("image_count")
    if isinstance(texts, list) and (len(texts) != n_images or not all(isinstance(t, str) for t in texts)):
        yield f"prediction_twi.step1_per_image_findings is no list of {n_images} texts, one per image"
