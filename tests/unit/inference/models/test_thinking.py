"""Which models think, and the warning before a run where nothing separates their reasoning."""

from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cardiolens.config.conf_names import packaged_conf
from cardiolens.config.model import ModelSpec
from cardiolens.inference.models.identity import unseparated


def model(**fields: Any) -> ModelSpec:
    return ModelSpec(**{"name": "m", "source": "a/b"} | fields)


@pytest.mark.parametrize(
    ("fields", "thinks"),
    [
        ({}, False),
        ({"source": "Qwen/Qwen3-VL-8B-Thinking"}, True),
        ({"source": "deepseek-ai/DeepSeek-R1"}, True),
        ({"source": "a/r10-vision"}, False),
        ({"source": "mistralai/Magistral-Small-2509"}, True),
        ({"template_options": {"enable_thinking": True}}, True),
        ({"source": "a/b-thinking", "template_options": {"enable_thinking": False}}, False),
    ],
)
def test_a_model_thinks_by_its_options_or_its_name(fields: dict[str, Any], thinks: bool) -> None:
    assert model(**fields).thinks is thinks


def test_a_thinking_model_without_a_parser_is_a_warning() -> None:
    loud = model(source="a/b-thinking")
    quiet = [model(source="a/b-thinking", reasoning_parser="qwen3"), model()]
    warnings = unseparated(SimpleNamespace(model=[loud, *quiet]))  # type: ignore[arg-type]
    assert len(warnings) == 1
    assert "reasoning_parser" in warnings[0]


def test_the_parser_of_magistral_is_refused_with_a_way_out_and_without_it_a_sweep_warns() -> None:
    with pytest.raises(ValueError, match=r"Mistral's own tokenizer.*engine: http"):
        model(source="mistralai/Magistral-Small-2509", reasoning_parser="mistral")
    magistral = model(source="mistralai/Magistral-Small-2509")
    assert len(unseparated(SimpleNamespace(model=[magistral]))) == 1  # type: ignore[arg-type]


def test_models_of_the_catalogue_that_can_think_name_their_parser() -> None:
    for path in sorted((packaged_conf() / "model").glob("*.yaml")):
        entry = next(iter(yaml.safe_load(path.read_text(encoding="utf-8")).values()))
        can_think = (entry.get("card") or {}).get("thinking", "never") != "never"
        if can_think and entry.get("engine", "vllm") == "vllm":
            assert entry.get("reasoning_parser"), path.name
