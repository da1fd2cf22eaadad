"""Checks of the files of a saved model before they are loaded: JSON objects, complete weights."""

import math
from collections.abc import Mapping
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
_SCALED = ("su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling")
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
    """Raise InputError if config.json allows fewer tokens of prompt and reply, by its positions and scaling.

    Nothing is checked where the file leaves the positions to a default of its architecture.
    """
    path = folder / "config.json"
    config = read_object(path)
    text = language_part(config)
    positions = text.get("model_max_length") or text.get("max_position_embeddings")
    if not isinstance(positions, int):
        return
    counted = "gemma3" in str(config.get("model_type"))  # the positions count the scaling already
    most = int(positions * (1 if counted else _scaling(text)))
    if tokens > most:
        raise InputError(
            f"max_model_len: {tokens:,} is more than the {most:,} tokens that {path} allows; "
            f"set it to {most} or less"
        )


def _scaling(text: Mapping[str, Any]) -> float:
    """Return by what the positions of a language model are multiplied: vLLM counts these kinds of scaling."""
    declared = text.get("rope_scaling") or text.get("rope_parameters")
    rope = declared if isinstance(declared, dict) else {}
    by_layer = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    factors = [one.get("factor") for one in by_layer if one.get("rope_type", one.get("type")) not in _SCALED]
    finite = [float(each) for each in factors if isinstance(each, int | float) and math.isfinite(each)]
    return max(finite, default=1.0)


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
