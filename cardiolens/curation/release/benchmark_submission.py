"""Submissions of runs on withheld answers: written where the run is, read as a stranger's, scored at home.

The first line names release and arms; each other line is a reply as it was.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, ValidationError

from cardiolens import __version__
from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.digest import sha256_of
from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import one_line
from cardiolens.base.untrusted.bounded_files import open_binary, parse_json
from cardiolens.config.base import GivenPath, Spec, describe
from cardiolens.config.conf_names import INDEX, read_index
from cardiolens.config.sweep import StatisticsSpec
from cardiolens.curation.release.withheld_cohort import Answers, Digest, ReleaseName, Strict, read_answers
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.questions import Question, given_questions
from cardiolens.report_text.entities import report_forms
from cardiolens.score.run_results.aligned_replies import align_completions
from cardiolens.score.run_results.stored_replies import check_stored
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.score.verdicts.verdicts import judge
from cardiolens.storage import schemas
from cardiolens.storage.documents import read_configuration, read_manifest
from cardiolens.storage.places import Run
from cardiolens.storage.run_place import open_run

SCHEMA = "submission-1"
MOST_TEXT = 1 << 17  # characters of a completion, of which several samples are one
MOST_BYTES = 1 << 30  # of the file
MOST_LINE = 1 << 20  # bytes
MOST_ARMS = 1000
_WORD = 60  # characters of a stranger's word in a message
_MADE_BY = "cardiolens release submit=<run> out=<file> writes one"
_REPLY = ("status", "finish_reason", "text")
_AT = datetime(2000, 1, 1, tzinfo=UTC)  # there is one completion a request, so its time decides nothing
_COLUMNS = ("arm_id", "scope", "metric", "value", "low", "high", "n_items", "n_patients")
Record = dict[str, Any]


class Submit(Spec):
    """Words of a submission."""

    submit: GivenPath  # the folder of the run
    store: GivenPath | None = None  # where the store of the run is now
    out: GivenPath  # the file to be written


class Score(Spec):
    """Words of scoring."""

    score: GivenPath  # the submission
    answers: GivenPath  # the owner's file
    protocol: str | None = None  # the release's own folder of a protocol, where it has one


_ArmId = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]


class _Head(Strict):
    schema_: Literal["submission-1"] = Field(alias="schema")
    release: ReleaseName
    catalogue_sha256: Digest
    made_by: Annotated[str, Field(max_length=200)]
    arms: Annotated[list[_ArmId], Field(min_length=1, max_length=MOST_ARMS)]


class Reply(Strict):
    """A reply to one question under one arm, as the store had it."""

    arm_id: str
    qa_id: str
    option_keys: Annotated[list[str], Field(max_length=26)]  # as displayed
    status: Literal["ok", "refused", "illegal_selection"]  # schemas.FINAL
    finish_reason: Annotated[str, Field(max_length=100)] | None
    text: Annotated[str, Field(max_length=MOST_TEXT)]


NO_REPLY = Reply(arm_id="", qa_id="", option_keys=[], status="refused", finish_reason=None, text="")


@dataclass(frozen=True, slots=True)
class Submission:
    """The content of a submission: `replies` are by arm and question."""

    catalogue_sha256: str
    arms: tuple[str, ...]
    replies: Mapping[tuple[str, str], Reply]


def submit(words: Submit) -> int:
    """Write the replies of a run to the questions with withheld answers, and return 0.

    InputError if the run asked no such question, or the release has changed since.
    """
    run = open_run("submit", words.submit, words.store)
    spec, manifest = read_configuration(run), read_manifest(run)
    store = check_stored(run)
    release = _release(words.submit, spec.dataset.questions, manifest["questions_sha256"])
    rows = given_questions(spec.dataset.questions, load_catalogue(spec.dataset.protocol))
    qa_ids = pa.array([row.question.qa_id for row in rows if row.question.withheld], pa.string())
    if not len(qa_ids):
        raise InputError(f"submit={words.submit}: the answers of all its questions are known; see its page")
    head = {
        "schema": SCHEMA,
        "release": release,
        "catalogue_sha256": manifest["catalogue_sha256"],
        "made_by": f"cardiolens {__version__}",
        "arms": [arm["arm_id"] for arm in manifest["arms"]],
    }
    count = 0
    with disk.atomic(words.out) as temporary, disk.open_text(temporary) as file:
        file.write(json.dumps(head, ensure_ascii=False) + "\n")
        for model, facts in manifest["models"].items():
            for row in _replies(run, model, store.completions(facts["model_key"]), qa_ids):
                if len(row["text"]) > MOST_TEXT:
                    raise InputError(
                        f"submit={words.submit}: the reply of {row['arm_id']} to {row['qa_id']} has more "
                        f"than {MOST_TEXT:,} characters, which is not scored; ask with fewer max_tokens"
                    )
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
    say(f"submission: {words.out}: {count} replies of {len(manifest['arms'])} arms")
    if missing := len(manifest["arms"]) * len(qa_ids) - count:
        say(f"{missing} questions have no reply under an arm; each counts as wrong where it is scored")
    return 0


def _release(run: Path, questions: Path, questions_sha256: str) -> Record:
    """Return name, number and digest of the release whose questions a run asked."""
    folder = questions.parent
    try:
        facts = read_index(folder)
        digest, now = sha256_of(folder / INDEX), sha256_of(questions)
        name, number = str(facts["name"]), str(facts["number"])
        listed = facts["files"][questions.name]["sha256"]
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(
            f"submit={run}: {folder} holds no release; give a run of dataset=<release>, and put the release "
            "back where it was"
        ) from None
    if not listed == now == questions_sha256:
        raise InputError(
            f"submit={run}: {questions} is not what the run asked, or not what was released; put the release "
            "back as it was (cardiolens release verify=<folder>), and run the sweep again"
        )
    return {"name": name, "number": number, "sha256": digest}


def _replies(run: Run, model: str, completions: Path, qa_ids: pa.Array) -> Iterator[Record]:
    """Yield the final replies of one model to some questions."""
    requests = run.requests(model)
    for block, replies in align_completions(requests, completions).blocks():
        is_asked = pc.and_(
            pc.equal(block["status"], schemas.PLANNED), pc.is_in(block["qa_id"], value_set=qa_ids)
        )
        rows = block.filter(is_asked).select(["request_key", "arm_id", "qa_id", "option_keys"])
        replied = {row["request_key"]: row for row in finals(replies).to_pylist()}
        for row in rows.to_pylist():
            reply = replied.get(row.pop("request_key"))
            if reply is not None:
                fields = {name: reply[name] for name in _REPLY}
                yield row | fields | {"text": fields["text"] or "", "option_keys": row["option_keys"] or []}


_Line = TypeVar("_Line", bound=Strict)


def read_submission(path: Path, release: ReleaseName, questions: Mapping[str, Question]) -> Submission:
    """Read a submission for the withheld questions of a release; InputError names line, fault and remedy.

    Every arm and question has one reply at most; one without any is no error here.
    """
    lines = _lines(path)
    head = _read(_Head, next(lines, b""), f"{path}:1")
    if head.release != release:
        theirs, ours = (f"{name.name} {name.number} ({name.sha256[:12]})" for name in (head.release, release))
        raise InputError(
            f"{path}: is of release {one_line(theirs, _WORD)}, and the answers are of {ours}; score it "
            "with the answers of its own release"
        )
    arms = tuple(head.arms)
    if len(set(arms)) < len(arms):
        raise InputError(f"{path}:1: an arm stands twice; {_MADE_BY}")
    replies: dict[tuple[str, str], Reply] = {}
    for number, line in enumerate(lines, start=2):
        reply = _read(Reply, line, f"{path}:{number}")
        if why := _fault(reply, arms, questions):
            raise InputError(f"{path}:{number}: {why}")
        if (reply.arm_id, reply.qa_id) in replies:
            raise InputError(
                f"{path}:{number}: {reply.qa_id} has a second reply of {reply.arm_id}; leave one out"
            )
        replies[reply.arm_id, reply.qa_id] = reply
    return Submission(head.catalogue_sha256, arms, replies)


def _fault(reply: Reply, arms: tuple[str, ...], questions: Mapping[str, Question]) -> str:
    """Return what is wrong with a reply: its length, arm, question or options; or nothing."""
    question = questions.get(reply.qa_id)
    if reply.arm_id not in arms:
        return f"arm {one_line(reply.arm_id, _WORD)} is not in the first line; {_MADE_BY}"
    if question is None:
        return f"{one_line(reply.qa_id, _WORD)} is no question with a withheld answer; {_MADE_BY}"
    keys = sorted(option.key for option in question.options)
    if reply.option_keys and sorted(reply.option_keys) != keys:
        legal = f"each of {', '.join(keys) or 'none'} once"
        return f"{reply.qa_id} was shown options that it does not have; expected {legal}; {_MADE_BY}"
    return ""


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; InputError for a file or a line that is too long."""
    try:
        with open_binary(path) as file:
            size = 0
            for number, line in enumerate(iter(lambda: file.readline(MOST_LINE + 1), b""), start=1):
                size += len(line)
                if len(line) > MOST_LINE or size > MOST_BYTES:
                    what, most = ("line", MOST_LINE) if len(line) > MOST_LINE else ("file", MOST_BYTES)
                    raise InputError(f"{path}:{number}: the {what} has more than {most:,} bytes; shorten it")
                yield line
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); give the file") from None


