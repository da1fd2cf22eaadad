"""The orders of options in which a training asks one question."""

from random import Random

from cardiolens.inference.plan.planned_question import PlannedQuestion
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.select.route import Route
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.reader.examples import in_orders


def planned(subtask_id: str) -> PlannedQuestion:
    subtask = load_catalogue("openprotocol-1").subtasks[subtask_id]
    options = tuple((option.key, option.text) for option in subtask.options)
    asked = AskedQuestion(
        subtask=subtask.id,
        sequence=subtask.sequence,
        question=subtask.question,
        answer_type=subtask.answer_type,
        options=options,
        exclusive=subtask.exclusive,
    )
    return PlannedQuestion("q1", "s1", asked, Route.of(subtask))


def test_a_question_is_asked_as_the_protocol_words_it_and_in_other_orders():
    question = planned("L03")
    first, *others = in_orders(question, Random(1))
    assert first == question
    assert others
    for other in others:
        assert sorted(other.asked.options) == sorted(question.asked.options)
        assert other.asked.options != question.asked.options
    assert len({other.asked.options for other in others}) == len(others)


def test_no_letter_tells_an_option():
    draw = Random(2)
    options = planned("L03").asked.options
    places = {key: [0] * len(options) for key, _ in options}
    for _ in range(600):
        _, *others = in_orders(planned("L03"), draw)
        for other in others:
            for place, (key, _) in enumerate(other.asked.options):
                places[key][place] += 1
    counts = [count for of_key in places.values() for count in of_key]
    assert min(counts) > 0.6 * max(counts), places


def test_the_grades_of_an_ordinal_question_are_only_turned_round():
    ordinal = next(
        subtask
        for subtask in load_catalogue("openprotocol-1").subtasks.values()
        if subtask.answer_type == "ordinal"
    )
    first, other = in_orders(planned(ordinal.id), Random(3))
    assert other.asked.options == first.asked.options[::-1]
    assert other.asked.reversed
