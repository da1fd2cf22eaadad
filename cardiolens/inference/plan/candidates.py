"""Candidates for placement: the work of each model of a plan by its requests, its weight and its needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import ClusterSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import absence, installed_engine
from cardiolens.inference.placement.footprint import CHOICE_TOKENS, REPLY_SHARE, Candidate, Needs, Node
from cardiolens.inference.placement.placement import Placement, place
from cardiolens.inference.plan.few_shot import read_example_frames
from cardiolens.inference.plan.missing import SHOWN, Missing, beginnings, prefix_order, shared_frames
from cardiolens.inference.plan.plan import Plan
from cardiolens.protocol.dialogue.chain import FrameRef
from cardiolens.protocol.prompts.frames import has_videos
from cardiolens.storage import schemas, tables
from cardiolens.storage.model_files import INDEX, WEIGHTS, language_part, missing_weights, read_object
from cardiolens.storage.schemas import OVERFLOW, PLANNED

_COLUMNS = (*SHOWN, "answer_format", "max_tokens", "stage", "status", "predicted_tokens", "request_key")


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over the requests of one model; every stage of a chain counts the tokens of its last stage."""

    asked: int = 0
    overflow: int = 0
    skipped: int = 0
    sent: int = 0  # distinct planned requests, counting every stage of a chain: an upper bound
    prompt_tokens: int | None = None  # of the sent requests; None if the reader has no tokens
    output_tokens: int = 0  # upper bound for the replies to the sent requests
    computed_tokens: int | None = None  # estimated prompt tokens that no earlier prompt begins with
    reply_tokens: int = 0  # estimate, by the kind of the replies
    encoder_tokens: int = 0  # estimated tokens of `encoder_frames`, each once
    encoder_frames: int = 0  # distinct frames, those of examples, too, and each frame again in each video

    @property
    def frame_tokens(self) -> int:
        """Return the tokens of a frame with its caption; 0 without frames or tokens."""
        return self.encoder_tokens // self.encoder_frames if self.encoder_frames else 0


def totals_of(requests: Path) -> Totals:
    """Count the plan of one model part by part; counts add up because each study lies in a single part."""
    sums: dict[str, float] = {}
    has_tokens = False
    lent: set[tuple[str, FrameRef]] = set()  # frames of examples, which requests of all parts show
    for part in tables.parts(requests):
        table = tables.read_part(part, schemas.REQUESTS, _COLUMNS)
        planned = table.filter(pc.equal(table["status"], PLANNED))
        _, first_rows = np.unique(np.asarray(planned["request_key"], dtype=str), return_index=True)
        unique = planned.take(np.sort(first_rows))
        has_tokens |= unique["predicted_tokens"].null_count < unique.num_rows
        stages, tokens = 1 + _numbers(unique, "stage"), _numbers(unique, "predicted_tokens")
        most, is_choice = _numbers(unique, "max_tokens"), pc.equal(unique["answer_format"], "choice")
        replies = np.where(np.asarray(is_choice), np.minimum(most, CHOICE_TOKENS), REPLY_SHARE * most)
        n_frames = np.asarray(pc.list_value_length(unique["frames"]), dtype=np.int64)
        by_request = read_example_frames(part)
        examples = [by_request.get(key, ()) for key in unique["request_key"].to_pylist()]
        shown_first = {frame for frames in examples for frame in frames}
        shown = _shown(unique)
        n_encoded = shown.group_by(shown.column_names).aggregate([]).num_rows + len(shown_first - lent)
        n_overflow = pc.sum(pc.equal(table["status"], OVERFLOW)).as_py() or 0
        counts = {
            "asked": table.num_rows,
            "overflow": n_overflow,
            "skipped": table.num_rows - planned.num_rows - n_overflow,
            "sent": stages.sum(),
            "prompt_tokens": stages @ tokens,
            "output_tokens": stages @ most,
            "computed_tokens": _computed(unique, n_frames, stages, tokens),
            "reply_tokens": stages @ replies,
            "encoder_tokens": n_encoded
            * _frame_tokens(n_frames + [len(frames) for frames in examples], tokens),
            "encoder_frames": n_encoded,
        }
        sums = {name: sums.get(name, 0.0) + float(count) for name, count in counts.items()}
        lent |= shown_first
    totals = Totals(**{name: round(total) for name, total in sums.items()})
    return totals if has_tokens else replace(totals, prompt_tokens=None, computed_tokens=None)


def _numbers(table: pa.Table, column: str) -> np.ndarray:
    return np.asarray(pc.fill_null(table[column], 0), dtype=np.int64)


