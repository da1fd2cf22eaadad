"""Size of a model's weights in an engine's memory, measured from the model's files."""

import json
from collections.abc import Iterator
from pathlib import Path

from cardiolens.config.model import ModelSpec
from cardiolens.storage.model_files import INDEX, WEIGHTS, read_object

_GIB = 2**30
_LENGTH = 8  # bytes at the start of a safetensors file that hold the length of its header
_CONSOLIDATED = "consolidated*.safetensors"  # a second copy of the weights, in Mistral's own format
_HALVED = ("bfloat16", "float16")  # dtypes for which the engine converts 32-bit weights to 16 bits
# Share of the size that remains if vLLM quantizes while loading: more than the ratio of the bits, because
# embeddings, image encoders and norms keep their precision. For methods not listed, the share is 1.
_ONLINE = {
    "fp8_per_tensor": 0.6,
    "fp8_per_block": 0.6,
    "fp8_per_channel": 0.6,
    "mxfp8": 0.6,
    "mxfp4": 0.4,
    "bitsandbytes": 0.4,
}


def weight_gib(model: ModelSpec, folder: Path | None) -> float | None:
    """Return the declared size, else the size measured in the files, else 2 bytes per declared parameter.

    None if none of these is known. A declared size may describe the published weights: if the files are
    quantized, or vLLM quantizes them while loading, the smaller of declared and measured size counts.
    """
    quantized = folder is not None and _on_disk_quantized(folder)
    part = 1.0 if quantized else _ONLINE.get(model.quantization or "", 1.0)
    measured = None if folder is None else _measured(model, folder, quantized=quantized)
    if measured is not None:
        measured *= part
    if model.weight_gib is not None:
        shrunk = measured is not None and (quantized or part < 1)
        return min(model.weight_gib, measured) if shrunk and measured is not None else model.weight_gib
    if measured is not None:
        return measured
    return None if model.parameters is None else part * 2e9 * model.parameters / _GIB


def _measured(model: ModelSpec, folder: Path, *, quantized: bool) -> float | None:
    sizes = [_bytes(path, halved=not quantized and model.dtype in _HALVED) for path in _files(model, folder)]
    return sum(sizes) / _GIB if sizes else None


def _on_disk_quantized(folder: Path) -> bool:
    """Return whether config.json declares quantization, for the model or for its language part."""
    path = folder / "config.json"
    config = read_object(path) if path.exists() else {}
    parts = (config, config.get("text_config"))
    return any(isinstance(part, dict) and part.get("quantization_config") for part in parts)


def _files(model: ModelSpec, folder: Path) -> list[Path]:
    """Return the files that vLLM loads: files of one format, without a second copy of the weights."""
    if model.engine_options.get("load_format") == "mistral":
        return sorted(folder.glob(_CONSOLIDATED))
    weight_map = read_object(folder / INDEX).get("weight_map") if (folder / INDEX).exists() else None
    if isinstance(weight_map, dict):
        indexed = (folder / str(name) for name in sorted(set(weight_map.values())))
        return [path for path in indexed if path.exists()]
    for pattern in WEIGHTS:
        if weight_files := sorted(folder.glob(pattern)):
            copies = set(folder.glob(_CONSOLIDATED))
            return [path for path in weight_files if path not in copies] or weight_files
    return []


def _bytes(path: Path, *, halved: bool) -> int:
    """Return the size of a file; with `halved`, 32-bit weights of a safetensors file count half."""
    size = path.stat().st_size
    return size - sum(_wide(path)) // 2 if halved and path.suffix == ".safetensors" else size


def _wide(path: Path) -> Iterator[int]:
    """Yield the sizes of the 32-bit tensors of a safetensors file; none if its header is unreadable."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        if length + _LENGTH > path.stat().st_size:
            return
        try:
            tensors = json.loads(file.read(length))
        except ValueError:
            return
    for name, tensor in tensors.items():
        if name != "__metadata__" and tensor["dtype"] == "F32":
            begin, end = tensor["data_offsets"]
            yield end - begin
