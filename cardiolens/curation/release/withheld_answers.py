"""Withheld answers of a release: a question file of its owner, and submissions, which the owner scores.

A submission is JSON Lines: the first line has the canary of the release and the arms, each other line is a
reply as it was. It is written where the run is, and read as a stranger's file.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict, Field, ValidationError

from cardiolens import __version__
from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.private_file import check_private
from cardiolens.base.sanitize import one_line
from cardiolens.base.untrusted.bounded_files import parse_json, read_bytes
from cardiolens.config.base import GivenPath, Spec, describe
from cardiolens.config.conf_names import read_index
from cardiolens.config.sweep import StatisticsSpec
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.questions import (
    GivenQuestion,
    Question,
    given_questions,
    is_withheld,
    questions_table,
)
from cardiolens.report_text.entities import report_forms
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.verdicts.verdicts import judge
from cardiolens.show.notebook.run import FinishedRun, read_run
from cardiolens.storage import schemas

MOST_TEXT = 1 << 17  # characters of a completion, of which several samples are one
MOST_BYTES = 1 << 30  # of a submission
_SCHEMA = "submission-1"
_WORD = 60  # characters of a stranger's word in a message
_MADE_BY = "cardiolens release submit=<run> out=<file> writes one"
_REPLY = ("status", "finish_reason", "text")
_AT = datetime(2000, 1, 1, tzinfo=UTC)  # there is one completion a request, so its time decides nothing
_COLUMNS = ("arm_id", "scope", "metric", "value", "low", "high", "n_items", "n_patients")
Record = dict[str, Any]
_ArmId = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]


class Submit(Spec):
    """Words of a submission."""

    submit: GivenPath  # the folder of the run
    store: GivenPath | None = None  # where the store of the run is now
    out: GivenPath  # the file to be written


class Score(Spec):
    """Words of scoring."""

    score: GivenPath  # the submission
    answers: GivenPath  # the owner's file
    protocol: str = "openprotocol-1"  # name, or the release's own folder of a protocol


class _Strict(Spec):
    """A record of a file; its values are not converted."""

    model_config = ConfigDict(strict=True)


class _Head(_Strict):
    schema_: Literal["submission-1"] = Field(alias="schema")
    canary: Annotated[str, Field(max_length=100)]  # of the release
    catalogue_sha256: Annotated[str, Field(max_length=64)]
    made_by: Annotated[str, Field(max_length=200)]
    arms: Annotated[list[_ArmId], Field(min_length=1, max_length=1000)]


class Reply(_Strict):
    """A reply to one question under one arm, as the store had it."""

    arm_id: str
    qa_id: str
    option_keys: Annotated[list[str], Field(max_length=26)]  # as displayed
    status: Literal["ok", "refused", "illegal_selection"]  # schemas.FINAL
    finish_reason: Annotated[str, Field(max_length=100)] | None
    text: Annotated[str, Field(max_length=MOST_TEXT)]


_NO_REPLY = Reply(arm_id="", qa_id="", option_keys=[], status="refused", finish_reason=None, text="")


@dataclass(frozen=True, slots=True)
class Answers:
    """The withheld questions of a release with their answers."""

    canary: str | None  # of the release
    catalogue: Catalogue
    protocol: str  # name or folder of the catalogue
    questions: Mapping[str, Question]  # by qa_id
    table: pa.Table  # the same as table `questions`


@dataclass(frozen=True, slots=True)
class Submission:
    """The content of a submission: `replies` are by arm and question."""

    arms: Sequence[str]
    replies: Mapping[tuple[str, str], Reply]


def without_answers(questions: Iterable[GivenQuestion], studies: Collection[str]) -> list[GivenQuestion]:
    """Return questions, those on these studies without answer, reference, evidence and kind of verification.

    Whether a person corrected an answer is part of its verification, and would reveal something of it.
    """
    return [_without_answer(row) if row.question.study_id in studies else row for row in questions]


def _without_answer(row: GivenQuestion) -> GivenQuestion:
    status = {name: value for name, value in row.question.verification.items() if name == "status"}
    empty: Record = {"answer": [], "reference": None, "evidence": [], "evidence_slices": []}
    public = {name: value for name, value in row.record.items() if name not in {*empty, "verification"}}
    record = public | {"withheld": True} | ({"verification": status} if status else {})
    changes = empty | {"withheld": True, "verification": status}
    return replace(row, record=record, question=row.question.model_copy(update=changes))


def check_answers_word(path: Path) -> None:
    """Raise InputError if the owner's file exists: no release is ever scored without its own."""
    if path.exists() or path.is_symlink():
        raise InputError(
            f"answers={path}: exists, and may be the only answers of a release; name a new file, or remove "
            "this one if its release was never finished"
        )


