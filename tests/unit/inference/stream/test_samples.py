"""Several samples of one question: drawn apart, kept apart, and judged by their majority."""

import math
import shutil
from collections import Counter, defaultdict

import pytest
from chain_cohort import check_lost_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cohort import answer, judge, make_cohort, reader, requests_of, stored, sweep_spec, swept

from cardiolens.inference.engine.ask import Engine, ErrorKind, Reply, RequestError
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream.loader import stage_counter
from cardiolens.protocol.dialogue.chain import SAMPLED, Sample, samples_of, samples_to_lines
from cardiolens.storage import schemas, tables

PATIENTS = 2

ONE = {"name": "standard", "style": "standard", "max_tokens": 64}
TEMPERATURE = 0.7


def several(n, **changes):
    return ONE | {"name": f"samples{n}", "samples": n} | changes


class Drawing(Engine):
    """Reader that says to each seed what it is told to; it can fail or refuse a seed."""

    def __init__(self, says=(), fails=None, refuses=()):
        self.asked = []
        self._says, self._fails, self._refuses = says, fails, refuses

    async def answer(self, ask, pictures):
        self.asked.append(ask)
        for key in ask.frame_keys:
            pictures(key)
        if ask.seed is not None and ask.seed == self._fails:
            raise RequestError(ErrorKind.FAILED, "no luck")
        says = dict(enumerate(self._says)).get(ask.seed, "ANSWER: A")
        refused = ask.seed in self._refuses
        return Reply("" if refused else says, "stop", 10, 4, 1, refused=refused)


def spec_of(root, *prompts, **changes):
    changes = {"subtask": ["C10", "C01"], "prompt": list(prompts) or [several(3)]} | changes
    return sweep_spec(root, *changes.pop("model", [reader("uniform")]), **changes)


def completions_of(planned):
    return {row["request_key"]: row for row in tables.read(stored(planned), schemas.COMPLETIONS).to_pylist()}


def test_samples_are_the_same_question_with_seeds_and_a_temperature(fresh):
    drawing = Drawing()
    planned, judged = swept(spec_of(fresh, ONE, several(3)), drawing)
    rows = [row for row in requests_of(planned) if row["stage"]]
    assert {row["stage"] for row in rows} == {2}
    assert judged.replies.counts["ok"] == 2 * len(rows)
    assert judged.replies.unrequested == 0
    alone = {(ask.text, ask.frame_keys): ask for ask in drawing.asked if ask.seed is None}
    drawn = defaultdict(list)
    for ask in drawing.asked:
        if ask.seed is not None:
            drawn[ask.text, ask.frame_keys].append(ask)
    assert drawn.keys() == alone.keys()
    for shown, asks in drawn.items():
        assert [ask.seed for ask in asks] == [0, 1, 2]
        assert {ask.temperature for ask in asks} == {TEMPERATURE}
        assert {(ask.constraint, ask.max_tokens) for ask in asks} == {
            (alone[shown].constraint, alone[shown].max_tokens)
        }


def test_the_row_of_samples_holds_each_reply_and_what_all_cost(fresh):
    planned, _ = swept(spec_of(fresh), Drawing(["ANSWER: B", "hm\nANSWER: A", "ANSWER: B"]))
    found = completions_of(planned)
    for request in requests_of(planned):
        row = found[request["request_key"]]
        assert [one.text for one in samples_of(row["text"])] == ["ANSWER: B", "hm\nANSWER: A", "ANSWER: B"]
        assert row["finish_reason"] == SAMPLED
        assert (row["prompt_tokens"], row["cached_tokens"], row["output_tokens"]) == (30, 12, 3)


@pytest.mark.parametrize(
    ("says", "parsed", "status"),
    [
        (["ANSWER: A", "ANSWER: B", "ANSWER: B"], "B", "ok"),
        (["ANSWER: B", "ANSWER: A", "no idea"], "B", "ok"),  # a tie goes to the earliest
        (["no idea", "", "ANSWER: B"], "B", "ok"),  # what cannot be read has no vote
        (["no idea", "or other", "none of it"], None, "parse_error"),
    ],
)
def test_the_judge_reads_the_reply_that_most_agree_with(fresh, says, parsed, status):
    _, judged = swept(spec_of(fresh, subtask=["C01"]), Drawing(says))
    rows = judged.replies.verdicts.to_pylist()
    assert rows
    for row in rows:
        assert row["parse_status"] == status
        assert row["parsed"] == ([parsed] if parsed else [])


