"""The headlines of models on public benchmarks, beside those on hearts: described, never ranked together."""

from collections.abc import Sequence
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.score.statistics.factors import is_headline
from cardiolens.show.page.columns import (
    COUNTS,
    HIGH,
    LOW,
    METHOD,
    caveats,
    ends,
    model_of,
    scope_words,
    starred,
)
from cardiolens.show.page.elements import Column, Table
from cardiolens.show.page.page_data import Facts

_METRICS = {"primary": "value", "primary.constant": "constant", "primary.skill": "skill"}
_COLUMNS = (
    *(Column("model", "model"), Column("benchmark", "benchmark"), Column("questions", "questions")),
    *(Column("value", "score", "score"), LOW, HIGH),
    *(Column("constant", "best constant answer", "score"), Column("skill", "skill", "score")),
    *(Column("pooled", "right of all items", "score"), *COUNTS, Column("protocol", "protocol")),
    Column("note", METHOD.title),
)


def contrast(hearts: Facts, public: Sequence[Facts]) -> tuple[Table, ...]:
    """Tabulate public benchmarks and hearts, model by model; no table without public benchmarks.

    InputError if one is no public benchmark, was judged by other rules, or is there twice, or if one name
    stands for two models.
    """
    if not public:
        return ()
    _check(hearts, public)
    rows = [row for facts in (*public, hearts) for row in _headlines(facts)]
    order = {model: at for at, model in enumerate(hearts.models)}
    ranked = sorted(rows, key=lambda row: order.get(str(row["model"]), len(order)))
    return (Table.of("contrast", "Public benchmarks and hearts", _COLUMNS, ranked),)


def _headlines(facts: Facts) -> list[dict[str, Any]]:
    """The headlines of a run, one row per model and tier, in the order in which the run has them."""
    records: dict[tuple[str, str], dict[str, Any]] = {}
    for row in facts.scores_of(tuple(_METRICS), "tier:"):
        model, tier = model_of(row), str(row["scope"])
        if not model:
            continue
        cells = records.setdefault((model, tier), _place(facts, model, tier))
        cells[_METRICS[str(row["metric"])]] = row["value"]
        if row["metric"] == "primary":
            cells.update({name: row[name] for name in ("n_items", "n_patients")})
            cells.update(ends(row), note="; ".join(caveats(row)) or None)
    if facts.specs[0].dataset.has_pictures:
        for (model, _), cells in records.items():
            cells.update(questions="closed questions", pooled=_pooled(facts, model))
    return list(records.values())


def _pooled(facts: Facts, model: str) -> float | None:
    """The share of right answers over all items of a benchmark, as it is mostly published.

    A tier's score is the mean over its subtasks, here over numbers of options. None if several arms are
    behind the headline.
    """
    arms = {arm.arm_id for arm in facts.arms if arm.model == model and is_headline(arm)}
    rows = [row for row in facts.scores_of(["primary"], "subtask:") if row["arm_id"] in arms]
    items = sum(row["n_items"] for row in rows)
    if len(arms) != 1 or not items:
        return None
    return float(sum(row["value"] * row["n_items"] for row in rows) / items)


def _place(facts: Facts, model: str, tier: str) -> dict[str, Any]:
    manifest = facts.manifests[0]
    return {
        "model": starred(model, facts),
        "benchmark": _benchmark(facts),
        "questions": scope_words(tier),
        "protocol": manifest["protocol"],
    }


def _benchmark(facts: Facts) -> str:
    """The name of a data set; training splits are what many models were trained on."""
    dataset = facts.specs[0].dataset
    is_training = dataset.source is not None and dataset.split == "train"
    return f"{facts.manifests[0]['dataset']}{', training split' if is_training else ''}"


def _check(hearts: Facts, public: Sequence[Facts]) -> None:
    keys: dict[str, str] = {}
    for facts in public:
        if facts.specs[0].dataset.source is None:
            raise InputError(
                f"public=: {facts.name} asked {facts.manifests[0]['dataset']}, which is no public benchmark: "
                "it has no dataset.source; give it in runs=, or leave it out"
            )
    datasets = [str(facts.manifests[0]["dataset"]) for facts in (hearts, *public)]
    for facts, dataset in zip((hearts, *public), datasets, strict=True):
        if datasets.count(dataset) > 1:
            raise InputError(f"public=: {dataset} is there twice; give one run of each benchmark")
        if facts.rules != hearts.rules:
            raise InputError(
                f"{facts.name}: was judged by rules {facts.rules}, {hearts.name} by {hearts.rules}; judge it "
                "again: python -m cardiolens.judge run=..."
            )
        for manifest in facts.manifests:
            for model, described in manifest["models"].items():
                if keys.setdefault(model, str(described["model_key"])) != described["model_key"]:
                    raise InputError(
                        f"{facts.name}: model {model} is {described['model_key']}, in another run "
                        f"{keys[model]}; one name stands for one model: leave that run out"
                    )
