"""Candidates for placement: the remaining work of each model of a plan, its weight and its needs."""

from collections.abc import Mapping, Sequence
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
from cardiolens.storage.model_files import INDEX, WEIGHTS, language_part, missing_weights, read_object

_GIB = 2**30
_CONSOLIDATED = "consolidated*.safetensors"  # a second copy of the weights, in Mistral's own format


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
            counted = totals[model.name] if totals else None
            if counted is None and nodes:  # tokens matter only for dividing GPUs
                counted = totals_of(plan.run.requests(model.name))
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

    def scaled(name: str) -> int | None:
        """The tokens of what is left; None if they are unknown."""
        tokens = None if totals is None else getattr(totals, name)
        return None if tokens is None else int(share * tokens)

    return Candidate(
        name=model.name,
        needs=needs,
        weight_gib=weight,
        billions=(model.card.parameters if model.card else None) or weight * _GIB / 2e9,
        heads=attention_heads(model, folder),
        tensor_parallel=None if model.tensor_parallel == "auto" else model.tensor_parallel,
        replicas=None if model.replicas == "auto" else model.replicas,
        utilization=model.gpu_memory_utilization,
        studies=max(1, work.work.num_rows),
        requests=work.left,
        prompt_tokens=scaled("prompt_tokens") or 0,
        output_tokens=scaled("output_tokens") or 0,
        computed_tokens=scaled("computed_tokens"),
        encoder_tokens=scaled("encoder_tokens") or 0,
        reply_tokens=scaled("reply_tokens"),
        lacks=lacks,
    )


def weights_lacking(model: ModelSpec, folder: Path | None) -> str:
    """Return which weights a model's folder lacks, or ""; a processor suffices to plan, but not to run."""
    if model.engine != "vllm" or folder is None or model.has_random_weights:
        return ""
    try:
        lacking = missing_weights(folder)
    except InputError as error:
        return f"{model.name}: {error}"
    return f"{model.name}: {lacking}" if lacking else ""


def weight_gib(model: ModelSpec, folder: Path | None) -> float | None:
    """Return the declared size, else that of the files, else 2 bytes per declared parameter; None if unknown.

    Weights that vLLM quantizes while it loads them are smaller than their files: declare their size.
    """
    if model.weight_gib is not None:
        return model.weight_gib
    sizes = [] if folder is None else [path.stat().st_size for path in _files(model, folder)]
    if sizes:
        return sum(sizes) / _GIB
    parameters = None if model.card is None else model.card.parameters
    return None if parameters is None else 2e9 * parameters / _GIB


def attention_heads(model: ModelSpec, folder: Path | None) -> int | None:
    """Return the attention heads of a model by its config.json, else by its card; None if unknown."""
    try:
        tree = {} if folder is None else read_object(folder / "config.json")
    except (InputError, OSError):
        tree = {}
    heads = language_part(tree).get("num_attention_heads")
    if isinstance(heads, int) and heads > 0:
        return heads
    return None if model.card is None else model.card.attention_heads


def _files(model: ModelSpec, folder: Path) -> list[Path]:
    """Return the files that vLLM loads: files of one format, without a second copy of the weights."""
    if model.engine_options.get("load_format") == "mistral":
        return sorted(folder.glob(_CONSOLIDATED))
    weight_map = read_object(folder / INDEX).get("weight_map") if (folder / INDEX).exists() else None
    if isinstance(weight_map, dict):
        return [path for name in set(weight_map.values()) if (path := folder / str(name)).exists()]
    for pattern in WEIGHTS:
        if found := set(folder.glob(pattern)):
            return sorted(found - set(folder.glob(_CONSOLIDATED)) or found)
    return []