def test_a_refused_sample_has_no_vote_and_all_refused_are_a_refusal(fresh):
    planned, judged = swept(spec_of(fresh, subtask=["C01"]), Drawing(["x", "ANSWER: B", "x"], refuses={0, 2}))
    assert {tuple(row["parsed"]) for row in judged.replies.verdicts.to_pylist()} == {("B",)}
    assert judged.replies.counts["refused"] == 0
    shutil.rmtree(stored(planned))
    _, judged = swept(spec_of(fresh, subtask=["C01"]), Drawing(refuses={0, 1, 2}))
    assert {row["parse_status"] for row in judged.replies.verdicts.to_pylist()} == {"refusal"}
    assert judged.replies.counts["refused"] == judged.replies.verdicts.num_rows


@pytest.mark.parametrize("fails", [0, 2])
def test_a_sample_that_failed_is_asked_again_and_no_other(fresh, fails):
    planned, judged = swept(spec_of(fresh), Drawing(fails=fails))
    n = len(requests_of(planned))
    assert {row["status"] for row in judged.replies.verdicts.to_pylist()} == {"engine_error"}
    wanted = {request["request_key"] for request in requests_of(planned)}
    rows = tables.read(stored(planned), schemas.COMPLETIONS).to_pylist()
    errors = {row["error"] for row in rows if row["request_key"] in wanted}
    assert errors == {f"sample {fails + 1} of 3: no luck"}
    again = Drawing()
    _, judged = swept(spec_of(fresh), again)
    assert judged.replies.counts["ok"] == n
    assert [ask.seed for ask in again.asked] == [fails] * n


@pytest.mark.full
@settings(max_examples=4, deadline=None)
@given(lost=st.data())
def test_whatever_rows_are_lost_the_same_tables_come_and_nothing_else_is_asked(root, lost):
    check_lost_rows(spec_of(root), lambda: Drawing(["ANSWER: A", "ANSWER: B", "ANSWER: B"]), lost)


def test_fewer_samples_are_the_first_of_more(fresh):
    drawing = Drawing()
    planned, judged = swept(spec_of(fresh, several(3), several(5)), drawing)
    questions = len(requests_of(planned)) // 2
    assert len(drawing.asked) == 5 * questions  # not 8
    texts = [row["text"] for row in completions_of(planned).values() if row["finish_reason"] == SAMPLED]
    assert {len(samples_of(text)) for text in texts} == {3, 5}
    counts = [(one.asked, one.unique) for one in judged.replies.stages["uniform"]]
    assert counts == [(2 * questions, questions)] * 3 + [(questions, questions)] * 2
    later = Drawing()
    swept(spec_of(fresh, several(7)), later)
    assert {ask.seed for ask in later.asked} == {5, 6}


def test_samples_without_a_seed_of_the_model_are_shared_and_single_replies_are_not(fresh):
    """A sample has a seed; the one reply of a model that draws without one belongs to its arm."""
    model = reader("uniform") | {"sampling": {"temperature": 0.5}}
    drawing = Drawing()
    planned, _ = swept(spec_of(fresh, ONE, several(3), several(5), model=[model]), drawing)
    questions = len(requests_of(planned)) // 3
    assert Counter(ask.seed for ask in drawing.asked) == {seed: questions for seed in (None, 0, 1, 2, 3, 4)}


@given(st.lists(st.builds(Sample, st.text(), st.text(), st.sampled_from(["ok", "refused"])), min_size=1))
def test_replies_are_found_again_in_the_text_that_holds_them(samples):
    assert samples_of(samples_to_lines(samples)) == tuple(samples)
    assert len(samples_to_lines(samples).split("\n")) == len(samples)


ERROR = 0.3
MANY = 15


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return make_cohort(tmp_path_factory.mktemp("majority"), MANY)


@pytest.mark.full
@pytest.mark.parametrize("n", [1, 3])
def test_the_majority_is_right_as_often_as_the_binomial_says_and_costs_n_times_as_much(many, n):
    """Questions with two options; each wording and the repeated question are draws of their own."""
    changes = {"subtask": ["C11", "L01", "P01", "T01"], "wording": [0, 1, 2], "control": ["none", "repeat"]}
    spec = sweep_spec(many, reader("noisy", error=ERROR), prompt=[ONE if n == 1 else several(n)], **changes)
    planned = plan(spec)
    counted = answer(planned)["noisy"]
    rows = judge(planned).replies.verdicts.to_pylist()
    questions = len(rows)
    assert questions == MANY * 4 * 3 * 2
    wanted = sum(math.comb(n, k) * (1 - ERROR) ** k * ERROR ** (n - k) for k in range(n // 2 + 1, n + 1))
    right = sum(row["correct"] for row in rows) / questions
    assert abs(right - wanted) < 3 * math.sqrt(wanted * (1 - wanted) / questions)
    if n > 1:
        assert [counted[stage_counter(number)] for number in range(n + 1)] == [questions] * n + [0]
