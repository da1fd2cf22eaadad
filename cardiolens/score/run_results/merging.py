"""Merge several runs into one, e.g. of two clusters or two days; runs that did not ask alike are refused."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.digest import digest_of, sha256_of
from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.score.run_results.model_replies import WITH_REPLIES, Replies
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.storage import schemas, tables
from cardiolens.storage.documents import check_one_release
from cardiolens.storage.places import Run

# Entries of the manifest (first) and of the configuration (second) that all merged runs must share.
_ALIKE = ("protocol", "catalogue_sha256", "questions_sha256", "questions_digest", "cohort_digest")
_OPTIONS = ("caption", "answer_format", "templates", "statistics")
_KEY = ("arm_id", "qa_id", "channel")
_COLUMNS = ("arm_id", "subtask", "template")
# What one name stands for; seeds stand in the names of arms, and limits of replies are each model's own.
_APART = {
    "selector": {"seeds"},
    "prompt": {"max_tokens"},
}

_Place = tuple[str, str, str]  # prompt, control, subtask


def check_alike(runs: Sequence[Run], specs: Sequence[SweepSpec], manifests: Sequence[dict[str, Any]]) -> None:
    """Refuse runs with different questions, studies or forms of prompt, or one name for two things.

    Runs of different releases are refused first.
    """
    check_one_release(runs, manifests)
    shared: dict[str, Any] = {}
    named: dict[tuple[str, str, str], tuple[Run, Any]] = {}
    for run, spec, manifest in zip(runs, specs, manifests, strict=True):
        facts = {name: manifest[name] for name in _ALIKE} | spec.model_dump(include=set(_OPTIONS))
        for name, value in facts.items():
            if value != shared.setdefault(name, value):
                raise InputError(
                    f"{run.root}: {name} is not that of {runs[0].root}; runs that are seen as one must have "
                    f"asked the same questions on the same studies in the same form"
                )
        for (kind, name, entry), here in _properties(spec, manifest):
            first_run, there = named.setdefault((kind, name, entry), (run, here))
            if here != there:
                raise InputError(
                    f"{run.root}: {kind} {name} has {entry} {here}, in {first_run.root} {there}; "
                    f"one name stands for one {kind}: give one of them another name and run it again, or "
                    "leave that run out"
                )


def _properties(spec: SweepSpec, manifest: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """Yield what a name of a run stands for, by kind, name and property; runs are ranked by names."""
    for kind, apart in _APART.items():
        for named in getattr(spec, kind):
            properties = named.model_dump(mode="json", exclude=apart)
            yield from (((kind, named.name, entry), value) for entry, value in properties.items())
    for model, described in manifest["models"].items():
        yield ("model", model, "key"), described["model_key"]


def check_templates(runs: Sequence[Run], manifests: Sequence[Mapping[str, Any]]) -> None:
    """Refuse runs that put one question into different words: versions of CardioLens may bring other ones.

    A template's name holds a digest of its text, so that one name is one text.
    """
    first: dict[_Place, tuple[str, Run, str]] = {}
    for run, manifest in zip(runs, manifests, strict=True):
        for model in manifest["models"]:
            for place, template in _templates(run, model, manifest["arms"]):
                first_template, first_run, first_model = first.setdefault(place, (template, run, model))
                if first_template != template:
                    raise InputError(
                        f"{run.root}: {model} was asked {place[2]} with template {template}, but "
                        f"{first_model} in {first_run.root} with {first_template}; models are ranked on the "
                        "same words: run the sweep again in one version of CardioLens, or leave that run out"
                    )


def _templates(run: Run, model: str, arms: Sequence[Mapping[str, Any]]) -> list[tuple[_Place, str]]:
    """The template of each prompt, control and subtask that a model was asked, and what is shown with it."""
    by_id = {arm["arm_id"]: arm for arm in arms}
    rows = tables.read(run.requests(model), schemas.REQUESTS, _COLUMNS)
    rows = rows.filter(pc.is_in(rows["arm_id"], value_set=pa.array(list(by_id), pa.string())))
    templates = set()
    for row in rows.group_by(list(_COLUMNS)).aggregate([]).to_pylist():
        arm, template = by_id[row["arm_id"]], row["template"]
        if shots := int(arm.get("shots", 0)):
            template += f" after {shots} solved examples"
        if arm.get("cine") == "video":
            template += " with cine as video"
        templates.add(((str(arm["prompt"]), str(arm["control"]), row["subtask"]), template))
    return sorted(templates)


def merged_run(runs: Sequence[Run]) -> Run:
    """Folder of the merged run, next to the first run; independent of the order of the runs.

    Its name depends on what was judged in each run: a run that was judged again is merged again.
    """
    judged = sorted([run.root.name, sha256_of(run.analyses)] for run in runs if run.analyses.exists())
    unjudged = sorted(run.root.name for run in runs if not run.analyses.exists())
    return Run(runs[0].root.parent / f"merged-{digest_of([*judged, *unjudged])[:8]}")


def merge_replies(parts: Sequence[Replies]) -> Replies:
    """Join the verdicts of several runs.

    Of several verdicts on one item a judged one wins, then that of the earliest run in `parts`.
    """
    verdicts, names = Verdicts(WITH_REPLIES), WITH_REPLIES.names
    unjudged: dict[str, set[str]] = {"engine_error": set(), "missing": set()}
    for arm in sorted({arm for part in parts for arm in part.verdict_store.arms}):
        first = _first_verdicts([part.verdict_store.of_arm(arm, names) for part in parts])
        verdicts.add(first)
        for status, keys in unjudged.items():
            keys.update(first.filter(pc.equal(first["status"], status))["request_key"].to_pylist())
    counts = Counter(dict.fromkeys(unjudged, 0))
    for part in parts:
        counts += Counter(part.counts)
    for status, keys in unjudged.items():  # recounted: a reply missing in one run may be in another
        counts[status] = len(keys)
    seen = tables.concat([part.seen for part in parts], schemas.SEEN)
    return Replies(verdicts, seen, counts, parts[0].questions_digest)  # all asked the same


def _first_verdicts(of_runs: Sequence[pa.Table]) -> pa.Table:
    """Merge the verdicts of several runs on one arm to one verdict per item."""
    rows = pa.concat_tables(
        verdicts.append_column("order", pa.array([at] * verdicts.num_rows, pa.int64()))
        for at, verdicts in enumerate(of_runs)
    )
    rows = rows.append_column("unjudged", pc.not_equal(rows["status"], "judged"))
    rows = rows.sort_by([(name, "ascending") for name in (*_KEY, "unjudged", "order")])
    rows = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    first = rows.group_by(list(_KEY)).aggregate([("row", "min")])["row_min"]
    return rows.take(np.sort(first)).select(WITH_REPLIES.names)  # groups come in any order
