"""The catalogue of models, as far as it can be checked without their files, and the model that ships."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import Field

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec
from cardiolens.config.compose import read_spec
from cardiolens.config.conf_names import packaged_conf
from cardiolens.config.model import ModelCard, ModelSpec
from cardiolens.inference.engine.startup import check_engine_options
from cardiolens.inference.models.identity import absence, find_adapter, identify, room_for, ships, unseparated
from cardiolens.inference.placement.footprint import Candidate, Node, footprints

RUN_HERE = {"tiny", "reader_small"}  # by vLLM, in tests/ray
DIFFERING = ("name", "source", "revision", "weight_gib", "engine_options", "card")  # between precisions
# What was read of a model's own files -> what its entry may say
READ = {(): "none", ("config",): "config", ("template",): "template"}
READ |= {("config", "template"): "config and template"}


def catalogue() -> dict[str, ModelSpec]:
    names = sorted(path.stem for path in (packaged_conf() / "model").glob("*.yaml"))
    models = read_spec([f"model=[{','.join(name for name in names if name != 'served')}]"]).model
    return {model.name: model for model in models if model.card is not None}


MODELS = catalogue()
OPEN = {name: model for name, model in MODELS.items() if model.engine == "vllm"}


def card(model: ModelSpec) -> ModelCard:
    assert model.card is not None
    return model.card


class PublicCopy(Spec):
    """A public copy of one of a model's files, read for its entry; the copy is not in this project."""

    file: Literal["config", "processor", "template"]  # config.json, preprocessor_config.json, chat template
    of: str | None = None  # the model whose file it is, e.g. one in fewer bits; None: this one
    repository: str  # owner/name on GitHub; hub:owner/name: a stored page of the model hub
    path: str  # of the copy in it; after #: the entry, where a file carries several
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None  # None: not known
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None  # of its text; None: read in parts
    values: Mapping[str, int] = {}  # as the file names them, e.g. num_attention_heads
    note: str = ""  # what it was compared with, and where it differs


def copies(model: ModelSpec) -> list[PublicCopy]:
    return [PublicCopy.model_validate(source) for source in card(model).sources]


def test_the_catalogue_is_large_enough_and_of_every_kind():
    published = [model for name, model in OPEN.items() if name not in RUN_HERE]
    assert len(published) >= 24
    assert {card(model).field for model in published} == {"general", "medical"}
    assert any(model.engine == "http" for model in MODELS.values())


def test_every_architecture_is_registered_in_the_pinned_vllm():
    from vllm.model_executor.models.registry import ModelRegistry

    known = set(ModelRegistry.get_supported_archs())
    assert {card(model).architecture for model in OPEN.values()} <= known


@pytest.mark.parametrize("name", sorted(OPEN))
def test_what_a_card_says_agrees_with_what_is_served(name):
    model = OPEN[name]
    own = card(model)
    assert own.context is not None
    assert model.max_model_len <= own.context
    assert (own.thinking in ("on", "off")) == bool(model.template_options)
    if own.thinking in ("on", "off"):
        assert model.template_options == {"enable_thinking": own.thinking == "on"}
    if name in RUN_HERE:
        return
    assert model.weight_gib
    assert own.parameters
    assert model.image_tokens
    assert model.revision or "not pinned" in own.note
    assert len(model.revision or "0" * 40) == 40


@pytest.mark.parametrize("name", sorted(set(OPEN) - RUN_HERE))
def test_tensor_parallel_by_gpu_size_is_what_auto_derives(name):
    model = OPEN[name]
    candidate = Candidate(name, "gpu", model.weight_gib or 0.0, heads=card(model).attention_heads)
    derived = {
        gib: ways[0].tensor_parallel
        for gib in (24, 48, 80, 141)
        if (ways := footprints(candidate, (Node("a", 8, float(gib)),)))
    }
    assert card(model).tensor_parallel == derived


def test_nothing_is_said_to_be_verified_that_was_not():
    for name, model in MODELS.items():
        own = {copy.file for copy in copies(model) if copy.of is None} - {"processor"}
        wanted = "engine" if name in RUN_HERE else READ[tuple(sorted(own))]
        assert card(model).verified == wanted, name