def write_answers(path: Path, lines: Iterable[Record]) -> None:
    """Write the owner's question file, new and for its owner alone; InputError if it exists."""
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    disk.make_folder(path.parent)
    try:
        disk.create(path, text.encode())
    except FileExistsError:
        check_answers_word(path)
    except OSError as error:
        raise RunError(f"answers={path}: cannot be written ({error.strerror}); name another place") from None


def read_answers(path: Path, protocol: str) -> Answers:
    """Read the owner's file; InputError if others can read it, or its questions are not of the protocol."""
    if path.exists():
        check_private(path, f"answers={path}", "tune a model to the test set", what="the answers")
    catalogue = load_catalogue(protocol)
    rows = tuple(given_questions(path, catalogue))
    if without := [row.question.qa_id for row in rows if row.question.withheld]:
        raise InputError(f"answers={path}: {without[0]} has no answer; give the file of release answers=...")
    table = questions_table(path, rows, catalogue, allow_unverified=True)
    questions = {row.question.qa_id: row.question for row in rows}
    return Answers(rows[0].question.canary, catalogue, protocol, questions, table)


def submit(words: Submit) -> int:
    """Write the replies of a run to the questions with withheld answers, and return 0.

    InputError if the run asked no such question, or its release is gone.
    """
    run = read_run(words.submit, words.store)
    arms = [arm["arm_id"] for arm in run.manifest["arms"]]
    canary = _canary_of(run)
    qa_ids = run.questions.filter(is_withheld(run.questions))["qa_id"]
    if not len(qa_ids):
        raise InputError(f"submit={words.submit}: the answers of all its questions are known; see its page")
    head = {
        "schema": _SCHEMA,
        "canary": canary,
        "catalogue_sha256": run.manifest["catalogue_sha256"],
        "made_by": f"cardiolens {__version__}",
        "arms": arms,
    }
    rows = list(_replies(run, qa_ids))
    with disk.atomic(words.out) as temporary, disk.open_text(temporary) as file:
        file.write(json.dumps(head, ensure_ascii=False) + "\n")
        for row in rows:
            if len(row["text"]) > MOST_TEXT:
                raise InputError(
                    f"submit={words.submit}: the reply of {row['arm_id']} to {row['qa_id']} has more "
                    f"than {MOST_TEXT:,} characters, which is not scored; ask with fewer max_tokens"
                )
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    say(f"submission: {words.out}: {len(rows)} replies of {len(arms)} arms")
    if missing := len(arms) * len(qa_ids) - len(rows):
        say(f"{missing} questions have no reply under an arm; each counts as wrong where it is scored")
    return 0


def _canary_of(run: FinishedRun) -> str:
    """Return the canary of the release that a run asked; InputError if it is not there."""
    folder = run.configuration.dataset.questions.parent
    try:
        return str(read_index(folder)["canary"])
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(
            f"submit={run.folder}: {folder} holds no release; give a run of dataset=<release>, and put the "
            "release back where it was"
        ) from None


def _replies(run: FinishedRun, qa_ids: pa.ChunkedArray) -> Iterator[Record]:
    """Yield the final replies of a run to some questions, in the order of its requests."""
    replied = {row["request_key"]: row for row in run.completions.to_pylist()}
    requests = run.requests
    is_asked = pc.and_(
        pc.equal(requests["status"], schemas.PLANNED), pc.is_in(requests["qa_id"], value_set=qa_ids)
    )
    rows = requests.filter(is_asked).select(["request_key", "arm_id", "qa_id", "option_keys"]).to_pylist()
    for row in rows:
        if (reply := replied.get(row.pop("request_key"))) is not None:
            fields = {name: reply[name] for name in _REPLY}
            yield row | fields | {"text": fields["text"] or "", "option_keys": row["option_keys"] or []}


