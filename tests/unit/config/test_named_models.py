"""Models named without a file: of the hub, of a folder, of a server."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config import sweep_words
from cardiolens.config.compose import read_spec
from cardiolens.inference.plan.candidates import attention_heads

CONFIG = {
    "architectures": ["Qwen2_5_VLForConditionalGeneration"],
    "text_config": {"num_attention_heads": 28, "max_position_embeddings": 4096},
}


def folder_of(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(CONFIG))
    return path


def test_a_model_of_the_hub_has_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    spec = read_spec(["model=[oracle,hf:Qwen/Qwen2.5-VL-7B-Instruct]"])
    model = {model.name: model for model in spec.model}["qwen2_5_vl_7b_instruct"]
    assert {model.name for model in spec.model} == {"oracle", "qwen2_5_vl_7b_instruct"}
    assert (model.engine, model.source) == ("vllm", "Qwen/Qwen2.5-VL-7B-Instruct")
    assert "not known: whether it thinks (reasoning_parser)" in capsys.readouterr().out


def test_of_two_words_for_the_models_the_last_one_counts() -> None:
    first, last = "model=[hf:a/b]", "model=[oracle]"
    assert [model.name for model in read_spec([first, last]).model] == ["oracle"]
    selectors = read_spec(["model=[oracle]", "selector=[random@1]", "selector=[clinical]"]).selector
    assert [selector.name for selector in selectors] == ["clinical"]


def test_further_options_are_added() -> None:
    for word in ("model.b_1.max_num_seqs=4", "+model.b_1.max_num_seqs=4"):
        (model,) = read_spec([word, "model=[hf:a/b-1]"]).model
        assert (model.name, model.source, model.max_num_seqs) == ("b_1", "a/b-1", 4)


@pytest.mark.parametrize("entries", ["hf:a/b,hf:c/b", "oracle,http:oracle@http://127.0.0.1:8000/v1"])
def test_two_models_of_one_name_are_refused(entries: str) -> None:
    with pytest.raises(InputError, match="another model is called"):
        read_spec([f"model=[{entries}]"])


def test_a_folder_of_weights_is_a_model(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "my weights" / "Tuned-7B")
    (model,) = read_spec([f"model=['{folder}']"]).model
    assert (model.name, model.source) == ("tuned_7b", str(folder))
    assert attention_heads(model, folder) == 28


def test_a_server_is_a_model() -> None:
    (model,) = read_spec(["model=[http:Qwen/qwen@http://127.0.0.1:8000/v1]"]).model
    assert (model.name, model.engine, model.served.api_model) == ("qwen", "http", "Qwen/qwen")
    assert model.served.base_url == "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("hf:qwen", "expected hf:OWNER/NAME"),
        ("http:qwen", "expected http:MODEL@URL"),
        ("./nowhere", "holds no config.json"),
        ("~no-such-user/x", "holds no config.json"),
    ],
)
def test_what_names_no_model_is_refused(entry: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_spec([f"model=[{entry}]"])


@pytest.mark.parametrize("words", [*permutations(["dataset=./ours", "protocol=openprotocol-1"])])
def test_a_protocol_counts_before_and_behind_a_release(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = {"name": "ours", "studies": "/s", "questions": "/q", "protocol": "authors-1"}
    monkeypatch.setattr(sweep_words, "released_options", lambda folder: release)
    assert read_spec(words).dataset.protocol == "openprotocol-1"


def test_an_option_of_a_file_is_left_out() -> None:
    words = ["+experiment=demo", "model=[served]"]
    assert read_spec(words).model[0].source
    assert read_spec([*words, "~model.served.source"]).model[0].source == ""


@pytest.mark.parametrize("word", ["~model.served.sauce", "~model.other.source", "~budget.first", "~"])
def test_an_option_that_is_not_there_cannot_be_left_out(word: str) -> None:
    with pytest.raises(InputError, match=r"no file sets this option|this sweep has no model other"):
        read_spec(["+experiment=demo", "model=[served]", word])
