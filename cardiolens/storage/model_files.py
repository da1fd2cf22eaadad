"""Checks of the files of a saved model before they are loaded: JSON objects, complete weights."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json

INDEX = "model.safetensors.index.json"
_OBJECTS = (
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    INDEX,
)
_TEXT = ("text_config", "llm_config", "language_config")  # where a config.json describes its language model
WEIGHTS = ("*.safetensors", "*.bin", "*.pt")  # the patterns by which vLLM finds weights
_REMEDY = "copy or download the model again"


def check_files(folder: Path) -> None:
    """Raise InputError for a truncated or damaged file of a saved model; absent files are ignored."""
    for name in _OBJECTS:
        if (folder / name).exists():
            read_object(folder / name)
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "numpy"):  # compares the size of the file with its header
                pass
        except (SafetensorError, OSError) as error:
            raise InputError(f"{path}: is no whole safetensors file ({error}); {_REMEDY}") from None


def check_architectures(folder: Path) -> None:
    """Raise InputError unless config.json names the architecture, by which an engine selects its code."""
    path = folder / "config.json"
    names = read_object(path).get("architectures")
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        raise InputError(
            f"{path}: architectures is {names!r}; expected the class by which vLLM knows the model, e.g. "
            "['Qwen2_5_VLForConditionalGeneration']; take config.json from where the model is published"
        )


def language_part(config: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a config.json that describes the language model."""
    return next((config[name] for name in _TEXT if isinstance(config.get(name), dict)), config)


def check_length(folder: Path, tokens: int) -> None:
    """Raise InputError if config.json has fewer positions than the tokens of prompt and reply.

    Left to the engine: positions that are scaled, or left to a default of the architecture.
    """
    path = folder / "config.json"
    text = language_part(read_object(path))
    most = text.get("model_max_length") or text.get("max_position_embeddings")
    scaling = json.dumps([text.get("rope_scaling"), text.get("rope_parameters")])
    if isinstance(most, int) and tokens > most and '"factor"' not in scaling:
        raise InputError(
            f"max_model_len: {tokens:,} is more than the {most:,} tokens that {path} allows; "
            f"set it to {most} or less"
        )


def missing_weights(folder: Path) -> str | None:
    """A message if all weights, or some that the index names, are missing; None if complete."""
    if not any(next(folder.glob(pattern), None) for pattern in WEIGHTS):
        return f"{folder} holds no weights ({', '.join(WEIGHTS)}); {_REMEDY}"
    index = folder / INDEX
    files = read_object(index).get("weight_map") if index.exists() else None
    if files is not None and not isinstance(files, dict):
        raise InputError(f"{index}: its weight_map is no object of tensor names and files; {_REMEDY}")
    absent = sorted({str(name) for name in (files or {}).values() if not (folder / str(name)).exists()})
    return f"{folder} lacks {', '.join(absent)}, which {INDEX} names; {_REMEDY}" if absent else None


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; InputError if the file holds none."""
    try:
        tree = read_json(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is not a whole JSON file ({error}); {_REMEDY}") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: holds a {type(tree).__name__}, expected a JSON object; {_REMEDY}")
    return tree
