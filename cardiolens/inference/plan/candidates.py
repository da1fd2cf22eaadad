"""Candidates for placement: the remaining work of each model of a plan, its weight and its needs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import ClusterSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import absence, installed_engine
from cardiolens.inference.placement.footprint import Candidate, Needs, Node
from cardiolens.inference.placement.placement import Placement, place
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.plan.totals import Totals, totals_of
from cardiolens.storage.model_files import INDEX, WEIGHTS, missing_weights, read_object

_GIB = 2**30


def at_hand(spec: SweepSpec) -> tuple[SweepSpec, dict[str, str]]:
    """Return the sweep with only the models on this machine, and the reason for each model left out.

    Without `keep_going` the sweep stays unchanged. InputError if no model is left, or if a model of the
    declared comparison is absent.
    """
    absent = {model.name: why for model in spec.model if (why := absence(model)) is not None}
    here = tuple(model for model in spec.model if model.name not in absent)
    if not spec.keep_going or not absent:
        return spec, {}
    if not here:
        raise InputError(f"no model of this sweep is on this machine: {next(iter(absent.values()))}")
    lacking = [name for name in spec.compared if name in absent]
    if lacking:
        raise InputError(f"primary compares {lacking[0]}, which is not on this machine: {absent[lacking[0]]}")
    return spec.model_copy(update={"model": here}), absent


def place_sweep(
    plan: Plan,
    missing: Mapping[str, Missing],
    nodes: Sequence[Node],
    totals: Mapping[str, Totals] | None = None,
) -> Placement:
    """Place the models with work left; InputError if a model cannot run, unless `keep_going`."""
    cluster = plan.spec.cluster
    candidates = []
    for model in plan.spec.model:
        work = missing.get(model.name)  # None if the job is for another model
        if work is not None and work.left:
            counted = totals[model.name] if totals else _totals(plan, model, nodes)
            folder = plan.identities[model.name].folder
            candidates.append(candidate(model, needs(model, nodes, cluster), folder, work, counted))
    placement = place(nodes, candidates)
    if placement.refusals and not plan.spec.keep_going and plan.spec.mode == "run":
        reasons = "; ".join(refused.reason for refused in placement.refusals)
        raise InputError(f"{reasons}; or run the other models with keep_going=true")
    return placement


def needs(model: ModelSpec, nodes: Sequence[Node], cluster: ClusterSpec) -> Needs:
    """Return the resource that a model occupies while it runs.

    A simulated reader that declares `weight_gib` is placed like a model of that weight, as a rehearsal.
    """
    if model.engine == "http":
        return "network"
    if model.engine == "vllm":
        return "gpu" if cluster.gpus is not None or installed_engine()[0] == "cuda" else "processor"
    return "gpu" if model.weight_gib is not None and nodes else "processor"


def candidate(
    model: ModelSpec,
    needs: Needs,
    folder: Path | None,
    work: Missing,
    totals: Totals | None,
) -> Candidate:
    """Collect the facts of a model for placement; tokens are scaled by the share of requests left."""
    weight = weight_gib(model, folder) if needs == "gpu" else 0.0
    lacks = weights_lacking(model, folder)
    if weight is None:
        weight = 0.0
        lacks = lacks or (
            f"model {model.name}: weight_gib is not declared and its folder holds no weights; declare it"
        )
    share = work.left / work.unique
    return Candidate(
        name=model.name,
        needs=needs,
        weight_gib=weight,
        billions=model.parameters or weight * _GIB / 2e9,
        heads=model.attention_heads,
        tensor_parallel=None if model.tensor_parallel == "auto" else model.tensor_parallel,
        replicas=None if model.replicas == "auto" else model.replicas,
        utilization=model.gpu_memory_utilization,
        studies=max(1, work.work.num_rows),
        requests=work.left,
        prompt_tokens=int(share * (totals.prompt_tokens or 0)) if totals else 0,
        output_tokens=int(share * totals.output_tokens) if totals else 0,
        computed_tokens=_scaled(totals.computed_tokens if totals else None, share),
        encoder_tokens=int(share * totals.encoder_tokens) if totals else 0,
        reply_tokens=_scaled(totals.reply_tokens if totals else None, share),
        lacks=lacks,
    )


def _scaled(tokens: int | None, share: float) -> int | None:
    return None if tokens is None else int(share * tokens)


def weights_lacking(model: ModelSpec, folder: Path | None) -> str:
    """Return which weights a model's folder lacks, or ""; a processor suffices to plan, but not to run."""
    if model.engine != "vllm" or folder is None or model.load_format == "dummy":
        return ""
    try:
        lacking = missing_weights(folder)
    except InputError as error:
        return f"{model.name}: {error}"
    return f"{model.name}: {lacking}" if lacking else ""


def _totals(plan: Plan, model: ModelSpec, nodes: Sequence[Node]) -> Totals | None:
    """Return the totals of a model; None without GPUs, because tokens matter only for dividing GPUs."""
    return totals_of(plan.run.requests(model.name)) if nodes else None


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
