"""Questions by name are asked alone, and what ended in an error is asked again alone."""

from pathlib import Path

import pytest
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.base.errors import InputError
from cardiolens.inference.plan.missing import missing, missing_of
from cardiolens.inference.plan.plan import plan
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import run_of


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("small"), 4)


def qa_ids(root: Path, **changes: object) -> list[str]:
    planned = plan(sweep_spec(root, reader("uniform"), **changes))
    return sorted(set(tables.read(planned.run.requests("uniform"), schemas.REQUESTS)["qa_id"].to_pylist()))


def test_named_questions_are_asked_alone_in_a_run_of_their_own(root: Path) -> None:
    every = qa_ids(root)
    chosen = [every[0], every[-1]]
    assert qa_ids(root, item=chosen) == chosen
    assert qa_ids(root, item=chosen[0]) == chosen[:1]
    specs = [sweep_spec(root, reader("uniform"), **changes) for changes in ({}, {"item": chosen})]
    assert run_of(specs[0]).root != run_of(specs[1]).root


def test_an_item_that_is_not_asked_is_refused_with_the_nearest(root: Path) -> None:
    every = qa_ids(root)
    with pytest.raises(InputError, match=f"item: '{every[0]}x' is none of .*, e.g. {every[0]}"):
        qa_ids(root, item=[f"{every[0]}x"])
    with pytest.raises(InputError, match="widen subtask and limit"):
        qa_ids(root, item=[every[-1]], limit=1)
    first = every[0].split(":")[1]
    other = next(qa_id for qa_id in every if f":{first}" not in qa_id)
    with pytest.raises(InputError, match="widen subtask and limit"):
        qa_ids(root, item=[other], subtask=[first])


def test_a_request_that_failed_is_asked_again_up_to_the_attempts(root: Path) -> None:
    spec = sweep_spec(root, reader("uniform"), stream={"max_attempts": 4})
    assert run_of(spec).root == run_of(sweep_spec(root, reader("uniform"))).root, "the same run goes on"
    planned = plan(spec)
    requests = planned.run.requests("uniform")
    keys = tables.read(requests, schemas.REQUESTS)["request_key"].to_pylist()
    ok, failed = keys[0], keys[1]
    folder = planned.store.completions(planned.identities["uniform"].model_key)
    statuses = [(ok, "engine_error"), (ok, "ok"), *[(failed, "engine_error")] * 3]
    rows = [{"request_key": key, "status": status} for key, status in statuses]
    tables.write_part(folder, tables.from_rows(rows, schemas.COMPLETIONS), schemas.COMPLETIONS)
    assert missing_of(planned, "uniform").left == len(set(keys)) - 1
    usual = missing(requests, folder, 3)
    assert (usual.done, usual.exhausted, usual.left) == (1, 1, len(set(keys)) - 2)
