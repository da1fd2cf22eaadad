"""The page of a landscape, made without a model: 24 simulated models x 8 arms and more, and two readers.

    python -m bench.landscape out=FOLDER          # 216 arms and the readers
    python -m bench.landscape out=FOLDER arms=96  # 24 models x 96 arms: the size of tables and page

Answers of three models are drawn, and scored by product code. The other models' scores are those of these
three, moved by some points: what a page shows of them is made up. Printed are the page's bytes.
"""

import json
import sys
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.claims import SUBTASKS, verdicts
from bench.page import write_record
from cardiolens.base import disk
from cardiolens.config.sweep import StatisticsSpec
from cardiolens.score.run_results.groups import Groups
from cardiolens.score.run_results.run_analyses import analyses_of, write_analyses
from cardiolens.score.statistics.arm_answers import ArmAnswers
from cardiolens.score.statistics.factors import ArmFactors, families
from cardiolens.score.statistics.headlines import headlines
from cardiolens.score.statistics.pooled_questions import pooled_questions
from cardiolens.score.statistics.scores import compute_scores
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.page.page_rendering import render
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run, Store

PATIENTS, RESAMPLES, SEED = 60, 100, 42
GRID = (("clinical", "random@1"), ("16", "32"), ("standard", "reasoning"))
FULL = (("clinical", "random@1", "uniform"), ("8", "16", "32", "64"), ("standard", "reasoning"))
CONTROLS = ("none", "blind", "blank", "captions")
BASE = {"drawn_a": 0.9, "drawn_b": 0.7, "drawn_c": 0.5}  # and the share of answers not drawn at random
_TOLD_APART = 8.0  # points between two models that count as shown
READERS = {"oracle": 1.0, "uniform": 0.0}


def main(words: list[str]) -> None:
    """Make the page, and print its size."""
    given = dict(word.split("=", 1) for word in words)
    folder, models, is_full = Path(given["out"]), int(given.get("models", 24)), given.get("arms") == "96"
    names = [f"model_{number:02d}" for number in range(1, models + 1)]
    run = make_run(folder, names, is_full=is_full)
    facts = read_facts(run, [run])
    page = render(facts)
    disk.write_text(run.page, page.index)
    for place, script in page.chunks.items():
        disk.write_text(run.root / place, script)
    beside = sum(len(script.encode()) for script in page.chunks.values())
    print(f"{len(facts.arms)} arms, {facts.scores.num_rows:,} scores")
    print(f"index.html {len(page.index.encode()) / 1e6:.1f} MB, tables beside it {beside / 1e6:.1f} MB")
    print(run.page)


def arms_of(models: list[str], *, is_full: bool) -> list[ArmFactors]:
    """Every combination of the grid, and one arm without images; readers have one arm of it."""
    grid = list(product(models, *(FULL if is_full else GRID), CONTROLS if is_full else ("none",)))
    grid += [] if is_full else [(model, "clinical", "16", "standard", "blind") for model in models]
    arms = [ArmFactors("-".join(levels), *levels, simulated=levels[0] in READERS) for levels in grid]
    return [arm for arm in arms if not arm.simulated or arm.arm_id.endswith("clinical-16-standard-none")]


def make_run(folder: Path, names: list[str], *, is_full: bool) -> Run:
    """Write what a page is made of: verdicts, scores, analyses and the record of a run."""
    run, store = Run(folder / "outputs" / "landscape-00000000"), Store(folder / "store")
    drawn, arms = (arms_of([*models, *READERS], is_full=False) for models in (BASE, names))
    judged = answers_of(drawn, BASE | READERS)
    answers = ArmAnswers.of(judged)
    options: dict[str, Any] = {"headlines": headlines(drawn), "pooled": pooled_questions(drawn)}
    options["simulated"] = {arm.arm_id for arm in drawn if arm.simulated}
    spool = compute_scores(answers, 5, RESAMPLES, SEED, families(drawn), swaps=RESAMPLES, **options)
    rows = of_models(spool.whole().to_pylist(), names)
    judged = renamed(judged, dict(zip(BASE, names, strict=False)))
    answers = ArmAnswers.of(judged)
    scores = tables.from_rows(rows, schemas.SCORES)
    statistics = StatisticsSpec(resamples=RESAMPLES)
    analyses = analyses_of(answers, [scores], arms, Groups(), statistics, forms={})
    if is_full:  # analyses stay those of the small grid
        arms = arms_of([*names, *READERS], is_full=True)
        scores = of_arms(rows, arms)
    tables.replace(run.verdicts, judged, schemas.VERDICTS)
    tables.replace(run.scores, scores, schemas.SCORES)
    write_analyses(run.analyses, analyses)
    write_record(run, store, folder)
    record = json.loads(run.manifest.read_text())
    record |= {"experiment": "landscape", "dataset": "simulated answers", "studies": PATIENTS}
    record["models"] = {model: {"model_key": model} for model in (*names, *READERS)}
    factors = ("arm_id", "model", "selector", "budget", "prompt", "control")
    record["arms"] = [{name: getattr(arm, name) for name in factors} for arm in arms]
    disk.write_text(run.manifest, json.dumps(record))
    own = json.loads(run.configuration.read_text())
    own["model"] = [{"name": model, "source": "embedded"} for model in names]
    own["model"] += [{"name": reader, "engine": reader} for reader in READERS]
    disk.write_text(run.configuration, json.dumps(own))
    return run


