"""The leaderboard as one static HTML file: no image, no report, no id of a patient, study or question."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM
from cardiolens.show.leaderboard.contrast import contrast
from cardiolens.show.leaderboard.standings import HEADLINE, standings, tier_groups
from cardiolens.show.page.cards import too_few_items
from cardiolens.show.page.elements import Column, Table
from cardiolens.show.page.embed import EmbeddedTable, embed, to_json
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.show.page.sections.run_setup import PUBLIC_BENCHMARK, PUBLIC_HEARTS, UNVERIFIED_ALLOWED
from cardiolens.storage.documents import release_of

_RUNS = (
    *(Column("run", "run"), Column("cardiolens", "CardioLens"), Column("commit", "commit")),
    *(Column("models", "models"), Column("arms", "arms", "count"), Column("failed", "models that failed")),
)
_SCRIPTS = ("format.js", "store.js", "table.js", "leaderboard.js")


def write_leaderboard(
    out: Path, facts: Facts, names: Sequence[str], public: Sequence[Facts] = (), *, unfinished: bool = False
) -> None:
    """Write the leaderboard of judged runs.

    `names` are those of the runs that the facts join, `public` the facts of runs on public benchmarks.
    """
    disk.write_text(out, render(facts, names, public, unfinished=unfinished))


def render(
    facts: Facts, names: Sequence[str], public: Sequence[Facts] = (), *, unfinished: bool = False
) -> str:
    """Render the leaderboard as HTML."""
    board = _whole(standings(facts))
    contrasts = [_whole(table) for table in contrast(facts, public)]
    tables = [board, *contrasts, _whole(_runs(names, facts.manifests)), _whole(_settings(facts))]
    context = {
        "facts": facts,
        "title": f"{release.name} {release.number}"
        if (release := release_of(facts.manifests[0]))
        else str(facts.manifests[0]["dataset"]),
        "board": board,
        "beside": contrasts,
        "tables": tables,
        "form": to_json({"tiers": tier_groups(), "headline": HEADLINE}),
        "warnings": _warnings(facts, unfinished=unfinished),
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


def _settings(facts: Facts) -> Table:
    """What all rows share: release, questions, protocol, rules, and the digests that name them."""
    manifest, spec = facts.manifests[0], facts.specs[0]
    release = release_of(manifest)
    resampled = "pictures" if spec.dataset.has_pictures else "patients"
    rows: list[tuple[str, str | int | float]] = [
        ("dataset", str(manifest["dataset"])),
        *([("release", f"{release.name} {release.number}")] if release else []),
        *([("release.json, SHA-256", release.sha256)] if release else []),
        ("protocol", str(manifest["protocol"])),
        ("catalogue of the protocol, SHA-256", str(manifest["catalogue_sha256"])),
        ("rules that judged", facts.rules),
        ("questions, SHA-256 of the file", str(manifest["questions_sha256"])),
        ("questions asked, digest", str(manifest["questions_digest"])),
        ("cohort, digest", str(manifest["cohort_digest"])),
        *(
            ("studies", int(manifest["studies"])),
            (f"{resampled} with a verdict", facts.n_patients),
        ),
        *(("answer format", spec.answer_format), ("captions of frames", spec.caption)),
        ("fewest items of a subtask", spec.statistics.min_n),
        *(("resamples", spec.statistics.resamples), ("seed of resamples", spec.statistics.seed)),
    ]
    return Table("settings", "What all rows share", (Column("what", "what"), Column("value", "value")), rows)


def _warnings(facts: Facts, *, unfinished: bool) -> list[str]:
    """Sentences on what makes these numbers say less than they seem to."""
    dataset = facts.specs[0].dataset
    versions = sorted({str(manifest["cardiolens"]) for manifest in facts.manifests})
    unscored = too_few_items(facts)
    scored = {arm.model for row in facts.scores_of(["primary"], "tier:") if (arm := facts.arm(row["arm_id"]))}
    scoreless = [model for model in facts.models if model not in scored]
    withheld = max(int(manifest.get("withheld", 0)) for manifest in facts.manifests)
    rules = [
        (facts.n_patients < FEWEST_FOR_CLAIM, f"{facts.patients_in_words}: too few for any claim."),
        (
            facts.is_synthetic,
            "A synthetic cohort: phantoms that this software draws. No score here says how well a model "
            "reads a patient.",
        ),
        (
            facts.simulated.issuperset(facts.models),
            "Simulated readers only: these numbers test the software, not a model.",
        ),
        ("unverified" in dataset.allow, f"{UNVERIFIED_ALLOWED[0].upper()}{UNVERIFIED_ALLOWED[1:]}."),
        ("public_hearts" in dataset.allow, f"{PUBLIC_HEARTS[0].upper()}{PUBLIC_HEARTS[1:]}."),
        (dataset.has_pictures, f"{PUBLIC_BENCHMARK[0].upper()}{PUBLIC_BENCHMARK[1:]}."),
        (bool(scoreless), f"Not in the table, because nothing of theirs was judged: {', '.join(scoreless)}."),
        (bool(unscored), unscored),
        (withheld > 0, f"The answers of {counted(withheld, 'question')} are withheld: they are in no score."),
        (unfinished, "Some requests have no answer yet: the scores are not final."),
        (len(versions) > 1, f"The runs were made by versions {', '.join(versions)} of CardioLens."),
    ]
    return [sentence for applies, sentence in rules if applies]