def test_an_entry_agrees_with_the_numbers_of_the_files_that_were_read():
    for name, model in MODELS.items():
        configs = [copy for copy in copies(model) if copy.file == "config"]
        for values in (copy.values for copy in configs):
            heads = card(model).attention_heads
            assert values.get("num_attention_heads", heads) == heads, name
            assert values["max_position_embeddings"] >= (card(model).context or 0), name
            assert values.get("mm_tokens_per_image", model.image_tokens) == model.image_tokens, name
            step = values.get("patch_size", 0) * values.get("spatial_merge_size", 0)
            if step and name.startswith("qwen"):
                assert (448 // step) ** 2 == model.image_tokens, name


@pytest.mark.parametrize(("size", "tokens"), [(14, 256), (16, 196)])
def test_tokens_of_a_qwen_frame_are_those_of_the_processor_class(size, tokens):
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    processor = Qwen2VLImageProcessorPil(patch_size=size)
    assert processor.get_number_of_image_patches(448, 448, {}) // processor.merge_size**2 == tokens


def test_the_landscape_asks_every_open_model_of_the_catalogue_in_one_precision():
    asked = {model.name for model in read_spec(["+experiment=landscape"]).model}
    fewer_bits = {name for name, model in OPEN.items() if card(model).precision_of}
    assert asked == (set(OPEN) - RUN_HERE - fewer_bits) | {"oracle", "uniform"}


def test_a_model_in_fewer_bits_is_lighter_and_otherwise_the_same():
    for name, model in OPEN.items():
        other = OPEN.get(card(model).precision_of or "")
        assert (card(model).precision_of is None) == (other is None)
        if other is not None:
            assert model.source == f"{other.source}-FP8", name
            assert (model.weight_gib or 0) < 0.6 * (other.weight_gib or 0)
            alike = (one.model_copy(update=dict.fromkeys(DIFFERING)) for one in (model, other))
            assert len({one.model_dump_json() for one in alike}) == 1


def test_every_engine_option_of_the_catalogue_is_one_of_vllm():
    check_engine_options(read_spec([f"model=[{','.join(MODELS)}]"]))


def test_an_adapter_is_found_in_the_models_files_and_vllm_makes_room_for_its_rank(tmp_path: Path):
    folder = tmp_path / "vision-lora"
    folder.mkdir()
    with pytest.raises(InputError, match="give the folder of a LoRA adapter"):
        find_adapter("vision-lora", tmp_path)
    (folder / "adapter_config.json").write_text(json.dumps({"r": 100}))
    assert find_adapter("vision-lora", tmp_path) == folder
    assert find_adapter(str(folder), tmp_path / "elsewhere") == folder
    assert room_for(folder) == 128
    (folder / "adapter_config.json").write_text(json.dumps({"r": 1000}))
    with pytest.raises(InputError, match="rank 1 to 512"):
        room_for(folder)


def test_the_small_reader_is_small_and_says_how_it_was_made(tmp_path: Path):
    (model,) = read_spec(["model=[reader_small]"]).model
    assert absence(model) is None
    folder = identify(model, tmp_path).folder
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 12 * 2**20
    record = json.loads((folder / "training.json").read_text())
    assert record["hours"] <= 2
    assert {line["stage"] for line in record["curve"]} == {"see", "read"}


def test_a_name_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path):
    assert ships("packaged/none")
    (model,) = read_spec(["model=[reader_small]", "model.reader_small.source=packaged/none"]).model
    with pytest.raises(InputError, match=r"'packaged/none' is not in this package, which has pack"):
        identify(model, tmp_path)


def test_the_home_of_nobody_is_a_folder_that_does_not_exist(tmp_path: Path):
    model = ModelSpec(name="m", source="~nobody-of-this-name/model")
    assert "does not exist" in str(absence(model))
    with pytest.raises(InputError, match="folder '~nobody-of-this-name/model' does not exist"):
        identify(model, tmp_path)
    with pytest.raises(InputError, match="give the folder of a LoRA adapter"):
        find_adapter("~nobody-of-this-name/lora", tmp_path)


def thinker(**fields: Any) -> ModelSpec:
    return ModelSpec(**{"name": "m", "source": "a/b"} | fields)


@pytest.mark.parametrize(
    ("fields", "thinks"),
    [
        ({}, False),
        ({"source": "Qwen/Qwen3-VL-8B-Thinking"}, True),
        ({"source": "a/r10-vision"}, False),
        ({"source": "a/b-thinking", "template_options": {"enable_thinking": False}}, False),
    ],
)
def test_a_model_thinks_by_its_options_or_its_name(fields: dict[str, Any], thinks: bool) -> None:
    assert thinker(**fields).thinks is thinks


def test_a_thinking_model_without_a_parser_is_a_warning() -> None:
    loud = [thinker(source="a/b-thinking"), thinker(source="mistralai/Magistral-Small-2509")]
    quiet = [thinker(source="a/b-thinking", reasoning_parser="qwen3"), thinker()]
    warnings = unseparated(SimpleNamespace(model=[*loud, *quiet]))  # type: ignore[arg-type]
    assert len(warnings) == 2
    assert "reasoning_parser" in warnings[0]
    with pytest.raises(ValueError, match=r"Mistral's own tokenizer.*engine: http"):
        thinker(source="mistralai/Magistral-Small-2509", reasoning_parser="mistral")


def test_models_of_the_catalogue_that_can_think_name_their_parser() -> None:
    for path in sorted((packaged_conf() / "model").glob("*.yaml")):
        entry = next(iter(yaml.safe_load(path.read_text(encoding="utf-8")).values()))
        can_think = (entry.get("card") or {}).get("thinking", "never") != "never"
        if can_think and entry.get("engine", "vllm") == "vllm":
            assert entry.get("reasoning_parser"), path.name
