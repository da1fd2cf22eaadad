"""What the answers of a run cost, by model: summed over the distinct requests that count."""

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
    """Requests and tokens of one model. `asked` counts an arm's questions, `unique` what had to be run."""

    model: str
    asked: int
    unique: int
    answered: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    seconds: float  # of requests, which overlap


def usage_of(
    parts: Sequence[Run], specs: Sequence[SweepSpec], manifests: Sequence[Mapping[str, Any]]
) -> tuple[Usage, ...]:
    """Usage of every model of every run; a model that stands in several runs is counted once."""
    folders: dict[str, tuple[list[Run], Store, str]] = {}
    for run, spec, manifest in zip(parts, specs, manifests, strict=True):
        for model, facts in manifest["models"].items():
            runs, _, _ = folders.setdefault(model, ([], Store(spec.store), str(facts["model_key"])))
            runs.append(run)
    return tuple(_usage(model, *found) for model, found in folders.items())


def _usage(model: str, runs: Sequence[Run], store: Store, model_key: str) -> Usage:
    asked = pa.concat_tables(
        tables.read(run.requests(model), tables.REQUESTS, ["request_key", "status"]) for run in runs
    )
    planned = asked.filter(pc.equal(asked["status"], "planned"))
    keys = pc.unique(planned["request_key"])
    said = tables.read(store.completions(model_key), tables.COMPLETIONS, _COLUMNS)
    counted = finals(said.filter(pc.is_in(said["request_key"], value_set=keys)))

    def total(column: str) -> float:
        return pc.sum(counted[column]).as_py() or 0

    return Usage(
        model=model,
        asked=asked.num_rows,
        unique=len(keys),
        answered=counted.num_rows,
        prompt_tokens=int(total("prompt_tokens")),
        cached_tokens=int(total("cached_tokens")),
        output_tokens=int(total("output_tokens")),
        seconds=float(total("seconds")),
    )
