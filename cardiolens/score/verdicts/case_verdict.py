"""A question for judging, and the judgement of one reply to it: of options, a number, or a ranking."""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cardiolens.base.errors import InputError
from cardiolens.protocol.replies import Option, Status, read_reply, refuses, visible_text
from cardiolens.protocol.replies.open_answer import OpenReading, read_number, read_ranking
from cardiolens.protocol.tasks.catalogue import OPEN, Subtask, load_catalogue
from cardiolens.protocol.tasks.legal import fold, letters_of

ParseStatus = Literal["ok", "inconsistent", "contradicted", "parse_error", "refusal", "truncated"]
_PARSE_STATUS: Mapping[Status, ParseStatus] = {  # of the reader's statuses; stored verdicts have these words
    "read": "ok",
    "contradicted": "contradicted",
    "unread": "parse_error",
    "refused": "refusal",
    "cut": "truncated",
}


@dataclass(frozen=True, slots=True)
class Case:
    """Everything in a question that affects its judgement; equal for questions with the same answer."""

    subtask: str
    answer_type: str
    options: tuple[Option, ...]
    exclusive: tuple[str, ...]
    answer: tuple[str, ...]
    reference: str | None = None  # JSON, of a report
    protocol: str = ""  # name or folder, as the catalogue is loaded by

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key, _ in self.options)


@dataclass(frozen=True, slots=True)
class CaseReply:
    """The part of a model's reply that is judged."""

    text: str
    refused: bool  # by the engine or its host, not in words
    cut: bool  # by max_tokens
    displayed_keys: tuple[str, ...]  # original option keys in display order; empty: as in the question


@dataclass(frozen=True, slots=True)
class Judgement:
    """The comparison of one reply with the gold answer."""

    parse_status: str
    rule: str
    parsed: tuple[str, ...]  # original keys in their order
    gold: tuple[str, ...]
    correct: bool
    counts: dict[str, float]


class Parsed(NamedTuple):
    """The reading of a reply to a choice question in original option keys, in their order."""

    keys: tuple[str, ...]
    rule: str
    status: ParseStatus


def judge_choice(case: Case, reply: CaseReply) -> Judgement:
    """Judge a reply to a single, ordinal or multi question; unparsed ones are wrong, or the empty set."""
    parsed = read_choice(case, reply)
    return Judgement(
        parse_status=parsed.status,
        rule=parsed.rule,
        parsed=parsed.keys,
        gold=case.answer,
        correct=set(parsed.keys) == set(case.answer),
        counts=_COUNTS[case.answer_type](case, parsed.keys),
    )


def read_choice(case: Case, reply: CaseReply) -> Parsed:
    """Read a reply by the displayed letters, then map these to original option keys.

    An exclusive option beside others is kept as given, and `inconsistent`.
    """
    if reply.refused:
        return Parsed((), "none", "refusal")
    displayed = reply.displayed_keys or case.keys
    if sorted(displayed) != sorted(case.keys):
        raise InputError(
            f"a request of subtask {case.subtask} showed options {list(displayed)}, its question now has "
            f"{list(case.keys)}; judge with the questions file of the run, or run the sweep again"
        )
    texts = dict(case.options)
    original = dict(zip(letters_of(displayed), displayed, strict=True))
    options = tuple((letter, texts[key]) for letter, key in original.items())
    finish_reason = "length" if reply.cut else "stop"
    reading = read_reply(
        reply.text, options, several=case.answer_type == "multi", finish_reason=finish_reason
    )
    original_keys = {original[letter] for letter in reading.answers}
    mixes_exclusive = len(original_keys) > 1 and not original_keys.isdisjoint(case.exclusive)
    return Parsed(
        tuple(key for key in case.keys if key in original_keys),
        reading.rule,
        "inconsistent" if mixes_exclusive else _PARSE_STATUS[reading.status],
    )


def _single_counts(case: Case, parsed: tuple[str, ...]) -> dict[str, float]:
    return {"options": len(case.options)}


def _ordinal_counts(case: Case, parsed: tuple[str, ...]) -> dict[str, float]:
    rank = {key: position for position, key in enumerate(case.keys)}
    worst = len(case.options) - 1
    error = abs(rank[parsed[0]] - rank[case.answer[0]]) if parsed else worst
    return {"options": len(case.options), "rank_error": error}