def _read(kind: type[_Line], line: bytes, where: str) -> _Line:
    """Read a line; InputError if it is not what `kind` describes, or holds half a character."""
    try:
        return kind.model_validate(parse_json(line))
    except ValidationError as error:
        reason = describe(error)
    except ValueError as error:  # UnicodeError too
        reason = one_line(str(error), 200)
    raise InputError(f"{where}: is no line of {SCHEMA} ({reason}); {_MADE_BY}")


def score_submission(words: Score) -> int:
    """Print the scores of a submission as tab-separated lines, judged as a sweep judges, and return 0.

    InputError if it is not of the release of the answers, or not well-formed.
    """
    answers = read_answers(words.answers, words.protocol)
    submission = read_submission(words.score, answers.release, answers.questions)
    if submission.catalogue_sha256 != answers.catalogue.sha256:
        raise InputError(
            f"{words.score}: was asked in another version of the protocol; the sweep is to be run again with "
            "the version of CardioLens that the release names"
        )
    release = answers.release
    say(f"release: {release.name} {release.number} {release.sha256}")
    n_replies = Counter(arm for arm, _ in submission.replies)
    for arm in submission.arms:
        without = len(answers.questions) - n_replies[arm]
        say(f"{arm}: {n_replies[arm]} replies; {without} questions without one count as wrong")
    print(*_COLUMNS, sep="\t")
    for row in scores_of(verdicts_of(submission, answers), answers.catalogue).select(_COLUMNS).to_pylist():
        print(*row.values(), sep="\t")
    return 0


def verdicts_of(submission: Submission, answers: Answers) -> pa.Table:
    """Judge every question under every arm to table `verdicts`; one without a reply as if it was refused."""
    requests: list[Record] = []
    completions: list[Record] = []
    for arm, qa_id in product(submission.arms, answers.questions):
        reply = submission.replies.get((arm, qa_id), NO_REPLY)
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
