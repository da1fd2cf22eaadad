"""A store that an early version wrote is opened as it is, and its run is refused by name.

`earlier_store` was written by the code of commit 16f7345c (22 November 2026, the first that ran a
sweep): one view of a phantom, one question, the replies of two readers.
"""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.inference.plan.plan import plan
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run, Store
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.upkeep.compact import compact
from cardiolens.workflow.upkeep.store_checks import problems

RECORDED = Path(__file__).parent / "earlier_store"
MODELS = ["oracle", "uniform"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "earlier"))


def texts(store: Store) -> list[str]:
    """The replies in a store, which lack the later column `reasoning`."""
    replies = []
    for model in sorted(store.completions("").iterdir()):
        rows = tables.read(model, schemas.COMPLETIONS)
        assert rows["reasoning"].null_count == rows.num_rows
        replies += rows["text"].to_pylist()
    return replies


def test_every_table_opens_and_nothing_is_called_broken(folder: Path) -> None:
    store = Store(folder / "store")
    assert list(problems(store)) == []
    assert texts(store) == ["ANSWER: A", "ANSWER: A"]
    cohort = read_cohort(store.root)
    assert cohort is not None
    assert list(cohort.studies) == ["PH-NORMAL"]


def test_compacting_keeps_what_was_replied(folder: Path) -> None:
    store = Store(folder / "store")
    before = texts(store)
    assert [done.rows for done in compact(store)] == [1, 1]
    assert texts(store) == before
    assert list(problems(store)) == []


def test_a_sweep_of_today_is_planned_on_it(folder: Path) -> None:
    words = [f"dataset.questions={folder}/questions.jsonl", f"dataset.studies={folder}/studies"]
    words += [f"store={folder}/store", f"outputs={folder}/outputs", f"model=[{','.join(MODELS)}]"]
    spec = read_spec(["dataset=real", *words, "budget=[2]", "tracker=none"])
    planned = plan(spec)
    for name in MODELS:
        assert tables.read(planned.run.requests(name), schemas.REQUESTS).num_rows == 1
        assert planned.store.completions(planned.identities[name].model_key).is_dir()


def test_its_run_is_refused_by_the_name_of_what_changed(folder: Path) -> None:
    with pytest.raises(InputError, match=r"unknown key 'experiment'.*another version of CardioLens wrote it"):
        documents.read_configuration(Run(folder / "run"))


def test_a_part_with_another_column_is_still_called_broken(folder: Path) -> None:
    store = Store(folder / "store")
    (part, *_) = tables.parts(next(store.completions("").iterdir()))
    with tables.open_part(part) as opened:
        rows = opened.read()
    pq.write_table(rows.drop_columns(["finish_reason"]), part)
    (problem,) = problems(store)
    assert "its columns are not those of table" in problem
