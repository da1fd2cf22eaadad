"""Folders of models that cannot be used, told before any engine is started."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import refused, verb
from small_cohort import make_cohort, sweep_spec

from cardiolens.inference.plan.plan import plan
from tests.support.tiny_model import FOLDER

Break = Callable[[Path], object]
AGAIN = "copy or download the model again"
TEMPLATE = "put one that can be used into the folder as chat_template\\.jinja"


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small cohort, the tiny model in `model/`."""
    root = make_cohort(tmp_path_factory.mktemp("cohort") / "place", 1)
    shutil.copytree(FOLDER, root / "model")
    return root


@pytest.fixture
def place(cohort: Path, tmp_path: Path) -> Path:
    shutil.copytree(cohort, tmp_path / "place")
    return tmp_path / "place"


def text(name: str, content: str | bytes) -> Break:
    return lambda folder: (folder / name).write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )


def gone(*names: str) -> Break:
    return lambda folder: [(folder / name).unlink() for name in names]


def edited(name: str, change: Callable[[dict[str, Any]], object]) -> Break:
    def write(folder: Path) -> None:
        tree = json.loads((folder / name).read_text())
        change(tree)
        (folder / name).write_text(json.dumps(tree))

    return write


def weights(change: Callable[[bytes], bytes]) -> Break:
    def write(folder: Path) -> None:
        path = folder / "model.safetensors"
        path.write_bytes(change(path.read_bytes()))

    return write


def template(content: str) -> Break:
    return text("chat_template.jinja", content)


def a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


def no_template(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    edited("tokenizer_config.json", lambda tree: tree.pop("chat_template", None))(folder)


EACH = "{% for m in messages %}{% for p in m['content'] %}"
END = "{% endfor %}{% endfor %}"
MODELS: list[tuple[str, Break, str]] = [
    ("weights cut", weights(lambda b: b[:-100]), rf"is no whole safetensors file \(.*\); {AGAIN}"),
    (
        "header too long",
        weights(lambda b: struct.pack("<Q", 10**15) + b[8:]),
        r"is no whole safetensors file \(",
    ),
    ("no config", gone("config.json"), r"config\.json"),
    ("config broken", text("config.json", "{"), rf"config\.json: is not a whole JSON file .*; {AGAIN}"),
    ("config a list", text("config.json", "[]"), r"config\.json: holds a list, expected a JSON object"),
    ("tokenizer broken", text("tokenizer.json", "{"), r"tokenizer\.json: is not a whole JSON file"),
    ("a file", a_file, r"folder '.*/model' does not exist; give a folder or a hub id"),
    ("no architectures", edited("config.json", lambda t: t.pop("architectures")), r"architectures is None"),
    (
        "fewer positions than max_model_len",
        edited("config.json", lambda t: t["text_config"].update(max_position_embeddings=4096)),
        r"max_model_len: 8,192 is more than the 4,096 tokens that .*config\.json allows; set it to 4096",
    ),
    (
        "no processor",
        gone("processor_config.json"),
        r"processor cannot be loaded .* is it a language model\?",
    ),
    ("no tokenizer", gone("tokenizer.json", "tokenizer_config.json"), r"its processor cannot be loaded"),
    ("no template", no_template, r"has no chat template; add a chat_template\.jinja to the model's folder"),
    ("broken template", template("{% for"), rf"its chat template cannot be used .*; {TEMPLATE}"),
    (
        "template of text",
        template("{{ messages[0]['content'] + 'x' }}"),
        r"cannot be used \(can only con.*, it drops or repeats text\)",
    ),
    (
        "template that drops the question",
        template(EACH + "{% if p['type'] == 'image' or loop.first %}<image>{{ p['text'] }}{% endif %}" + END),
        rf"chat template cannot be used \(.*\) with .*; {TEMPLATE}",
    ),
]


@pytest.mark.parametrize(("spoil", "said"), [row[1:] for row in MODELS], ids=[row[0] for row in MODELS])
def test_a_model_that_cannot_be_asked_is_named(spoil, said, place, capsys):
    spoil(place / "model")
    model = {"name": "mine", "engine": "vllm", "source": str(place / "model"), "long_side": 64}
    refused(verb(lambda: plan(sweep_spec(place, model))), said, capsys, place)


@pytest.mark.parametrize("source", ["/nowhere/x", "./nope", "nobody/nothing", "a b/c d", "x/y/z"])
def test_a_model_that_is_not_here_is_named(source, place, capsys):
    model = {"name": "mine", "engine": "vllm", "source": source}
    said = (
        r"does not exist; give a folder or a hub id|is not on this machine; fetch it first with `hf download"
    )
    refused(verb(lambda: plan(sweep_spec(place, model))), said, capsys, place)