def _computed(requests: pa.Table, n_frames: np.ndarray, stages: np.ndarray, tokens: np.ndarray) -> float:
    """Estimate the prompt tokens that are computed if every beginning is computed once.

    A prompt counts as equal parts: each frame with its caption is one, and all text behind the last frame
    is one. Later stages of a chain compute that last part again.
    """
    rows = beginnings(requests)
    order = prefix_order(rows)
    new = n_frames[order] - shared_frames(rows[order])
    return float((tokens[order] * (new + stages[order]) / (n_frames[order] + 1)).sum())


def _frame_tokens(n_frames: np.ndarray, tokens: np.ndarray) -> float:
    """Estimate the tokens of a frame by the equal parts of `_computed`; frames of examples are parts, too."""
    parts = (n_frames + 1)[n_frames > 0].sum()
    return float(tokens[n_frames > 0].sum() / parts) if parts else 0.0


def _shown(requests: pa.Table) -> pa.Table:
    """Return one row per frame of each request; an encoder sees a frame anew in each video."""
    lists = requests["frames"].combine_chunks()
    parents = pc.list_parent_indices(lists)
    filmed = [
        repr(lists[row].as_py()) if has_videos(flags) else ""
        for row, flags in enumerate(requests["flags"].to_pylist())
    ]
    return pa.table(
        {
            "study": requests["frames_study_id"].take(parents),
            "volume": lists.flatten().field("volume_id"),
            "idx": lists.flatten().field("idx"),
            "filmed": pa.array(filmed, pa.string()).take(parents),
        }
    )


_GIB = 2**30
_TOKENS = ("prompt_tokens", "output_tokens", "computed_tokens", "encoder_tokens", "reply_tokens")
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
    placement = place(nodes, candidates_of(plan, missing, nodes, totals))
    if placement.refusals and not plan.spec.keep_going and plan.spec.mode == "run":
        reasons = "; ".join(placement.refusals.values())
        raise InputError(f"{reasons}; or run the other models with keep_going=true")
    return placement


def candidates_of(
    plan: Plan,
    missing: Mapping[str, Missing],
    nodes: Sequence[Node],
    totals: Mapping[str, Totals] | None = None,
) -> list[Candidate]:
    """Return the facts of each model with work left, in their order."""
    candidates = []
    for model in plan.spec.model:
        work = missing.get(model.name)  # None if the job is for another model
        if work is not None and work.left:
            counted = totals[model.name] if totals else None
            if counted is None and nodes:  # tokens matter only for dividing GPUs
                counted = totals_of(plan.run.requests(model.name))
            folder = plan.identities[model.name].folder
            candidates.append(candidate(model, needs(model, nodes, plan.spec.cluster), folder, work, counted))
    return candidates


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
    if weight is None and not lacks:
        lacks = f"model {model.name}: weight_gib is not declared and its folder holds no weights; declare it"
    share = work.left / work.unique
    counts = {name: getattr(totals, name, None) for name in _TOKENS}
    return Candidate(
        name=model.name,
        needs=needs,
        weight_gib=weight or 0.0,
        billions=(model.card.parameters if model.card else None) or (weight or 0.0) * _GIB / 2e9,
        heads=attention_heads(model, folder),
        tensor_parallel=None if model.tensor_parallel == "auto" else model.tensor_parallel,
        replicas=None if model.replicas == "auto" else model.replicas,
        utilization=model.gpu_memory_utilization,
        studies=max(1, work.work.num_rows),
        lacks=lacks,
        **{name: int(share * count) for name, count in counts.items() if count is not None},
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
    if folder is not None and (paths := _files(model, folder)):
        return sum(path.stat().st_size for path in paths) / _GIB
    parameters = None if model.card is None else model.card.parameters
    return None if parameters is None else 2e9 * parameters / _GIB


def attention_heads(model: ModelSpec, folder: Path | None) -> int | None:
    """Return the attention heads of a model by its config.json, else by its card; None if unknown."""
    heads = None if model.card is None else model.card.attention_heads
    if folder is None:
        return heads
    try:
        in_file = language_part(read_object(folder / "config.json")).get("num_attention_heads")
    except (InputError, OSError):
        return heads
    return in_file if isinstance(in_file, int) and in_file > 0 else heads


def _files(model: ModelSpec, folder: Path) -> list[Path]:
    """Return the files that vLLM loads: files of one format, without a second copy of the weights."""
    if model.engine_options.get("load_format") == "mistral":
        return sorted(folder.glob(_CONSOLIDATED))
    weight_map = read_object(folder / INDEX).get("weight_map") if (folder / INDEX).exists() else None
    if isinstance(weight_map, dict):
        return [path for name in set(weight_map.values()) if (path := folder / str(name)).exists()]
    for pattern in WEIGHTS:
        if paths := set(folder.glob(pattern)):
            return sorted(paths - set(folder.glob(_CONSOLIDATED)) or paths)
    return []
