"""The files of a saved model, checked before anything loads them: JSON objects, whole weights."""

import json
from pathlib import Path
from typing import Any

from cardiolens.errors import InputError

_INDEX = "model.safetensors.index.json"
_OBJECTS = (
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    _INDEX,
)
WEIGHTS = ("*.safetensors", "*.bin", "*.pt")  # by the names under which vLLM finds them
_LENGTH = 8  # bytes before a safetensors header, which state its length
_AGAIN = "copy or download the model again"


def check_files(folder: Path) -> None:
    """InputError for a file of a saved model that is cut off or damaged; absent files are no matter."""
    for name in _OBJECTS:
        if (folder / name).exists():
            read_object(folder / name)
    for path in sorted(folder.glob("*.safetensors")):
        _check_weights(path)


def check_architectures(folder: Path) -> None:
    """InputError unless the model says of what architecture it is, by which an engine knows it."""
    path = folder / "config.json"
    named = read_object(path).get("architectures")
    if not (isinstance(named, list) and named and all(isinstance(name, str) for name in named)):
        raise InputError(
            f"{path}: architectures is {named!r}; expected the class by which vLLM knows the model, e.g. "
            "['Qwen2_5_VLForConditionalGeneration']; take config.json from where the model is published"
        )


def lacking_weights(folder: Path) -> str | None:
    """Name the weights that a saved model lacks: all, or some of its index; None where it is whole."""
    if not any(next(folder.glob(pattern), None) for pattern in WEIGHTS):
        return f"{folder} holds no weights ({', '.join(WEIGHTS)}); {_AGAIN}"
    index = folder / _INDEX
    named = read_object(index).get("weight_map") if index.exists() else None
    if named is not None and not isinstance(named, dict):
        raise InputError(f"{index}: its weight_map is no object of tensor names and files; {_AGAIN}")
    absent = sorted({str(name) for name in (named or {}).values() if not (folder / str(name)).exists()})
    return f"{folder} lacks {', '.join(absent)}, which {_INDEX} names; {_AGAIN}" if absent else None


def read_object(path: Path) -> dict[str, Any]:
    """The content of a JSON file that holds an object."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not a whole JSON file ({error}); {_AGAIN}") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: holds a {type(tree).__name__}, expected a JSON object; {_AGAIN}")
    return tree


def _check_weights(path: Path) -> None:
    """A safetensors file states where its last tensor ends; a copy that broke off is shorter."""
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH), "little")
            tensors = json.loads(file.read(length)) if _LENGTH + length <= size else {}
        ends = [one["data_offsets"][1] for name, one in tensors.items() if name != "__metadata__"]
        stated = _LENGTH + length + max(ends, default=0)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{path}: its safetensors header cannot be read; {_AGAIN}") from None
    if size != stated:
        raise InputError(f"{path}: holds {size} bytes; expected {stated} by its header; {_AGAIN}")
