"""The leaderboard as one static HTML file: no image, no report, no id of a patient, study or question."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.statistic import TIERS
from cardiolens.show.page.cards import cautions, shown_lower
from cardiolens.show.page.columns import caveats, ends, model_of, scope_words, setting
from cardiolens.show.page.elements import Table
from cardiolens.show.page.embed import embed, to_json
from cardiolens.show.page.page_data import Facts, Usage
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.show.page.sections.run_setup import gpu_hours_by_model, kind_of, shared_settings
from cardiolens.storage.documents import release_of

HEADLINE = "headline"  # the setting of rows that are ranked
_METRICS = ("primary", "primary.skill")
_SCRIPTS = ("format.js", "store.js", "table.js", "leaderboard.js")


def write_leaderboard(out: Path, facts: Facts, names: Sequence[str]) -> None:
    """Write the leaderboard of judged runs; `names` are those of the runs that the facts join."""
    made = standings(facts), _runs(names, facts.manifests), shared_settings(facts)
    tables = [embed(table, one_file=True) for table in made]  # however large: the page is one file
    context = {
        "facts": facts,
        "title": f"{release.name} {release.number}"
        if (release := release_of(facts.manifests[0]))
        else str(facts.manifests[0]["dataset"]),
        "board": tables[0],
        "tables": tables,
        "form": to_json({"tiers": tier_groups(), "headline": HEADLINE}),
        "warnings": cautions(facts),
        "style": asset("page.css") + asset("leaderboard.css"),
        "scripts": [asset(name) for name in _SCRIPTS],
    }
    disk.write_text(out, templates().get_template("leaderboard.html").render(context))


def _runs(names: Sequence[str], manifests: Sequence[Mapping[str, Any]]) -> Table:
    records = [
        {
            "run": name,
            "cardiolens": manifest["cardiolens"],
            "commit": (manifest["git_commit"] or "")[:12] or None,
            "models": ", ".join(manifest["models"]),
            "arms": len(manifest["arms"]),
            "failed": ", ".join(manifest.get("failed", {})) or None,
        }
        for name, manifest in zip(names, manifests, strict=True)
    ]
    return Table.of("runs", records)


def standings(facts: Facts) -> Table:
    """Rank models tier by tier; several may be the best, where no difference to the highest is shown."""
    scores = facts.scores_of(_METRICS, "tier:")
    best = {tier: _highest(facts, scores, tier) for tier in TIERS}
    by_arm: dict[str, dict[str, object]] = {}
    for row in scores:
        arm_id, tier = str(row["arm_id"]), str(row["scope"])
        cells = by_arm.setdefault(arm_id, _arm_cells(facts, arm_id))
        cells |= (
            _score_cells(row, tier) if row["metric"] == "primary" else {_name(tier, "skill"): row["value"]}
        )
        if row["metric"] == "primary":
            ranked = _rank(facts, row, best[tier]) if model_of(row) else ""
            cells[_name(tier, "note")] = "; ".join(filter(None, (ranked, *caveats(row)))) or None
    records = [cells for cells in by_arm.values() if cells["model"]]
    return Table.of("standings", records)


def tier_groups() -> list[tuple[str, str]]:
    """First part of the names of a tier's columns, and its words, by tier."""
    return [(_name(tier, ""), scope_words(tier)) for tier in TIERS]


def _name(tier: str, part: str) -> str:
    stem = tier.replace(":", "")
    return f"{stem}_{part}" if part else stem


def _arm_cells(facts: Facts, arm_id: str) -> dict[str, object]:
    """Model and setting of an arm or a headline, with what the model took."""
    if model := model_of({"arm_id": arm_id}):
        words = HEADLINE
    elif (arm := facts.arm(arm_id)) is not None:
        model, words = arm.model, setting(arm)
    else:
        return {"model": ""}  # of an earlier judgement of the same folder
    return {"model": model, "kind": kind_of(facts, model), "setting": words, **_model_cells(facts, model)}


def _model_cells(facts: Facts, model: str) -> dict[str, object]:
    """What a model is and took; the columns of the table pick from it."""
    described: dict[str, object] = next(
        (each["models"][model] for each in facts.manifests if model in each["models"]), {}
    )
    usage = next((_usage_cells(usage) for usage in facts.usage if usage.model == model), {})
    return {**described, "gpu_hours": gpu_hours_by_model(facts).get(model), **usage}


def _usage_cells(usage: Usage) -> dict[str, object]:
    last = None if usage.last_at is None else f"{usage.last_at.astimezone(UTC):%Y-%m-%d}"
    cells: dict[str, object] = {"answered": usage.answered, "unique": usage.unique, "last_reply": last}
    if usage.answered and usage.prompt_tokens:  # a simulated reader counts none
        cells |= {name: getattr(usage, name) / usage.answered for name in ("prompt_tokens", "output_tokens")}
    return cells


def _score_cells(row: AnalysisRow, tier: str) -> dict[str, object]:
    names = {"": "value", "items": "n_items", "patients": "n_patients"}
    cells = {part: row[name] for part, name in names.items()} | ends(row)
    return {_name(tier, part): cell for part, cell in cells.items()}


def _highest(facts: Facts, scores: Iterable[AnalysisRow], tier: str) -> AnalysisRow | None:
    """The highest headline of a tier; of simulated readers and people only where there is nobody else."""
    headlines = [
        row
        for row in scores
        if (row["metric"], row["scope"]) == ("primary", tier)
        and model_of(row)
        and not math.isnan(row["value"])
    ]
    real = [row for row in headlines if kind_of(facts, model_of(row)) == "model"]
    return max(real or headlines, key=lambda row: float(row["value"]), default=None)


def _rank(facts: Facts, row: AnalysisRow, best: AnalysisRow | None) -> str:
    """How a headline stands to the highest of its tier; several of one score may be the highest."""
    if best is None or math.isnan(row["value"]):
        return ""
    if kind_of(facts, model_of(row)) != kind_of(facts, model_of(best)):
        return "not ranked with models"
    if row["value"] == best["value"]:
        return "highest"
    return "lower" if shown_lower(facts, row, best) else "not shown to be lower"
