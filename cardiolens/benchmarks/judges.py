"""A model as judge of MedThinkVQA: of the steps of a reasoning, and of case discussions.

A file of steps holds records of the benchmark in which its makers' scripts wrote the steps and their judge's
verdicts, or lines of the case's number, the steps, and verdicts of people. The judge sees what the judge of
the makers sees, title, discussion and captions among it, and replies in their form. Of a discussion it judges
each sentence for correctness, and the whole for its value to learners. The words of the prompts, the rule for
sentences and the meaning of the values are ours; those of the benchmark are not public.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import MOST_JSON, parse_json, read_text
from cardiolens.benchmarks.benchmark import Source
from cardiolens.benchmarks.case import Case
from cardiolens.benchmarks.medthinkvqa import cases, records
from cardiolens.config.base import Spec, describe
from cardiolens.protocol.prompts.case_prompts import MOST_VALUE, VALUES, sections_of, sentences_of
from cardiolens.protocol.prompts.text_request import TextRequest
from cardiolens.storage.schemas import FRAME

MOST_STEPS = 15  # of a case
MOST_SENTENCES = 120  # of a discussion that is judged
ERRORS = ("Reasoning", "Image Understanding", "Clinical Scenario", "Medical Knowledge")
PUBLISHED_ERRORS = tuple(f"{name} Err" for name in ERRORS)  # as verdicts name them
_STEPS, _VERDICTS = "explanation_steps", "explanation_steps_checks"  # of the makers' records
_FILLED_IN = (  # explanations with which their scripts mark steps that got no verdict, as not factual
    "No valid structured verdict was returned.",
    "Missing verdict; treated as unsupported.",
)
_NONE = "not given"


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """The verdict of the judge or of a person on one step."""

    is_factual: bool
    is_critical: bool
    error_types: tuple[str, ...] | None  # of ERRORS; None: not factual, and what is wrong was not said


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The steps of one reader about one case, with the verdicts of others if there are any."""

    line: int  # of its file
    case: int  # line of the case in the data, from 1
    steps: tuple[str, ...]
    given: tuple[StepVerdict | None, ...] | None  # by step; None: that step got no verdict
    by: Literal["people", "their judge"] = "people"  # who gave these verdicts


@dataclass(frozen=True, slots=True)
class Discussion:
    """A discussion of one case, split into sentences with their sections."""

    line: int  # of its file
    case: int  # line of the case in the data, from 1
    sentences: tuple[tuple[str, str], ...]  # section, sentence; empty: it cannot be judged

    @staticmethod
    def of(line: int, case: int, text: str) -> "Discussion":
        """Split a discussion; it cannot be judged without its six sections, or if it is too long."""
        sections = sections_of(text) or {}
        split = [(name, sentence) for name, part in sections.items() for sentence in sentences_of(part)]
        return Discussion(line, case, tuple(split) if len(split) <= MOST_SENTENCES else ())


@dataclass(frozen=True, slots=True)
class Rating:
    """The judge's verdict on a discussion."""

    correct: tuple[bool, ...]  # by sentence
    values: Mapping[str, int]  # by name, 0 to MOST_VALUE


def _published(name: str) -> str:
    if name not in PUBLISHED_ERRORS:
        raise ValueError(f"expected one of {', '.join(PUBLISHED_ERRORS)}")
    return name


class _Strict(Spec):
    model_config = ConfigDict(strict=True)


class _Verdict(_Strict):
    """A verdict in the form of the makers' judge."""

    is_factual: bool
    is_critical: bool
    explanation: str = ""
    error_types: list[Annotated[str, AfterValidator(_published)]] | None = None

    @property
    def verdict(self) -> StepVerdict:
        """The verdict; types of a step that is factual do not count."""
        named = self.error_types or ()
        types = tuple(own for own, name in zip(ERRORS, PUBLISHED_ERRORS, strict=True) if name in named)
        return StepVerdict(self.is_factual, self.is_critical, () if self.is_factual else types or None)


class _Verdicts(_Strict):
    verdicts: list[_Verdict]


class _Rated(_Strict):
    sentences: list[bool]
    values: dict[str, Annotated[int, Field(ge=0, le=MOST_VALUE)]]


