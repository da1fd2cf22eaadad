"""Usage of a run by model: tokens and seconds, summed over the distinct requests that count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.config.sweep import SweepSpec
from cardiolens.judging.finals import finals
from cardiolens.record.places import Run, Store

_COLUMNS = (
    *("request_key", "status", "written_at"),
    *("prompt_tokens", "cached_tokens", "output_tokens", "seconds"),
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests and tokens of one model."""

    model: str
    asked: int  # questions, counted once per arm
    unique: int  # distinct requests planned
    answered: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    seconds: float  # summed over requests, which overlap in time


def usage_of(
    parts: Sequence[Run], specs: Sequence[SweepSpec], manifests: Sequence[Mapping[str, Any]]
) -> tuple[Usage, ...]:
    """Usage of all models of all runs, one entry per model; runs of one model are joined."""
    folders: dict[str, tuple[list[Run], Store, str]] = {}
    for run, spec, manifest in zip(parts, specs, manifests, strict=True):
        for model, facts in manifest["models"].items():
            runs, _, _ = folders.setdefault(model, ([], Store(spec.store), str(facts["model_key"])))
            runs.append(run)
    return tuple(_usage(model, *places) for model, places in folders.items())


def _usage(model: str, runs: Sequence[Run], store: Store, model_key: str) -> Usage:
    requests = pa.concat_tables(
        tables.read(run.requests(model), tables.REQUESTS, ["request_key", "status"]) for run in runs
    )
    planned = requests.filter(pc.equal(requests["status"], "planned"))
    keys = pc.unique(planned["request_key"])
    completions = tables.read(store.completions(model_key), tables.COMPLETIONS, _COLUMNS)
    final = finals(completions.filter(pc.is_in(completions["request_key"], value_set=keys)))

    def total(column: str) -> float:
        return pc.sum(final[column]).as_py() or 0

    return Usage(
        model=model,
        asked=requests.num_rows,
        unique=len(keys),
        answered=final.num_rows,
        prompt_tokens=int(total("prompt_tokens")),
        cached_tokens=int(total("cached_tokens")),
        output_tokens=int(total("output_tokens")),
        seconds=float(total("seconds")),
    )
