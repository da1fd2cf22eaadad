"""One comparison declared before a run."""

import json
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.sweep import parse
from cardiolens.config.sweep_factors import PrimarySpec
from cardiolens.inference.plan.plan import plan
from cardiolens.show.terminal.show import show_plan
from cardiolens.storage import documents
from cardiolens.storage.places import run_of
from cardiolens.workflow.steps.conclude import write_manifest

PRIMARY = "primary={model: oracle, versus: uniform, tier: 1}"


def test_a_comparison_is_declared_on_the_command_line():
    spec = read_spec(["model=[oracle,uniform]", PRIMARY])
    assert spec.primary == PrimarySpec(model="oracle", versus="uniform", tier=1)
    assert read_spec([]).primary is None
    assert run_of(spec) != run_of(read_spec(["model=[oracle,uniform]"]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{model: oracle, versus: gemma, tier: 1}", "primary names 'gemma', which is none of the models"),
        ("{model: oracle, versus: oracle, tier: 1}", "compares oracle with itself"),
        ("{model: oracle, versus: uniform, tier: 4}", "less than or equal to 3"),
        ("{model: oracle, versus: uniform}", "primary.tier"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        read_spec(["model=[oracle,uniform]", f"primary={given}"])


def test_it_is_kept_with_its_hash_before_the_run_and_cannot_be_changed(small_sweep, capsys):
    (one,) = small_sweep.model
    tree = small_sweep.model_dump(by_alias=True)
    other = one.model_dump(by_alias=True) | {"name": "second"}
    primary = {"model": "uniform", "versus": "second", "tier": 1}
    spec = parse(tree | {"model": [tree["model"][0], other], "budget": [16], "primary": primary})
    planned = plan(spec)
    show_plan(planned, {}, {})
    assert "primary comparison: uniform against second on tier 1" in " ".join(capsys.readouterr().out.split())
    assert documents.read_declaration(planned.run, small_sweep) is None
    documents.declare(planned.run, spec, n_answered=3)
    kept = json.loads(planned.run.declaration.read_text())
    assert {name: kept[name] for name in primary} == primary
    assert kept["answered_before"] == 3
    assert documents.answered_before(planned.run, spec) == 3
    show_plan(planned, {}, {})
    shown = " ".join(capsys.readouterr().out.split())
    assert "declared when 3 answers were there already, so not tested alone" in shown
    documents.declare(planned.run, spec, n_answered=0)
    assert json.loads(planned.run.declaration.read_text()) == kept
    write_manifest(planned, {})
    assert json.loads(planned.run.manifest.read_text())["primary"] == kept
    _write(planned.run.declaration, kept | {"answered_before": "none"})
    assert documents.answered_before(planned.run, spec) is None
    _write(planned.run.declaration, kept | {"tier": 2})
    with pytest.raises(InputError, match="is not the comparison that the run was started with"):
        documents.read_declaration(planned.run, spec)


def test_a_manifest_without_a_declared_comparison_says_so(small_sweep):
    planned = plan(small_sweep)
    write_manifest(planned, {})
    assert json.loads(planned.run.manifest.read_text())["primary"] is None
    assert not planned.run.declaration.exists()


def _write(path: Path, tree: object) -> None:
    path.write_text(json.dumps(tree))


@pytest.mark.parametrize(
    ("change", "lacking"), [("budget=[8,32]", "budget 16"), ("prompt=[reasoning]", "prompt")]
)
def test_a_run_without_headlines_cannot_declare_one(change, lacking):
    with pytest.raises(InputError, match=f"headlines, which are asked with {lacking}"):
        read_spec(["model=[oracle,uniform]", PRIMARY, change])