def lines_of(path: Path, word: str = "steps") -> list[tuple[str, Mapping[str, Any]]]:
    """Return the objects of the file that a word names and where each stands; InputError for anything else.

    A file called .json holds a list, or an object with a list named data; any other has an object per line.
    """
    try:
        text = read_text(path, MOST_JSON)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{word}={path}: cannot be read as UTF-8 text ({error})") from None
    if path.suffix.lower() == ".json":
        content = _parsed(str(path), text)
        listed = content.get("data") if isinstance(content, dict) else content
        if not isinstance(listed, list):
            raise InputError(
                f"{path}: holds no list of cases; expected a list, or an object with a list named data"
            )
        entries = [(f"{path}, entry {at}", entry) for at, entry in enumerate(listed, start=1)]
    else:
        lines = text.removesuffix("\n").split("\n") if text else []
        entries = [(f"{path}:{at}", _parsed(f"{path}:{at}", line)) for at, line in enumerate(lines, start=1)]
    if not entries:
        raise InputError(f"{word}={path}: has no line; give one object a line")
    for where, entry in entries:
        if not isinstance(entry, dict):
            raise InputError(f"{where}: is {type(entry).__name__}; expected an object; correct the line")
    return entries


def _parsed(where: str, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error}); correct the line") from None


@contextmanager
def _located(where: str) -> Iterator[None]:
    """Name the place of an error."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}; correct the file, or leave the record out") from None


def read_reasoning(path: Path, source: Source) -> list[Reasoning]:
    """Read a file of steps; InputError names place and field, the value, the legal values, and the remedy."""
    entries, numbers = lines_of(path), _numbers(source)
    read = []
    for line, (where, entry) in enumerate(entries, start=1):
        if entry.get(_STEPS) != []:  # a record without a step is left out
            with _located(where):
                read.append(_reasoning(entry, line, numbers))
    if not read:
        raise InputError(f"{entries[0][0]}: no record has a step; give a file whose {_STEPS} are filled in")
    return read


def read_discussions(path: Path, n_cases: int) -> list[Discussion]:
    """Read a file of discussions; InputError names line and field, the legal values, and the remedy."""
    read = []
    for line, (where, entry) in enumerate(lines_of(path, "discussions"), start=1):
        with _located(where):
            case, text = entry.get("case"), entry.get("discussion")
            if type(case) is not int or not 1 <= case <= n_cases:
                raise InputError(f"case is {case!r}; expected the line of a case, 1 to {n_cases}")
            if not isinstance(text, str) or entry.keys() != {"case", "discussion"}:
                names = ", ".join(sorted(entry))
                raise InputError(f"has {names}; expected case and discussion, which is a text")
            read.append(Discussion.of(line, case, text))
    return read


def _numbers(source: Source) -> dict[object, list[int]]:
    """Return the line numbers of the cases by number, and by title and history."""
    numbers: dict[object, list[int]] = {}
    for number, record in records(source):
        numbers[number] = [number]
        numbers.setdefault(_key(record), []).append(number)
    return numbers


def _key(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return title and history, without regard to case and white space."""
    history = record.get("CLINICAL_HISTORY") or record.get("clinical_history")
    title, words = (" ".join(str(text or "").split()).casefold() for text in (record.get("title"), history))
    return title, words


def _reasoning(entry: Mapping[str, Any], line: int, numbers: Mapping[object, list[int]]) -> Reasoning:
    if _STEPS in entry:
        match = numbers.get(_key(entry), [])
        if len(match) != 1:
            many = f"is that of lines {', '.join(map(str, match))}" if match else "is that of no case"
            raise InputError(
                f"title {str(entry.get('title'))[:60]!r} with its CLINICAL_HISTORY {many} of the data; "
                "expected that of one case of this split"
            )
        steps = _steps(_STEPS, entry[_STEPS])
        given = _given(_VERDICTS, entry.get(_VERDICTS), len(steps))
        return Reasoning(line, match[0], steps, given, "their judge")
    if unknown := sorted(entry.keys() - {"case", "steps", "people"}):
        raise InputError(f"{unknown[0]} is unknown; legal are case, steps and people")
    case = entry.get("case")
    if type(case) is not int or case not in numbers:
        most = max(number for number in numbers if isinstance(number, int))
        raise InputError(f"case is {case!r}; expected the line of a case, 1 to {most}")
    steps = _steps("steps", entry.get("steps"))
    return Reasoning(line, case, steps, _given("people", entry.get("people"), len(steps)))


