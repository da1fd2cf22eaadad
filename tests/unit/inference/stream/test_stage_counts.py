"""Counts of the stages of chains, in the manifest and on the page: of runs that go on, of shared stages."""

import json
from pathlib import Path

import pytest
from chain_cohort import SELF, Scribe, make_cohort, spec_of
from small_cohort import answer

from cardiolens.inference.engine.ask import Ask, Numerics, Pictures, Reply
from cardiolens.inference.engine.readers import Reader
from cardiolens.inference.placement.placement import Placement
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream.execution import Executed
from cardiolens.inference.stream.pipeline import Streamed
from cardiolens.storage import documents, schemas, tables
from cardiolens.workflow.steps.conclude import conclude
from cardiolens.workflow.steps.prepare_cases import Prepared

N = 3
LONGER = SELF | {"name": "longer", "max_tokens": 65}


@pytest.fixture
def root(tmp_path):
    return make_cohort(tmp_path, N)


def concluded(spec, scribe):
    """Sweep, and conclude as a sweep does; the exit code and the run."""
    planned = plan(spec)
    left = {name: missing_of(planned, name) for name in planned.identities}
    documents.write_configuration(planned.run, spec)
    counted = answer(planned, scribe)
    executed = Executed(streamed={name: Streamed(each, frozenset()) for name, each in counted.items()})
    return conclude(planned, Prepared(0, 0, (), 0.0, 0), left, Placement((), (), ()), executed), planned.run


def stages_of(run):
    """The stages in the manifest by number."""
    stages = json.loads(run.manifest.read_text())["stages"]
    return {stage.pop("stage"): stage for stage in stages}


def counts(asked, unique, executed, ok, **ends):
    numbers = {"asked": asked, "unique": unique, "executed": executed}
    return {"model": "uniform", **numbers, "ok": ok, "refused": 0, "failed": 0, **ends}


def test_each_stage_counts_what_it_asked_and_only_what_this_invocation_executed(root):
    code, run = concluded(spec_of(root), Scribe("2", "failed"))
    assert code == 1
    assert stages_of(run) == {1: counts(N, N, N, N), 2: counts(N, N, N, 0, failed=N)}
    code, run = concluded(spec_of(root), Scribe())
    assert code == 0
    assert stages_of(run) == {1: counts(N, N, 0, N), 2: counts(N, N, N, N), 3: counts(N, N, N, N)}
    manifest = json.loads(run.manifest.read_text())
    assert manifest["requests"]["executed"] == N
    assert manifest["tokens"] == {"prompt": 20 * N, "computed": 20 * N, "output": 2 * N}  # of two stages each
    concluded(spec_of(root), Scribe())
    assert [stage["executed"] for stage in stages_of(run).values()] == [0, 0, 0]


def test_a_stage_that_arms_share_is_asked_for_both_and_executed_once(root):
    _, run = concluded(spec_of(root, SELF, LONGER), Scribe())
    shared = counts(2 * N, N, N, N)
    assert stages_of(run) == {1: shared, 2: shared, 3: counts(2 * N, 2 * N, 2 * N, 2 * N)}


def test_an_arm_that_comes_later_executes_its_last_stage_alone(root):
    concluded(spec_of(root), Scribe())
    _, run = concluded(spec_of(root, SELF, LONGER), Scribe())
    shared = counts(2 * N, N, 0, N)
    assert stages_of(run) == {1: shared, 2: shared, 3: counts(2 * N, 2 * N, N, 2 * N)}


ONE = Numerics("vllm 0.32.0", "NVIDIA H200", "FLASH_ATTN", 2)
OTHER = ONE._replace(tensor_parallel=4)


class Computing(Reader):
    """An engine that knows how it computes, in turn in each of some ways."""

    def __init__(self, *ways: Numerics) -> None:
        self._ways, self._asked = ways, 0

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self._asked += 1
        return Reply("ANSWER: A", "stop", numerics=self._ways[self._asked % len(self._ways)])


@pytest.mark.parametrize(("prompts", "n_rows"), [((), 4), ((SELF,), 12)])
def test_one_way_to_compute_is_in_each_row_and_no_news_on_the_page(tmp_path: Path, prompts, n_rows) -> None:
    spec = spec_of(make_cohort(tmp_path, 4), *prompts)
    _, run = concluded(spec, Computing(ONE))
    (folder,) = (spec.store / "completions").iterdir()
    rows = tables.read(folder, schemas.COMPLETIONS, ONE._fields).to_pylist()
    assert len(rows) >= n_rows
    assert {tuple(row.values()) for row in rows} == {ONE}
    assert json.loads(run.manifest.read_text())["numerics"] == {"uniform": [{**ONE._asdict(), "requests": 4}]}
    assert "round differently" not in run.page.read_text()


def test_several_ways_are_counted_and_the_page_says_so(tmp_path: Path) -> None:
    direct = {"name": "standard", "style": "standard", "max_tokens": 64}
    _, run = concluded(spec_of(make_cohort(tmp_path, 4), direct), Computing(ONE, ONE, ONE, OTHER))
    found = json.loads(run.manifest.read_text())["numerics"]["uniform"]
    assert [(one["tensor_parallel"], one["requests"]) for one in found] == [(2, 3), (4, 1)]
    page = run.page.read_text()
    assert "The answers of uniform come from 2 ways to compute" in page
    assert "vllm 0.32.0, NVIDIA H200, FLASH_ATTN, tensor parallel 2 (3 requests)" in page
