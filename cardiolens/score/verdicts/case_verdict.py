"""A question for judging, and the judgement of one reply to it: of options, a number, or a ranking."""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cardiolens.base.errors import InputError
from cardiolens.protocol.replies import Option, Reading, Status, read_reply, refuses, visible_text
from cardiolens.protocol.replies.open_answer import OpenReading, read_number, read_ranking
from cardiolens.protocol.tasks.catalogue import OPEN, Catalogue, load_catalogue
from cardiolens.protocol.tasks.legal import fold, letters_of

ParseStatus = Literal["ok", "inconsistent", "contradicted", "parse_error", "refusal", "truncated"]
_PARSE_STATUS: Mapping[Status, ParseStatus] = {  # of the reader's statuses; stored verdicts have these words
    "read": "ok",
    "contradicted": "contradicted",
    "unread": "parse_error",
    "refused": "refusal",
    "cut": "truncated",
}
_CLOSED = ("single", "ordinal", "multi")  # answer types with options


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

    @property
    def catalogue(self) -> Catalogue:
        return _load(self.protocol)


_load = functools.cache(load_catalogue)


@dataclass(frozen=True, slots=True)
class CaseReply:
    """The part of a model's reply that is judged."""

    text: str
    refused: bool  # by the engine or its host, not in words
    cut: bool  # by max_tokens
    displayed_keys: tuple[str, ...]  # original option keys in display order; empty: as in the question

    def failure(self, *, contradicts: bool = False) -> ParseStatus:
        """Return why nothing was read in an open reply."""
        if self.refused or refuses(visible_text(self.text)):
            return "refusal"
        if self.cut:
            return "truncated"
        return "contradicted" if contradicts else "parse_error"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The comparison of one reply with the gold answer."""

    parse_status: str
    rule: str
    parsed: tuple[str, ...]  # original keys in their order
    gold: tuple[str, ...]
    correct: bool
    counts: dict[str, float]


def judge_choice(case: Case, reply: CaseReply) -> Judgement:
    """Judge a reply to a single, ordinal or multi question; unparsed ones are wrong, or the empty set.

    It is read by the displayed letters, which are then mapped to original option keys. An exclusive option
    beside others is kept as given, and `inconsistent`.
    """
    displayed = reply.displayed_keys or case.keys
    if sorted(displayed) != sorted(case.keys):
        raise InputError(
            f"a request of subtask {case.subtask} showed options {list(displayed)}, its question now has "
            f"{list(case.keys)}; judge with the questions file of the run, or run the sweep again"
        )
    texts, original = dict(case.options), dict(zip(letters_of(displayed), displayed, strict=True))
    options = tuple((letter, texts[key]) for letter, key in original.items())
    several, ending = case.answer_type == "multi", "length" if reply.cut else "stop"
    reading = (
        Reading("refused")
        if reply.refused
        else read_reply(reply.text, options, several=several, finish_reason=ending)
    )
    chosen = {original[letter] for letter in reading.answers}
    parsed = tuple(key for key in case.keys if key in chosen)
    is_mixed = len(chosen) > 1 and not chosen.isdisjoint(case.exclusive)
    return Judgement(
        parse_status="inconsistent" if is_mixed else _PARSE_STATUS[reading.status],
        rule=reading.rule,
        parsed=parsed,
        gold=case.answer,
        correct=chosen == set(case.answer),
        counts=_choice_counts(case, parsed),
    )


def _choice_counts(case: Case, parsed: tuple[str, ...]) -> dict[str, float]:
    """Return what scores of the answer type count."""
    counts: dict[str, float] = {"options": len(case.options)}
    if case.answer_type == "ordinal":
        worst = len(case.options) - 1
        error = abs(case.keys.index(parsed[0]) - case.keys.index(case.answer[0])) if parsed else worst
        return counts | {"rank_error": error}
    if case.answer_type == "multi":
        gold, chosen = set(case.answer), set(parsed)
        return counts | {"tp": len(gold & chosen), "fp": len(chosen - gold), "fn": len(gold - chosen)}
    return counts


def case_of(row: Mapping[str, Any], protocol: str | None = None) -> Case:
    """Convert a row of `questions` to a case; `protocol` is a folder, by default the row's own protocol.

    An answer outside the options, or several to a question that takes one, is an InputError.
    """
    case = Case(
        subtask=row["subtask"],
        answer_type=row["answer_type"],
        options=tuple((option["key"], option["text"]) for option in row["options"] or ()),
        exclusive=tuple(row["exclusive"] or ()),
        answer=tuple(row["answer"] or ()),
        reference=row["reference"],
        protocol=protocol or row["protocol"],
    )
    legal = [*_CLOSED, *sorted(OPEN)]
    if case.answer_type not in legal:
        raise InputError(
            f"question {row['qa_id']}: answer_type {case.answer_type!r} is not one of {legal}; correct it"
        )
    several = case.answer_type == "multi"
    number_fits = len(case.answer) == 1 or (several and len(case.answer) > 1)
    if case.answer_type in _CLOSED and not (number_fits and set(case.answer) <= set(case.keys)):
        raise InputError(
            f"question {row['qa_id']}: answer {list(case.answer)} is not {'some' if several else 'one'} of "
            f"its options {list(case.keys)}; correct the questions file"
        )
    return case


def elect_reply(case: Case, replies: Sequence[CaseReply]) -> CaseReply:
    """The earliest reply with the most frequent set of options; the first reply if none can be read.

    Ties go to the set that was named first. An unreadable reply has no vote.
    """
    key_sets = [judge_choice(case, reply).parsed for reply in replies]
    votes = Counter(filter(None, key_sets))
    if not votes:
        return replies[0]
    (most, _), *_ = votes.most_common()  # ties go to the set counted first
    return replies[key_sets.index(most)]


def judge_number(case: Case, reply: CaseReply) -> Judgement:
    """Compare a number with the true one; it is right within the tolerance of its subtask."""
    quantity = case.catalogue[case.subtask].quantity
    assert quantity is not None, "the catalogue checks it"
    truth = quantity.read(case.answer[0])
    reading = read_number(visible_text(reply.text), quantity.read)
    counts = {"truth": truth, "tolerance": quantity.tolerance}
    if reading.value is None or reply.refused or reply.cut:
        return _unread(case, reply, reading, counts)
    error = reading.value - truth
    within = abs(error) <= quantity.tolerance + 1e-9
    answer = (quantity.written(reading.value),)
    return Judgement("ok", reading.rule, answer, case.answer, within, counts | {"error": error})


def judge_ranking(case: Case, reply: CaseReply) -> Judgement:
    """Find the first true name of a ranking, compared by letters without case and white space."""
    reading = read_ranking(visible_text(reply.text), case.catalogue[case.subtask].ranks)
    if reading.value is None or reply.refused or reply.cut:
        return _unread(case, reply, reading, {})
    true_names = set(map(fold, case.answer))
    places = [place for place, name in enumerate(reading.value, start=1) if fold(name) in true_names]
    counts = {"place": float(places[0])} if places else {}
    return Judgement("ok", reading.rule, reading.value, case.answer, places[:1] == [1], counts)


def _unread(
    case: Case,
    reply: CaseReply,
    reading: OpenReading[float] | OpenReading[tuple[str, ...]],
    counts: dict[str, float],
) -> Judgement:
    status = reply.failure(contradicts=reading.contradicts)
    return Judgement(status, reading.rule, (), case.answer, correct=False, counts=counts)
