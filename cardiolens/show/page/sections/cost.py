"""Tables of cost: tokens, seconds, GPU hours."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.show.page.columns import ARM, arm_cells
from cardiolens.show.page.elements import Column, Table
from cardiolens.show.page.page_data import Facts

_COLUMNS = (
    *(Column("model", "model"), Column("answered", "requests", "count")),
    Column("prompt_tokens", "prompt tokens", "count"),
    Column("cached_tokens", "from cache", "count"),
    Column("output_tokens", "output tokens", "count"),
    Column("per_request", "prompt tokens per request", "score"),
    Column("seconds", "seconds, summed over requests", "score"),
    Column("gpus", "GPUs", "count"),
)


_BY_ARM = (
    *(*ARM, Column("answered", "questions answered", "count")),
    *(Column("requests", "requests", "count"), Column("per_question", "requests per question", "score")),
    *(Column("prompt_tokens", "prompt tokens", "count"), Column("output_tokens", "output tokens", "count")),
)


# Counters of the manifest; readers and served models report no encoder runs.
_FRAMES = {
    "referenced": "frames shown, over all requests",
    "processed": "frames processed for models",
    "encoded": "frames run through vision encoders",
}


def cost_tables(facts: Facts) -> tuple[Table, ...]:
    """Tokens by model, from the completions that count, and seconds by step, of the last invocation.

    Requests overlap in an engine: their summed seconds are not wall-clock time.
    """
    return _by_model(facts), *_by_arm(facts), _seconds(facts)


def _by_model(facts: Facts) -> Table:
    gpus_by_model = {
        group["model"]: group["replicas"] * group["gpus_per_replica"]
        for manifest in facts.manifests
        for wave in _waves(manifest)
        for group in wave
    }
    records = [
        {
            **asdict(usage),
            "per_request": usage.prompt_tokens / usage.answered if usage.answered else None,
            "gpus": gpus_by_model.get(usage.model),
        }
        for usage in facts.usage
    ]
    return Table.of("usage", "By model", _COLUMNS, records)


def _by_arm(facts: Facts) -> tuple[Table, ...]:
    """Usage of each arm if it ran alone; no table if every question is one request."""
    records = [
        asdict(usage) | {"per_question": usage.requests / usage.answered} | arm_cells(arm, facts.simulated)
        for usage in facts.arm_usage
        if (arm := facts.arm(usage.arm_id))
    ]
    title = "By arm, as if it were asked alone"
    return (Table.of("arm-usage", title, _BY_ARM, records),) if records else ()


def _waves(manifest: AnalysisRow) -> list[list[dict[str, Any]]]:
    waves: list[list[dict[str, Any]]] = manifest.get("placement", {}).get("waves", [])
    return waves


def _seconds(facts: Facts) -> Table:
    seconds: Counter[str] = Counter()
    frames: Counter[str] = Counter()
    gpu_hours = 0.0
    for manifest in facts.manifests:
        frames.update(manifest.get("frames", {}))
        seconds.update(manifest["seconds"])
        gpu_hours += sum(_gpu_hours(group) for wave in _waves(manifest) for group in wave)
    rows: list[tuple[str, float]] = [(f"{step}, seconds", value) for step, value in seconds.items()]
    rows += [(label, float(frames[name])) for name, label in _FRAMES.items() if name in frames]
    rows.append(("GPU hours held", gpu_hours))
    columns = (Column("step", "step"), Column("value", "value", "number"))
    return Table("seconds", "Steps of the last invocation", columns, rows)


def gpu_hours_by_model(facts: Facts) -> dict[str, float]:
    """GPU hours of the last invocation by model; a model that held no GPU is left out."""
    hours: dict[str, float] = {}
    for group in (group for manifest in facts.manifests for wave in _waves(manifest) for group in wave):
        hours[group["model"]] = hours.get(group["model"], 0.0) + _gpu_hours(group)
    return {model: value for model, value in hours.items() if value}


def _gpu_hours(group: AnalysisRow) -> float:
    """GPU hours of a model that ran to its end: the number of its GPUs times the time that it held them."""
    if group["span"] is None:
        return 0.0
    seconds: float = group["span"]["ended"] - group["span"]["began"]
    return float(group["replicas"] * group["gpus_per_replica"] * seconds / 3600)
