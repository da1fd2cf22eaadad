"""What a sweep's configuration says of places: read, derived from files, shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.model import ModelSpec
from cardiolens.inference.placement.placement import place
from cardiolens.inference.plan.candidates import Totals, at_hand, candidate, weight_gib
from cardiolens.inference.plan.missing import WORK, Missing
from cardiolens.storage.model_files import check_length
from cardiolens.storage.places import run_of
from tests.unit.clusters import EIGHT


def model(**options: object) -> ModelSpec:
    return ModelSpec.model_validate({"name": "m", "source": "hub/m", **options})


def work(left: int, done: int, studies: int) -> Missing:
    row = {"study_id": "s", "part": "p", "rows": [0], "attempts": [1]}
    return Missing(WORK.empty_table().from_pylist([row] * studies, schema=WORK), left + done, done, 0)


def test_tokens_of_what_is_left_and_declared_limits_reach_the_placement():
    totals = Totals(asked=100, sent=100, prompt_tokens=1000, output_tokens=400)
    spec = model(weight_gib=16.0, tensor_parallel=2, replicas=3, card=EIGHT_BILLION)
    found = candidate(spec, "gpu", None, work(left=25, done=75, studies=5), totals)
    assert (found.prompt_tokens, found.output_tokens, found.studies) == (250, 100, 5)
    assert (found.tensor_parallel, found.replicas, found.heads, found.billions) == (2, 3, 32, 8)


def test_a_model_that_lacks_weights_can_be_planned_and_not_run(tmp_path: Path):
    def refusals(**options: object) -> list[str]:
        spec = model(weight_gib=16.0, **options)
        one = candidate(spec, "gpu", tmp_path, work(left=1, done=0, studies=1), None)
        return list(place(EIGHT, [one]).refusals.values())

    (said,) = refusals()
    assert f"m: {tmp_path} holds no weights (*.safetensors, *.bin, *.pt)" in said
    assert refusals(engine_options={"load_format": "dummy"}) == []
    (tmp_path / "model-1.safetensors").write_bytes(b"")
    assert refusals() == []
    names = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(names))
    (said,) = refusals()
    assert "lacks model-2.safetensors, which model.safetensors.index.json names" in said


def test_a_model_of_unknown_size_is_refused_alone():
    one = candidate(model(), "gpu", None, work(left=1, done=0, studies=1), None)
    other = candidate(model(name="other", weight_gib=3.0), "gpu", None, work(left=1, done=0, studies=1), None)
    placement = place(EIGHT, [one, other])
    assert "weight_gib is not declared" in placement.refusals["m"]
    assert [deployment.model for deployment in placement.deployments] == ["other"]


def test_models_that_are_not_here_are_left_out_and_named_only_if_asked(tmp_path: Path):
    conf = ["model=[tiny,oracle]", f"model.tiny.source={tmp_path}/nowhere"]
    spec = read_spec(conf)
    assert at_hand(spec) == (spec, {})
    narrowed, absent = at_hand(read_spec([*conf, "keep_going=true"]))
    assert [model.name for model in narrowed.model] == ["oracle"]
    assert "nowhere" in absent["tiny"]
    with pytest.raises(InputError, match="no model of this sweep is on this machine"):
        at_hand(read_spec(["model=[tiny]", f"model.tiny.source={tmp_path}/nowhere", "keep_going=true"]))


def test_how_a_model_is_served_changes_neither_run_nor_arms():
    words = ["model=[tiny]"]
    served = ["+model.tiny.tensor_parallel=2", "+model.tiny.replicas=3", "keep_going=true", "cluster.gpus=8"]
    assert run_of(read_spec(words)) == run_of(read_spec([*words, *served]))
    assert run_of(read_spec(words)) != run_of(read_spec([*words, "model.tiny.max_model_len=4096"]))


MIB = 2**20


EIGHT_BILLION = {
    **{"architecture": "X", "field": "general", "licence": "x", "context": 1, "thinking": "never"},
    **{"image_rule": "x", "verified": "none", "note": "x", "parameters": 8, "attention_heads": 32},
}


def write(path: Path, mib: int) -> None:
    path.write_bytes(b"\0" * mib * MIB)


def mib(spec: ModelSpec, folder: Path | None) -> float:
    found = weight_gib(spec, folder)
    assert found is not None
    return found * 1024


def test_declared_measured_or_from_parameters(tmp_path: Path):
    write(tmp_path / "model-1.safetensors", 2)
    write(tmp_path / "model-2.safetensors", 2)
    assert mib(model(card=EIGHT_BILLION), tmp_path) == pytest.approx(4, abs=0.01)
    assert weight_gib(model(weight_gib=3.0), tmp_path) == 3.0
    assert weight_gib(model(card=EIGHT_BILLION), None) == pytest.approx(14.9, abs=0.01)
    assert weight_gib(model(), None) is None


def test_a_second_copy_of_the_weights_is_not_counted(tmp_path: Path):
    write(tmp_path / "model-1.safetensors", 2)
    write(tmp_path / "consolidated.safetensors", 3)
    assert mib(model(), tmp_path) == pytest.approx(2, abs=0.01)
    mistral = model(engine_options={"load_format": "mistral"})
    assert mib(mistral, tmp_path) == pytest.approx(3, abs=0.01)
    write(tmp_path / "old.safetensors", 5)
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-1.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert mib(model(), tmp_path) == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize(
    ("config", "most"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"text_config": {"max_position_embeddings": 4096}}, 4096),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "mrope"}}, 4096),
    ],
)
def test_a_length_within_the_models_positions_is_taken(
    config: dict[str, Any], most: int, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    check_length(tmp_path, most)
    with pytest.raises(InputError, match=rf"max_model_len: {most + 1:,} is more than the {most:,} tokens"):
        check_length(tmp_path, most + 1)


SCALED = {"rope_scaling": {"type": "linear", "factor": 2.0}}, {"rope_parameters": {"full": {"factor": 2}}}


@pytest.mark.parametrize("config", [{}, *({"max_position_embeddings": 4096} | each for each in SCALED)])
def test_positions_that_are_scaled_or_not_named_are_left_to_the_engine(
    config: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    check_length(tmp_path, 10**6)
