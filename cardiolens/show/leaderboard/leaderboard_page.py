"""The leaderboard as one static HTML file: no image, no report, no id of a patient, study or question."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.show.leaderboard.contrast import contrast
from cardiolens.show.leaderboard.standings import HEADLINE, standings, tier_groups
from cardiolens.show.page.cautions import cautions
from cardiolens.show.page.elements import Column, Table
from cardiolens.show.page.embed import EmbeddedTable, embed, to_json
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.show.page.sections.run_setup import shared_settings
from cardiolens.storage.documents import release_of

_RUNS = (
    *(Column("run", "run"), Column("cardiolens", "CardioLens"), Column("commit", "commit")),
    *(Column("models", "models"), Column("arms", "arms", "count"), Column("failed", "models that failed")),
)
_SCRIPTS = ("format.js", "store.js", "table.js", "leaderboard.js")


def write_leaderboard(out: Path, facts: Facts, names: Sequence[str], public: Sequence[Facts] = ()) -> None:
    """Write the leaderboard of judged runs.

    `names` are those of the runs that the facts join, `public` the facts of runs on public benchmarks.
    """
    disk.write_text(out, render(facts, names, public))


def render(facts: Facts, names: Sequence[str], public: Sequence[Facts] = ()) -> str:
    """Render the leaderboard as HTML."""
    beside = [f"{each.manifests[0]['dataset']}: {words}" for each in public for words in cautions(each)]
    board = _whole(standings(facts))
    contrasts = [_whole(table) for table in contrast(facts, public)]
    tables = [board, *contrasts, _whole(_runs(names, facts.manifests)), _whole(shared_settings(facts))]
    context = {
        "facts": facts,
        "title": f"{release.name} {release.number}"
        if (release := release_of(facts.manifests[0]))
        else str(facts.manifests[0]["dataset"]),
        "board": board,
        "beside": contrasts,
        "tables": tables,
        "form": to_json({"tiers": tier_groups(), "headline": HEADLINE}),
        "warnings": [*cautions(facts), *beside],
        "style": asset("page.css") + asset("leaderboard.css"),
        "scripts": [asset(name) for name in _SCRIPTS],
    }
    return templates().get_template("leaderboard.html").render(context)


def _whole(table: Table) -> EmbeddedTable:
    """A table inside the page, however large: the page is one file."""
    return embed(table, one_file=True)


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
    return Table.of("runs", "Runs", _RUNS, records)
