"""Judge a number or a ranking: each is a channel of its own, which no score of options reads."""

import functools

from cardiolens.protocol.replies import refuses, visible_text
from cardiolens.protocol.replies.open_answer import OpenReading, read_number, read_ranking
from cardiolens.protocol.tasks.catalogue import Subtask, load_catalogue
from cardiolens.protocol.tasks.legal import fold
from cardiolens.score.verdicts.case_verdict import Case, CaseReply, Judgement


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
    """Find the first name of a ranking that is a true one, letter by letter but for case and white space."""
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