def _steps(name: str, value: object) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else []
    legal = all(isinstance(text, str) and text.strip() and FRAME not in text for text in texts)
    if not 1 <= len(texts) <= MOST_STEPS or not legal:
        raise InputError(f"{name} is no list of 1 to {MOST_STEPS} texts")
    return tuple(texts)


def _given(name: str, entries: object, count: int) -> tuple[StepVerdict | None, ...] | None:
    """Parse verdicts, one per step; None where there are none, or where the makers' scripts filled one in."""
    if entries is None:
        return None
    if not isinstance(entries, list) or len(entries) != count:
        raise InputError(f"{name} is no list of one verdict for each of the {count} steps")
    verdicts = []
    for at, entry in enumerate(entries, start=1):
        try:
            verdict = _Verdict.model_validate(entry)
        except ValidationError as error:
            raise InputError(f"{name}, step {at}: {describe(error)}") from None
        filled_in = not verdict.is_factual and verdict.explanation in _FILLED_IN
        verdicts.append(None if filled_in else verdict.verdict)
    return tuple(verdicts)


_CASE = """{{notice}}

Title:
{{title}}

History:
{{history}}

Imaging findings:
{{findings}}

{discussion}:
{{discussion}}

Final diagnosis:
{{diagnosis}}

Captions of the images:
{{captions}}

"""
_SYSTEM = (
    "You judge the reasoning of somebody about a case of radiology. You know the case and its diagnosis. "
    "You judge each step by itself, and reply with one JSON object and no other text."
)
_ASKED = (
    _CASE.format(discussion="Discussion")
    + """Steps of the reasoning:
{steps}

Reply with {{"verdicts": [{{"is_factual": ..., "is_critical": ..., "explanation": ..., \
"error_types": ...}}]}}, one entry for each of the {count} steps, in their order.
- is_factual: false only where the step is plainly wrong, contradicts the case, or nothing supports it; true \
where the case states it, implies it, or makes it medically reasonable.
- is_critical: true where the final diagnosis cannot be reached without the step.
- explanation: the reason, in at most 300 characters.
- error_types: where is_factual is false, a list of what is wrong, of {errors}; else null.
"""
)
_RATING_SYSTEM = (
    "You judge a discussion of a case of radiology that was written for students. You know the case, its "
    "diagnosis, and the discussion by its authors. You reply with one JSON object and no other text."
)
_RATING_ASKED = (
    _CASE.format(discussion="Discussion by the authors")
    + """Sentences of the discussion that you judge, each with its section:
{sentences}

Reply with {{"sentences": [...], "values": {{...}}}}.
- sentences: one entry for each of the {count} sentences, in their order: true where all that the sentence \
states is right, of this case and of medicine, else false.
- values: what the discussion is worth to students, as 0 (missing or wrong), 1 (in part) or 2 (in full), for \
each of {values}.
"""
)
_TYPES = {
    "type": "array",
    "minItems": 1,
    "maxItems": len(PUBLISHED_ERRORS),
    "items": {"enum": list(PUBLISHED_ERRORS)},
}
_ENTRY: dict[str, object] = {
    "is_factual": {"type": "boolean"},
    "is_critical": {"type": "boolean"},
    "explanation": {"type": "string", "minLength": 2, "maxLength": 300},
    "error_types": {"anyOf": [_TYPES, {"type": "null"}]},
}


def requests(source: Source, reasonings: Sequence[Reasoning]) -> list[TextRequest]:
    """Return the requests to the judge, one for each line of steps."""
    texts = _texts(source, {reasoning.case for reasoning in reasonings})
    return [
        TextRequest(
            f"line-{reasoning.line:06d}",
            "step3",
            _SYSTEM,
            prompt_of(texts[reasoning.case], reasoning.steps),
            _object(verdicts=_list(len(reasoning.steps), _closed(_ENTRY))),
        )
        for reasoning in reasonings
    ]


def rating_requests(source: Source, discussions: Sequence[Discussion]) -> list[TextRequest]:
    """Return the requests to the judge, one for each discussion that can be judged."""
    texts = _texts(source, {discussion.case for discussion in discussions})
    values = _closed({name: {"enum": list(range(MOST_VALUE + 1))} for name in VALUES})
    return [
        TextRequest(
            f"line-{discussion.line:06d}",
            "discussion",
            _RATING_SYSTEM,
            rating_prompt(texts[discussion.case], discussion),
            _object(sentences=_list(len(discussion.sentences), {"type": "boolean"}), values=values),
        )
        for discussion in discussions
        if discussion.sentences
    ]


