"""Counts of the stages of chains, in the manifest and on the page: of runs that go on, of shared stages."""

import json

import pytest
from chain_cohort import SELF, Scribe, make_cohort, spec_of
from small_cohort import answer

from cardiolens.inference.placement.placement import Placement
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream.execution import Executed
from cardiolens.inference.stream.pipeline import Streamed
from cardiolens.storage import documents
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


def test_a_refused_stage_is_the_last_that_is_asked(root):
    code, run = concluded(spec_of(root), Scribe("1", "refused"))
    assert code == 0
    assert stages_of(run) == {1: counts(N, N, N, 0, refused=N)}


def test_a_sweep_without_chains_has_no_stages(root):
    _, run = concluded(spec_of(root, SELF | {"steps": "none"}), Scribe())
    assert stages_of(run) == {}
