"""The leaderboard as one static HTML file: no image, no report, no id of a patient, study or question."""

import math
from collections.abc import Iterable
from pathlib import Path

from cardiolens.base import disk
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.statistic import TIERS
from cardiolens.show.page.cards import cautions, shown_lower
from cardiolens.show.page.columns import caveats, ends, model_of, scope_words, setting
from cardiolens.show.page.elements import Record, Table
from cardiolens.show.page.embed import embed, to_json
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.show.page.sections.page_sections import table_of
from cardiolens.show.page.sections.run_tables import kind_of, model_cells
from cardiolens.storage.documents import release_of

HEADLINE = "headline"  # the setting of rows that are ranked
_METRICS = ("primary", "primary.skill")
_SCRIPTS = ("format.js", "store.js", "table.js", "leaderboard.js")


def write_leaderboard(out: Path, facts: Facts) -> None:
    """Write the leaderboard of judged runs as one file, however large its tables are."""
    release = release_of(facts.manifests[0])
    tiers = [(tier.replace(":", ""), scope_words(tier)) for tier in TIERS]  # as columns begin, and in words
    context = {
        "facts": facts,
        "title": f"{release.name} {release.number}" if release else facts.manifests[0]["dataset"],
        "standings": embed(Table.of("standings", standings(facts)), one_file=True),
        "fixed": embed(table_of(facts, "fixed"), one_file=True),
        "form": to_json({"tiers": tiers, "headline": HEADLINE}),
        "warnings": cautions(facts),
        "style": asset("page.css") + asset("leaderboard.css"),
        "scripts": [asset(name) for name in _SCRIPTS],
    }
    disk.write_text(out, templates().get_template("leaderboard.html").render(context))


def standings(facts: Facts) -> list[Record]:
    """Rank models tier by tier; several may be the best, where no difference to the highest is shown."""
    scores = facts.scores_of(_METRICS, "tier:")
    best = {tier: _highest(facts, scores, tier) for tier in TIERS}
    per_request = {"prompt_tokens": "per_request", "output_tokens": "output_per_request"}
    took = {
        model: cells | {name: cells[mean] for name, mean in per_request.items()}
        for model, cells in model_cells(facts).items()
    }
    by_arm: dict[str, dict[str, object]] = {}
    for row in scores:
        arm, stem = facts.arm(row["arm_id"]), row["scope"].replace(":", "")
        model = model_of(row) if arm is None else arm.model
        if not model:  # an arm of an earlier judgement of the same folder
            continue
        names = {"model": model, "kind": kind_of(facts, model), "setting": setting(arm) if arm else HEADLINE}
        cells = by_arm.setdefault(row["arm_id"], took.get(model, {}) | names)
        if row["metric"] != "primary":
            cells[f"{stem}_skill"] = row["value"]
            continue
        ranked = "" if arm else _rank(facts, row, best[row["scope"]])
        cells |= {
            stem: row["value"],
            **{f"{stem}_{end}": value for end, value in ends(row).items()},
            f"{stem}_items": row["n_items"],
            f"{stem}_patients": row["n_patients"],
            f"{stem}_note": "; ".join(filter(None, (ranked, *caveats(row)))) or None,
        }
    return list(by_arm.values())


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