def _multi_counts(case: Case, parsed: tuple[str, ...]) -> dict[str, float]:
    gold, predicted = set(case.answer), set(parsed)
    return {
        "options": len(case.options),
        "tp": len(gold & predicted),
        "fp": len(predicted - gold),
        "fn": len(gold - predicted),
    }


_COUNTS = {"single": _single_counts, "ordinal": _ordinal_counts, "multi": _multi_counts}


def case_of(row: Mapping[str, object], protocol: str | None = None) -> Case:
    """Convert a row of `questions` to a case; `protocol` is a folder, by default the row's own protocol.

    An answer outside the options, or several to a question that takes one, is an InputError.
    """
    options = tuple((option["key"], option["text"]) for option in _entries(row["options"]))
    case = Case(
        subtask=str(row["subtask"]),
        answer_type=str(row["answer_type"]),
        options=options,
        exclusive=tuple(_entries(row["exclusive"])),
        answer=tuple(_entries(row["answer"])),
        reference=row["reference"] if isinstance(row["reference"], str) else None,
        protocol=protocol or str(row["protocol"]),
    )
    _check(case, str(row["qa_id"]))
    return case


def _entries(value: object) -> list:  # type: ignore[type-arg]
    return value if isinstance(value, list) else []


def _check(case: Case, qa_id: str) -> None:
    legal = [*_COUNTS, *sorted(OPEN)]
    if case.answer_type not in legal:
        raise InputError(
            f"question {qa_id}: answer_type {case.answer_type!r} is not one of {legal}; correct it"
        )
    if case.answer_type in OPEN:
        return
    number_fits = len(case.answer) == 1 or (case.answer_type == "multi" and len(case.answer) > 1)
    if not number_fits or not set(case.answer) <= set(case.keys):
        number = "some" if case.answer_type == "multi" else "one"
        raise InputError(
            f"question {qa_id}: answer {list(case.answer)} is not {number} of its options {list(case.keys)}; "
            "correct the questions file"
        )


def elect_reply(case: Case, replies: Sequence[CaseReply]) -> CaseReply:
    """The earliest reply with the most frequent set of options; the first reply if none can be read.

    Ties go to the set that was named first. An unreadable reply has no vote.
    """
    key_sets = [frozenset(read_choice(case, reply).keys) for reply in replies]
    votes = Counter(keys for keys in key_sets if keys)
    if not votes:
        return replies[0]
    (most, _), *_ = votes.most_common()  # ties go to the set counted first
    return replies[key_sets.index(most)]


def judge_number(case: Case, reply: CaseReply) -> Judgement:
    """Compare a number with the true one; it is right within the tolerance of its subtask."""
    quantity = _subtask(case).quantity
    assert quantity is not None, "the catalogue checks it"
    truth = quantity.read(case.answer[0])
    reading = read_number(visible_text(reply.text), quantity.read)
    counts = {"truth": truth, "tolerance": quantity.tolerance}
    if reading.value is None or _is_unread(reply):
        return Judgement(
            _failure(reply, reading), reading.rule, (), case.answer, correct=False, counts=counts
        )
    error = reading.value - truth
    within = abs(error) <= quantity.tolerance + 1e-9
    answer = (quantity.written(reading.value),)
    return Judgement(
        "ok", reading.rule, answer, case.answer, correct=within, counts=counts | {"error": error}
    )


def judge_ranking(case: Case, reply: CaseReply) -> Judgement:
    """Find the first true name of a ranking, compared by letters without case and white space."""
    reading = read_ranking(visible_text(reply.text), _subtask(case).ranks)
    if reading.value is None or _is_unread(reply):
        return Judgement(_failure(reply, reading), reading.rule, (), case.answer, correct=False, counts={})
    true_names = set(map(fold, case.answer))
    places = [place for place, name in enumerate(reading.value, start=1) if fold(name) in true_names]
    counts = {"place": float(places[0])} if places else {}
    return Judgement("ok", reading.rule, reading.value, case.answer, correct=places[:1] == [1], counts=counts)


_load = functools.cache(load_catalogue)


def _subtask(case: Case) -> Subtask:
    return _load(case.protocol)[case.subtask]


def _is_unread(reply: CaseReply) -> bool:
    return reply.refused or reply.cut


def _failure(reply: CaseReply, reading: OpenReading[float] | OpenReading[tuple[str, ...]]) -> str:
    if reply.refused or refuses(visible_text(reply.text)):
        return "refusal"
    if reply.cut:
        return "truncated"
    return "contradicted" if reading.contradicts else "parse_error"
