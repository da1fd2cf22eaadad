"""Field scores: the worked example of the paper's case study, letters with gaps, and their scopes."""

import numpy as np
import pytest

from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.score.statistics import items as item_rows
from cardiolens.score.statistics.arm_statistics import FIELD_METRICS, arm_statistics, field_scopes, set_scores
from cardiolens.score.statistics.items import Answers, Vocabulary, items
from cardiolens.score.statistics.statistic import Resampling, Settings
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.score.verdicts.verdicts import judge
from cardiolens.storage import schemas, tables

AUTHORS = load_catalogue("authors-1")
ONE = np.ones((2, 4))


def judged(subtask: str, *replies: tuple[str, str | None]) -> item_rows.Items:
    """The items of replies (truth, reply) to a field, one patient each; None: no reply."""
    field = AUTHORS[subtask]
    questions, requests, completions = [], [], []
    for number, (truth, reply) in enumerate(replies):
        key = f"{number:032x}"
        options = [{"key": option.key, "text": option.text} for option in field.options]
        questions.append(
            {
                **{"qa_id": f"p{number}:{subtask}", "study_id": f"p{number}", "patient_id": f"p{number}"},
                **{"tier": 1, "subtask": subtask, "sequence": field.sequence, "question": field.question},
                **{"answer_type": field.answer_type, "options": options, "answer": list(truth)},
                **{"exclusive": list(field.exclusive), "origin": "phantom", "protocol": "authors-1"},
            }
        )
        requests.append(
            {
                **{"arm_id": "arm", "qa_id": f"p{number}:{subtask}", "request_key": key, "status": "planned"},
                "option_keys": list(field.keys),
            }
        )
        if reply is not None:
            completions.append(
                {"request_key": key, "text": reply, "status": "ok", "finish_reason": "stop", "attempt": 1}
            )
    verdicts = judge(
        tables.from_rows(requests, schemas.REQUESTS),
        tables.from_rows(completions, schemas.COMPLETIONS),
        tables.from_rows(questions, schemas.QUESTIONS),
    )
    return items(verdicts, Vocabulary.of(Verdicts.of(verdicts)))


def test_the_worked_example_of_the_case_study() -> None:
    hit, precision, recall, f1 = set_scores(judged("AL04", ("AB", "A, B, C, D, E"), ("AB", "B, C, D")))
    assert 100 * precision == pytest.approx([40.0, 100 / 3])
    assert 100 * recall == pytest.approx([100.0, 50.0])
    assert 100 * f1 == pytest.approx([400 / 7, 40.0])
    assert hit.tolist() == [1, 1]


def test_a_reply_that_names_nothing_has_zero_and_none_is_a_letter() -> None:
    rows = judged("AL04", ("Z", "Z"), ("Z", "I cannot tell."), ("F", "Z"), ("AF", "A, F\nReason: E is dark."))
    hit, precision, recall, f1 = set_scores(rows)
    assert hit.tolist() == [1, 0, 0, 1]
    assert precision.tolist() == recall.tolist() == f1.tolist() == [1, 0, 0, 1]
    assert rows.size == 7
    answers = Answers(rows, Answers.of(schemas.VERDICTS.empty_table()).reports)
    statistics = arm_statistics(answers, Resampling(Settings(1, 1, 1, scopes=field_scopes(AUTHORS)), ONE))
    assert statistics["set_accuracy", "subtask:AL04"].values == pytest.approx([0.5, 0.5])
    scopes = {"subtask:AL04", "view:lge_sax", "type:multi", "protocol:authors-1"}
    of_fields = {key for key in statistics if key[0] in FIELD_METRICS}
    of_sets = {(metric, scope) for metric in FIELD_METRICS for scope in scopes - {"subtask:AL04"}}
    assert of_fields == of_sets | {("set_accuracy", "subtask:AL04")}


def test_letters_with_gaps_are_bits_without() -> None:
    assert judged("AC09", ("Z", None), ("AB", "A")).gold.tolist() == [32, 3]


def test_only_protocols_of_single_views_have_field_scores() -> None:
    assert field_scopes(load_catalogue("openprotocol-1")) == {}
    joined = field_scopes(load_catalogue("openprotocol-1+authors-1"))
    assert joined["C02"] == ("subtask:C02", "protocol:openprotocol-1")
    assert joined["AT01"] == ("subtask:AT01", "view:t2_sax", "type:single", "protocol:authors-1")
    assert "D01" not in joined
