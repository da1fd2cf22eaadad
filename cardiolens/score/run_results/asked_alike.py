"""Whether runs asked their questions alike: what their selectors and prompts stand for, and the words."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run

_COLUMNS = ("arm_id", "subtask", "template")
_SETTING = ("prompt", "control")

_FILMED = " with cine as video"

# What one name stands for; seeds stand in the names of arms, and limits of replies are each model's own.
_NAMED = {
    "selector": {"seeds"},
    "prompt": {"max_tokens", "report_max_tokens", "step_max_tokens"},
}

_Asked = tuple[str, str, str]  # prompt, control, subtask


def check_names(runs: Sequence[Run], specs: Sequence[SweepSpec]) -> None:
    """Refuse runs in which one name stands for two selectors or two prompts: they would be ranked as one."""
    first: dict[tuple[str, str], tuple[Run, dict[str, Any]]] = {}
    for run, spec in zip(runs, specs, strict=True):
        for kind, apart in _NAMED.items():
            for entry in getattr(spec, kind):
                own = entry.model_dump(mode="json", exclude=apart)
                other_run, other = first.setdefault((kind, entry.name), (run, own))
                if differing := [name for name in own if own[name] != other[name]]:
                    name = differing[0]
                    raise InputError(
                        f"{run.root}: {kind} {entry.name} has {name} {own[name]}, in {other_run.root} "
                        f"{other[name]}; one name stands for one {kind}: give one of them another name and "
                        "run it again, or leave that run out"
                    )


def check_templates(runs: Sequence[Run], manifests: Sequence[Mapping[str, Any]]) -> None:
    """Refuse runs that put one question into different words: versions of CardioLens may bring other ones.

    A template's name holds a digest of its text, so that one name is one text.
    """
    first: dict[_Asked, tuple[str, Run, str]] = {}
    for run, manifest in zip(runs, manifests, strict=True):
        settings = {arm["arm_id"]: tuple(str(arm[name]) for name in _SETTING) for arm in manifest["arms"]}
        added = {str(arm["prompt"]): _added(arm) for arm in manifest["arms"]}
        for model in manifest["models"]:
            for place, alone in _templates(run, model, settings):
                template = f"{alone}{added[place[0]]}"
                first_template, first_run, first_model = first.setdefault(place, (template, run, model))
                if first_template != template:
                    raise InputError(
                        f"{run.root}: {model} was asked {place[2]} with template {template}, but "
                        f"{first_model} in {first_run.root} with {first_template}; models are ranked on the "
                        "same words: run the sweep again in one version of CardioLens, or leave that run out"
                    )


def _added(arm: Mapping[str, Any]) -> str:
    """What the prompt of an arm shows besides its template, in words."""
    shots = int(arm.get("shots", 0))
    return (
        f"{f' after {shots} solved examples' if shots else ''}{_FILMED if arm.get('cine') == 'video' else ''}"
    )


def _templates(run: Run, model: str, settings: Mapping[str, tuple[str, ...]]) -> list[tuple[_Asked, str]]:
    """The template of each prompt, control and subtask that a model was asked, in order."""
    rows = tables.read(run.requests(model), schemas.REQUESTS, _COLUMNS)
    distinct = rows.filter(
        pc.is_in(rows["arm_id"], value_set=pa.array(list(settings), pa.string()))
    ).group_by(list(_COLUMNS))
    pairs = {
        ((*settings[row["arm_id"]], row["subtask"]), row["template"])
        for row in distinct.aggregate([]).to_pylist()
    }
    return sorted(((prompt, control, subtask), template) for (prompt, control, subtask), template in pairs)