def renamed(judged: pa.Table, names: dict[str, str]) -> pa.Table:
    """Verdicts of other models."""
    arm_ids = judged["arm_id"]
    for old, new in names.items():
        arm_ids = pc.replace_substring(arm_ids, old, new)
    return judged.set_column(judged.schema.get_field_index("arm_id"), "arm_id", arm_ids)


def of_models(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Scores of many models, each those of one that was drawn, moved by a few points."""
    dice, drawn = np.random.default_rng(SEED), list(BASE)
    moves = dict(zip(names, np.linspace(12, -12, len(names)) + dice.normal(0, 2, len(names)), strict=True))
    made: list[dict[str, Any]] = []
    for row in rows:
        ids = f"{row['arm_id']} {row['versus_arm_id']}"
        of_row = [model for model in drawn if model in ids]
        if not of_row:
            made.append(row)
        elif len(of_row) == 1:
            copies = names[drawn.index(of_row[0]) :: len(drawn)]
            is_effect = row["versus_arm_id"] is not None or "pooled" in row["arm_id"]
            for name in copies:
                move = dice.normal(0, 3) if is_effect else moves[name]
                made.append(moved(row, {of_row[0]: name}, move))
        elif of_row == drawn[:2]:
            for first, second in combinations(names, 2):
                move = moves[first] - moves[second]
                made.append(moved(row, {drawn[0]: first, drawn[1]: second}, move))
                if row["metric"] == "primary.holm_p" and abs(move) > _TOLD_APART:
                    made[-1]["value"] = 0.001
    return made


def moved(row: dict[str, Any], names: dict[str, str], points: float) -> dict[str, Any]:
    """A score of another model: its ids renamed, its value and interval moved by some points."""
    changed = dict(row)
    for column in ("arm_id", "versus_arm_id"):
        for old, new in names.items():
            changed[column] = changed[column] and changed[column].replace(old, new)
    if row["metric"] == "primary":
        changed |= {name: row[name] + points for name in ("value", "low", "high")}
        if row["versus_arm_id"] is None and "pooled" not in row["arm_id"]:
            changed |= {name: min(100.0, max(0.0, changed[name])) for name in ("value", "low", "high")}
    return changed


def of_arms(rows: list[dict[str, Any]], arms: list[ArmFactors]) -> pa.Table:
    """Scores of every arm and pair of a large grid, each those of the first arm or pair of a small one."""
    ids = {arm.arm_id for arm in arms}
    alone = [row for row in rows if row["arm_id"] in ids and row["versus_arm_id"] is None]
    first = [row for row in alone if row["arm_id"] == alone[0]["arm_id"]]
    pair = next(
        (row["arm_id"], row["versus_arm_id"]) for row in rows if row["versus_arm_id"] and row["arm_id"] in ids
    )
    paired = [row for row in rows if (row["arm_id"], row["versus_arm_id"]) == pair]
    pairs = [entry for family in families(arms).values() for entry in family]
    others = tables.from_rows([row for row in rows if ":" in str(row["arm_id"])], schemas.SCORES)
    sides = [(arm.arm_id, None) for arm in arms]
    return tables.concat([repeated(first, sides), repeated(paired, pairs), others], schemas.SCORES)


def repeated(rows: list[dict[str, Any]], sides: list[tuple[str, Any]]) -> pa.Table:
    """The same rows for each arm, or pair of arms."""
    small = tables.from_rows(rows, schemas.SCORES)
    large = small.take(np.tile(np.arange(len(rows)), len(sides)))
    for column, ids in zip(("arm_id", "versus_arm_id"), zip(*sides, strict=True), strict=True):
        side = pa.array(ids, pa.string()).take(np.repeat(np.arange(len(sides)), len(rows)))
        large = large.set_column(large.schema.get_field_index(column), column, side)
    return large


def answers_of(arms: list[ArmFactors], shares: dict[str, float]) -> pa.Table:
    """Answers with what models share; of each model a part is drawn at random in place of its own."""
    dice = np.random.default_rng(SEED)
    rows = verdicts(arms, PATIENTS, dice, better=0.3)
    by_arm = {arm.arm_id: arm for arm in arms}
    for row in rows:
        arm = by_arm[str(row["arm_id"])]
        letters = "ABCDE"[: SUBTASKS[str(row["subtask"])][1]]
        if arm.model == "oracle":
            row["parsed"] = row["gold"]
        elif arm.control == "blind" or dice.random() > shares[arm.model]:
            row["parsed"] = [letters[dice.integers(len(letters))]]
        row["parse_status"] = "ok" if row["parsed"] else "parse_error"
    return tables.from_rows(rows, schemas.VERDICTS)


if __name__ == "__main__":
    main(sys.argv[1:])
