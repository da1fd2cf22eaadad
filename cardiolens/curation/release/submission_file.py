"""The submission file of a stranger, read line by line within bounds: release, arms, and replies."""

from collections.abc import Collection, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import one_line
from cardiolens.base.untrusted.bounded_files import open_binary, parse_json
from cardiolens.config.base import Spec, describe
from cardiolens.curation.release.benchmark_submission import MOST_REPLY, MOST_TEXT, SCHEMA, is_too_long
from cardiolens.curation.release.withheld_cohort import Digest, ReleaseName
from cardiolens.protocol.tasks.questions import Question

MOST_BYTES = 1 << 30  # of the file
MOST_LINE = 1 << 20  # bytes
MOST_ARMS = 1000
_SHOWN = 60  # characters of a stranger's word in a message
_MADE_BY = "cardiolens release submit=<run> out=<file> writes one"


class _Strict(Spec):
    model_config = ConfigDict(strict=True)


class Arm(_Strict):
    """An arm as its run declared it; only the id is used."""

    arm_id: Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
    model: str
    selector: str
    budget: int | str
    prompt: str
    control: str
    wording: int | str = 0


class _Head(_Strict):
    schema_: Literal["submission-1"] = Field(alias="schema")
    release: ReleaseName
    catalogue_sha256: Digest
    made_by: Annotated[str, Field(max_length=200)]
    arms: Annotated[list[Arm], Field(min_length=1, max_length=MOST_ARMS)]


class Reply(_Strict):
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

    release: ReleaseName
    catalogue_sha256: str
    arms: tuple[str, ...]
    replies: Mapping[tuple[str, str], Reply]


_Line = TypeVar("_Line", bound=_Strict)


def read_submission(path: Path, release: ReleaseName, questions: Mapping[str, Question]) -> Submission:
    """Read a submission for the withheld questions of a release; InputError names line, fault and remedy.

    Every arm and question has one reply at most; one without any is no error here.
    """
    with closing(_lines(path)) as lines:
        number, first = next(lines, (1, b""))
        head = _read(_Head, first, f"{path}:{number}")
        if head.release != release:
            told, own = (f"{one.name} {one.number} ({one.sha256[:12]})" for one in (head.release, release))
            raise InputError(
                f"{path}: is of release {one_line(told, _SHOWN)}, and the answers are of {own}; score it "
                "with the answers of its own release"
            )
        arms = tuple(arm.arm_id for arm in head.arms)
        if len(set(arms)) < len(arms):
            raise InputError(f"{path}:{number}: an arm stands twice; {_MADE_BY}")
        replies: dict[tuple[str, str], Reply] = {}
        for number, line in lines:
            where = f"{path}:{number}"
            reply = _read(Reply, line, where)
            _check(reply, where, set(arms), questions)
            if (reply.arm_id, reply.qa_id) in replies:
                raise InputError(
                    f"{where}: {reply.qa_id} has a second reply of {reply.arm_id}; leave one out"
                )
            replies[reply.arm_id, reply.qa_id] = reply
    return Submission(head.release, head.catalogue_sha256, arms, replies)


def _check(reply: Reply, where: str, arms: Collection[str], questions: Mapping[str, Question]) -> None:
    """Raise InputError for a reply of an unknown arm, to an unknown question, or to other options."""
    if reply.arm_id not in arms:
        raise InputError(
            f"{where}: arm {one_line(reply.arm_id, _SHOWN)} is not in the first line; {_MADE_BY}"
        )
    question = questions.get(reply.qa_id)
    if question is None:
        raise InputError(
            f"{where}: {one_line(reply.qa_id, _SHOWN)} is no question with a withheld answer; {_MADE_BY}"
        )
    if is_too_long(reply.text, reply.finish_reason):
        raise InputError(f"{where}: text has a reply of more than {MOST_REPLY:,} characters; shorten it")
    keys = sorted(option.key for option in question.options)
    if reply.option_keys and sorted(reply.option_keys) != keys:
        raise InputError(
            f"{where}: {reply.qa_id} was shown options that it does not have; expected each of "
            f"{', '.join(keys) or 'none'} once; {_MADE_BY}"
        )


def _lines(path: Path) -> Generator[tuple[int, bytes], None, None]:
    """Yield numbered lines; InputError for a file or a line that is too long."""
    try:
        with open_binary(path) as file:
            size = 0
            for number, line in enumerate(iter(lambda: file.readline(MOST_LINE + 1), b""), start=1):
                size += len(line)
                if len(line) > MOST_LINE or size > MOST_BYTES:
                    what, most = ("line", MOST_LINE) if len(line) > MOST_LINE else ("file", MOST_BYTES)
                    raise InputError(f"{path}:{number}: the {what} has more than {most:,} bytes; shorten it")
                yield number, line
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); give the file") from None


def _read(kind: type[_Line], line: bytes, where: str) -> _Line:
    """Read a line; InputError if it is not what `kind` describes, or holds half a character."""
    try:
        value: Any = parse_json(line)
        return kind.model_validate(value)
    except ValidationError as error:
        reason = describe(error)
    except ValueError as error:  # UnicodeError too
        reason = one_line(str(error), 200)
    raise InputError(f"{where}: is no line of {SCHEMA} ({reason}); {_MADE_BY}")