def score_submission(words: Score) -> int:
    """Print the scores of a submission as tab-separated lines, judged as a sweep judges, and return 0.

    InputError if it is not of the release of the answers, or not well-formed.
    """
    answers = read_answers(words.answers, words.protocol)
    submission = read_submission(words.score, answers)
    n_replies = Counter(arm for arm, _ in submission.replies)
    for arm in submission.arms:
        without = len(answers.questions) - n_replies[arm]
        say(f"{arm}: {n_replies[arm]} replies; {without} questions without one count as wrong")
    print(*_COLUMNS, sep="\t")
    for row in scores_of(verdicts_of(submission, answers), answers.catalogue).select(_COLUMNS).to_pylist():
        print(*row.values(), sep="\t")
    return 0


def read_submission(path: Path, answers: Answers) -> Submission:
    """Read a submission for a release; InputError names line, fault and remedy.

    Every arm and question has one reply at most; one without any is no error here.
    """
    try:
        first, *lines = read_bytes(path, MOST_BYTES).removesuffix(b"\n").split(b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); give the file") from None
    head = _read(_Head, first, f"{path}:1")
    if head.canary != answers.canary:
        raise InputError(
            f"{path}: has {one_line(head.canary, _WORD)}, and the answers have {answers.canary}; score it "
            "with the answers of its own release"
        )
    if head.catalogue_sha256 != answers.catalogue.sha256:
        raise InputError(
            f"{path}: was asked in another version of the protocol; the sweep is to be run again with "
            "the version of CardioLens that the release names"
        )
    if len(set(head.arms)) < len(head.arms):
        raise InputError(f"{path}:1: an arm stands twice; {_MADE_BY}")
    replies: dict[tuple[str, str], Reply] = {}
    for number, line in enumerate(lines, start=2):
        reply = _read(Reply, line, f"{path}:{number}")
        if why := _fault(reply, head.arms, answers.questions):
            raise InputError(f"{path}:{number}: {why}; {_MADE_BY}")
        if (reply.arm_id, reply.qa_id) in replies:
            raise InputError(
                f"{path}:{number}: {reply.qa_id} has a second reply of {reply.arm_id}; leave one out"
            )
        replies[reply.arm_id, reply.qa_id] = reply
    return Submission(head.arms, replies)


def _fault(reply: Reply, arms: Collection[str], questions: Mapping[str, Question]) -> str:
    """Return what is wrong with a reply: its arm, question or options; or nothing."""
    question = questions.get(reply.qa_id)
    if reply.arm_id not in arms:
        return f"arm {one_line(reply.arm_id, _WORD)} is not in the first line"
    if question is None:
        return f"{one_line(reply.qa_id, _WORD)} is no question with a withheld answer"
    keys = sorted(option.key for option in question.options)
    if reply.option_keys and sorted(reply.option_keys) != keys:
        legal = f"each of {', '.join(keys) or 'none'} once"
        return f"{reply.qa_id} was shown options that it does not have; expected {legal}"
    return ""


_Line = TypeVar("_Line", bound=_Strict)


def _read(kind: type[_Line], line: bytes, where: str) -> _Line:
    """Read a line; InputError if it is not what `kind` describes, or holds half a character."""
    try:
        return kind.model_validate(parse_json(line))
    except ValueError as error:  # ValidationError and UnicodeError too
        reason = describe(error) if isinstance(error, ValidationError) else one_line(str(error), 200)
    raise InputError(f"{where}: is no line of {_SCHEMA} ({reason}); {_MADE_BY}")


def verdicts_of(submission: Submission, answers: Answers) -> pa.Table:
    """Judge every question under every arm to table `verdicts`; one without a reply as if it was refused."""
    requests: list[Record] = []
    completions: list[Record] = []
    for arm, qa_id in product(submission.arms, answers.questions):
        reply = submission.replies.get((arm, qa_id), _NO_REPLY)
        key = {"request_key": f"{arm} {qa_id}"}
        request = {"arm_id": arm, "qa_id": qa_id, "option_keys": reply.option_keys}
        requests.append({**request, **key, "status": schemas.PLANNED})
        completions.append({**{name: getattr(reply, name) for name in _REPLY}, **key, "written_at": _AT})
    return judge(
        pa.Table.from_pylist(requests, schema=schemas.REQUESTS),
        pa.Table.from_pylist(completions, schema=schemas.COMPLETIONS),
        answers.table,
        answers.protocol,
    )


def scores_of(verdicts: pa.Table, catalogue: Catalogue) -> pa.Table:
    """Score verdicts with the options that a sweep has by default: single arms, as in table `scores`."""
    chosen = StatisticsSpec()
    settings = Settings(chosen.min_n, chosen.resamples, chosen.seed, report_forms(catalogue))
    return score(verdicts, (), settings).scores.whole()
