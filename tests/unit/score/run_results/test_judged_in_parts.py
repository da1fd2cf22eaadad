"""Judging part by part: the same verdicts, counts and scores to the last digit."""

from typing import Any

import pytest
from page_run import PROMPTS, SELECTORS, with_probabilities
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.inference.plan import plan as planning
from cardiolens.inference.plan.plan import Plan
from cardiolens.score.run_results import model_replies
from cardiolens.score.run_results import stored_replies as aligned
from cardiolens.score.run_results.scoring import RunResults, judge_and_write
from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import COMPLETIONS, REQUESTS

pytestmark = pytest.mark.full

CONTROLS = ["none", "blind", "shuffled_options", "reversed_options"]
SOME = ["C02", "L01", "D02", "R-CINE"]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A run with shared requests, probabilities, moved options, doubles, strangers, and failures."""
    root = make_cohort(tmp_path_factory.mktemp("parts"), 8)
    statistics = {"min_n": 1, "resamples": 20, "seed": 7}
    options: dict[str, Any] = {"budget": [4], "selector": SELECTORS[:1], "prompt": PROMPTS[:1]}
    options |= {"control": CONTROLS, "subtask": SOME, "statistics": statistics}
    readers = reader("noisy", error=0.3), reader("constant", answer="A")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planning, "PART_ROWS", 20)
        done, _ = swept(sweep_spec(root, *readers, **options))
    with_probabilities(done, "noisy")
    folder = done.store.completions(keys_of(done)["noisy"])
    rows = tables.read(folder, COMPLETIONS).to_pylist()
    later = max(row["written_at"] for row in rows)
    more = [rows[1] | {"written_at": later}, rows[2] | {"written_at": later, "text": "something else"}]
    more += [rows[3] | {"request_key": "of another sweep"}, rows[4] | {"status": "engine_error"}]
    more += [rows[5] | {"status": "engine_error"}]
    left = [row for number, row in enumerate(rows) if number not in (4, 6)]
    tables.replace(folder, tables.from_rows(left + more, COMPLETIONS), COMPLETIONS)
    return done


def keys_of(planned: Plan) -> dict[str, str]:
    return {name: identity.model_key for name, identity in planned.identities.items()}


def judged(planned: Plan) -> RunResults:
    return judge_and_write(planned.run, planned.store, keys_of(planned), planned.spec)


def said(results: RunResults, planned: Plan) -> tuple[str, ...]:
    """All that judging gives, to the last digit."""
    replies, run = results.replies, planned.run
    written = tables.read(run.verdicts, schemas.VERDICTS), tables.read(run.scores, schemas.SCORES)
    counts = sorted((name, number) for name, number in replies.counts.items() if number)
    tables_of_run = (repr(table.to_pylist()) for table in written)
    return *tables_of_run, run.analyses.read_text(), repr(counts), repr(replies.stages)


def test_parts_of_a_model_change_no_digit(planned: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    results = judged(planned)
    whole = said(results, planned)
    ends = {"ok", "engine_error", "missing", "agreeing", "disagreeing", "unrequested"}
    assert {name for name, number in results.replies.counts.items() if number} == ends
    requests = planned.run.requests("noisy")
    sizes: list[int] = []
    judge = model_replies.judge

    def counted(asked: Any, *others: Any) -> Any:
        sizes.append(asked.num_rows)
        return judge(asked, *others)

    monkeypatch.setattr(aligned, "BLOCK", 16)
    monkeypatch.setattr(model_replies, "judge", counted)
    alike = said(judged(planned), planned) == whole  # a difference of the texts would take long to show
    assert alike
    assert len(sizes) == 2 * len(tables.parts(requests))
    assert max(sizes) < tables.read(requests, REQUESTS).num_rows / 2


def test_requests_that_blocks_share_are_counted_once(planned: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligned, "BLOCK", 16)
    distinct, shared = 0, 0
    for model in keys_of(planned):
        parts = [
            set(tables.read_part(part, REQUESTS, ("request_key",))["request_key"].to_pylist())
            for part in tables.parts(planned.run.requests(model))
        ]
        distinct += len(set[str]().union(*parts))
        shared += sum(map(len, parts)) - len(set[str]().union(*parts))
    assert shared, "a blind request is one for many studies"
    counts = judged(planned).replies.counts
    assert sum(counts[name] for name in ("ok", "refused", "engine_error", "missing")) == distinct