def prompt_of(case: Mapping[str, str], steps: Sequence[str]) -> str:
    """Return the user message; each step is on one line, so that none can pass for two."""
    listed = "\n".join(f"{number}. {' '.join(step.split())}" for number, step in enumerate(steps, start=1))
    shown = fenced({**case, "steps": listed})
    errors = ", ".join(PUBLISHED_ERRORS)
    return _ASKED.format(notice=shown.notice, **shown.blocks, count=len(steps), errors=errors)


def rating_prompt(case: Mapping[str, str], discussion: Discussion) -> str:
    """Return the user message; each sentence is on one line, so that none can pass for two."""
    listed = "\n".join(
        f"{number}. ({section}) {sentence.replace(FRAME, ' ')}"
        for number, (section, sentence) in enumerate(discussion.sentences, start=1)
    )
    shown = fenced({**case, "sentences": listed})
    count, values = len(discussion.sentences), ", ".join(VALUES)
    return _RATING_ASKED.format(notice=shown.notice, **shown.blocks, count=count, values=values)


def _texts(source: Source, asked: Collection[int]) -> dict[int, dict[str, str]]:
    return {number: case_texts(record, case) for number, (record, case) in cases(source, asked).items()}


def case_texts(record: Mapping[str, Any], case: Case) -> dict[str, str]:
    """Return the texts of a case that a judge is shown, by name; captions without a second of one wording."""
    captions = dict.fromkeys(" ".join(image.caption.split()) for image in case.images if image.caption)
    (question,) = case.questions
    texts = {
        "title": str(record.get("title") or _NONE),
        "history": case.history,
        "findings": case.findings or _NONE,
        "discussion": str(record.get("discussion") or _NONE),
        "diagnosis": str(record.get("correct_answer_text") or question.options[question.answer[0]]),
        "captions": "\n".join(f"- {caption}" for caption in captions) or _NONE,
    }
    return {name: text.replace(FRAME, " ") for name, text in texts.items()}


def _closed(properties: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of an object with all of these properties and no other."""
    shape = {"type": "object", "properties": properties, "required": list(properties)}
    return {**shape, "additionalProperties": False}


def _list(count: int, entry: Mapping[str, object]) -> dict[str, object]:
    return {"type": "array", "minItems": count, "maxItems": count, "items": entry}


def _object(**properties: object) -> str:
    return json.dumps(_closed(properties))


def read_verdicts(reply: str | None, count: int) -> tuple[StepVerdict, ...] | None:
    """Parse a reply into one verdict per step; None if it does not match the schema."""
    try:
        read = _Verdicts.model_validate(parse_json(reply or "")).verdicts
    except ValueError:
        return None
    whole = len(read) == count and all(one.model_fields_set == _ENTRY.keys() for one in read)
    return tuple(one.verdict for one in read) if whole else None


def read_rating(reply: str | None, discussion: Discussion) -> Rating | None:
    """Parse a reply; None if it does not match the schema."""
    try:
        read = _Rated.model_validate(parse_json(reply or ""))
    except ValueError:
        return None
    if len(read.sentences) != len(discussion.sentences) or read.values.keys() != set(VALUES):
        return None
    return Rating(tuple(read.sentences), {name: read.values[name] for name in VALUES})


def judged_line(reasoning: Reasoning, verdicts: tuple[StepVerdict, ...] | None) -> str:
    """Return a line of the verdicts file; `judge` is null if the model's reply was invalid."""
    judge = None if verdicts is None else [asdict(verdict) for verdict in verdicts]
    return _line(reasoning, judge)


def rated_line(discussion: Discussion, rating: Rating | None) -> str:
    """Return a line of the ratings file; `judge` is null if there is no legal reply."""
    judge: dict[str, Any] | None = None
    if rating is not None:
        sentences = [
            {"section": section, "sentence": sentence, "is_correct": correct}
            for (section, sentence), correct in zip(discussion.sentences, rating.correct, strict=True)
        ]
        judge = {"sentences": sentences, "values": dict(rating.values)}
    return _line(discussion, judge)


def _line(judged: Reasoning | Discussion, judge: object) -> str:
    line = {"line": judged.line, "case": judged.case, "judge": judge}
    return json.dumps(line, ensure_ascii=False) + "\n"
