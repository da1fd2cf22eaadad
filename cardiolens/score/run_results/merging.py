"""Merge several runs into one, e.g. of two clusters or two days; runs that did not ask alike are refused."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.digest import digest_of, sha256_of
from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.score.run_results.scoring import Replies
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.storage import schemas, tables
from cardiolens.storage.documents import check_one_release
from cardiolens.storage.places import Run

# Entries of the manifest (first) and of the configuration (second) that all merged runs must share.
_ALIKE = ("protocol", "catalogue_sha256", "questions_sha256", "questions_digest", "cohort_digest")
_OPTIONS = ("caption", "answer_format", "templates", "statistics")
_KEY = ("arm_id", "qa_id", "channel")
_COLUMNS = ("arm_id", "subtask", "template")
_SETTING = ("prompt", "control")
_FILMED = " with cine as video"
# What one name stands for; seeds stand in the names of arms, and limits of replies are each model's own.
_NAMED = {
    "selector": {"seeds"},
    "prompt": {"max_tokens"},
}

_Asked = tuple[str, str, str]  # prompt, control, subtask


def check_alike(runs: Sequence[Run], specs: Sequence[SweepSpec], manifests: Sequence[dict[str, Any]]) -> None:
    """Refuse runs with different questions, studies or forms of prompt, or one name for two things.

    Runs of different releases are refused first.
    """
    check_one_release(runs, manifests)
    facts = [
        {name: manifest[name] for name in _ALIKE} | spec.model_dump(mode="json", include=set(_OPTIONS))
        for spec, manifest in zip(specs, manifests, strict=True)
    ]
    for run, values in zip(runs, facts, strict=True):
        for name, value in values.items():
            if value != facts[0][name]:
                raise InputError(
                    f"{run.root}: {name} is not that of {runs[0].root}; runs that are seen as one must have "
                    f"asked the same questions on the same studies in the same form"
                )
    _check_names(runs, specs)
    keys: dict[str, str] = {}
    for run, manifest in zip(runs, manifests, strict=True):
        for model, described in manifest["models"].items():
            key = str(described["model_key"])
            if keys.setdefault(model, key) != key:
                raise InputError(
                    f"{run.root}: model {model} is {key}, in an earlier run {keys[model]}; one name stands "
                    "for one model: give one of them another name, or leave that run out"
                )


def _check_names(runs: Sequence[Run], specs: Sequence[SweepSpec]) -> None:
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


def merged_run(runs: Sequence[Run]) -> Run:
    """Folder of the merged run, next to the first run; independent of the order of the runs.

    Its name tells what was judged in each run, so a run that was judged anew since is merged anew.
    """
    judged = sorted([run.root.name, sha256_of(run.analyses)] for run in runs if run.analyses.exists())
    unjudged = sorted(run.root.name for run in runs if not run.analyses.exists())
    return Run(runs[0].root.parent / f"merged-{digest_of([*judged, *unjudged])[:8]}")


def merge_replies(parts: Sequence[Replies]) -> Replies:
    """Join the verdicts of several runs.

    Of several verdicts on one item a judged one wins, then that of the earliest run in `parts`.
    """
    verdicts = Verdicts()
    unjudged: dict[str, set[str]] = {"engine_error": set(), "missing": set()}
    for arm in sorted({arm for part in parts for arm in part.verdict_store.arms}):
        first = _first_verdicts([part.verdict_store.of_arm(arm) for part in parts])
        verdicts.add(first)
        for status, keys in unjudged.items():
            keys.update(first.filter(pc.equal(first["status"], status))["request_key"].to_pylist())
    counts = Counter(dict.fromkeys(unjudged, 0))
    for part in parts:
        counts += Counter(part.counts)
    for status, keys in unjudged.items():  # recounted: a reply missing in one run may be in another
        counts[status] = len(keys)
    reply_scores = _first_of(tables.concat([part.reply_scores for part in parts], schemas.SCORES))
    seen = tables.concat([part.seen for part in parts], schemas.SEEN)
    digest, withheld = parts[0].questions_digest, parts[0].withheld  # all asked the same questions
    return Replies(verdicts, reply_scores, digest, seen, counts, withheld=withheld)


def _first_verdicts(of_runs: Sequence[pa.Table]) -> pa.Table:
    """Merge the verdicts of several runs on one arm to one verdict per item."""
    rows = pa.concat_tables(
        verdicts.append_column("order", pa.array([at] * verdicts.num_rows, pa.int64()))
        for at, verdicts in enumerate(of_runs)
    )
    rows = rows.append_column("unjudged", pc.not_equal(rows["status"], "judged"))
    ordered = rows.sort_by([(name, "ascending") for name in (*_KEY, "unjudged", "order")])
    first = ordered.append_column("row", pa.array(range(ordered.num_rows))).group_by(list(_KEY))
    unique_rows = ordered.take(
        np.sort(first.aggregate([("row", "min")])["row_min"])
    )  # groups come in any order
    return unique_rows.select(schemas.VERDICTS.names)


def _first_of(scores: pa.Table) -> pa.Table:
    """Drop rows whose metric, scope and arm an earlier row already has."""
    keys: set[tuple[str, str, str]] = set()
    rows = []
    for at, row in enumerate(scores.select(["metric", "scope", "arm_id"]).to_pylist()):
        key = row["metric"], row["scope"], row["arm_id"]
        rows += [] if key in keys else [at]
        keys.add(key)
    return scores.take(pa.array(rows, pa.int64()))
