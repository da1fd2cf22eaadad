"""The page of a landscape, made without a model: 24 simulated models x 8 arms and more, and two readers.

    python -m bench.landscape out=FOLDER          # 216 arms and the readers
    python -m bench.landscape out=FOLDER arms=96  # 24 models x 96 arms: the size of tables and page

Answers of three models are drawn, and scored by product code. The other models' scores are those of these
three, moved by some points: what a page shows of them is made up. Printed are the page's bytes.
"""

import json
import sys
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.claims import SUBTASKS, verdicts
from bench.page import write_record
from cardiolens.base import disk
from cardiolens.score.claims.parts_of_cohort import Groups
from cardiolens.score.run_results.run_analyses import analyses_of, write_analyses
from cardiolens.score.statistics.factors import ArmFactors, families
from cardiolens.score.statistics.items import ArmAnswers
from cardiolens.score.statistics.scores import compute_scores
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.statistics.verdict_rows import Verdicts
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
    settings = Settings(5, RESAMPLES, SEED, swaps=RESAMPLES)
    drawn_scores, drawn_comparisons = compute_scores(answers, drawn, settings)
    scores = tables.from_rows(of_models(drawn_scores.to_pylist(), names), schemas.SCORES)
    compared = compared_models(drawn_comparisons.to_pylist(), names)
    judged = renamed(judged, dict(zip(BASE, names, strict=False)))
    answers = ArmAnswers.of(judged)
    analyses = analyses_of(Verdicts.of(judged), answers, scores, arms, groups=Groups(), settings=settings)
    if is_full:  # analyses stay those of the small grid
        arms = arms_of([*names, *READERS], is_full=True)
        scores, compared = of_arms(scores.to_pylist(), arms), [*of_pairs(compared, arms)]
    tables.replace(run.verdicts, judged, schemas.VERDICTS)
    tables.replace(run.scores, scores, schemas.SCORES)
    tables.replace(run.comparisons, tables.from_rows(compared, schemas.COMPARISONS), schemas.COMPARISONS)
    write_analyses(run, analyses)
    write_record(run, store, folder)
    record = json.loads(run.manifest.read_text())
    record |= {"experiment": "landscape", "dataset": "simulated answers", "studies": PATIENTS}
    record["models"] = {model: {"model_key": model} for model in (*names, *READERS)}
    factors = ("arm_id", "model", "selector", "budget", "prompt", "control")
    record["arms"] = [{name: getattr(arm, name) for name in factors} for arm in arms]
    disk.write_text(run.manifest, json.dumps(record))
    own = json.loads(run.configuration.read_text())
    own["model"] = [{"name": model, "source": "packaged/tiny"} for model in names]
    own["model"] += [{"name": reader, "engine": reader} for reader in READERS]
    disk.write_text(run.configuration, json.dumps(own))
    return run


def renamed(judged: pa.Table, names: dict[str, str]) -> pa.Table:
    """Verdicts of other models."""
    arm_ids = judged["arm_id"]
    for old, new in names.items():
        arm_ids = pc.replace_substring(arm_ids, old, new)
    return judged.set_column(judged.schema.get_field_index("arm_id"), "arm_id", arm_ids)


def moves_of(names: list[str]) -> dict[str, float]:
    """By how many points each model's scores are moved."""
    dice = np.random.default_rng(SEED)
    points = np.linspace(12, -12, len(names)) + dice.normal(0, 2, len(names))
    return dict(zip(names, points, strict=True))


def of_models(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Scores of many models, each those of one that was drawn, moved by a few points."""
    moves, drawn = moves_of(names), list(BASE)
    made: list[dict[str, Any]] = []
    for row in rows:
        own = [model for model in drawn if model in row["arm_id"]]
        for name in names[drawn.index(own[0]) :: len(drawn)] if own else ():
            points = moves[name] if row["metric"] == "primary" else 0.0
            ends = {end: min(100.0, max(0.0, row[end] + points)) for end in ("value", "low", "high")}
            made.append({**row, **(ends if points else {}), "arm_id": row["arm_id"].replace(own[0], name)})
        made += [] if own else [row]
    return made


def compared_models(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Comparisons of many models: each model's own moved by chance, and those between any two."""
    dice, drawn, moves = np.random.default_rng(SEED), list(BASE), moves_of(names)
    made: list[dict[str, Any]] = []
    for row in rows:
        if row["factor"] == "model" and row["arm_id"] is None:
            pairs = combinations(names, 2) if {row["level"], row["versus"]} == set(drawn[:2]) else ()
            for first, second in pairs:
                points = moves[first] - moves[second]
                decision = "open" if abs(points) <= _TOLD_APART else "higher" if points > 0 else "lower"
                made.append(moved(row, points) | {"level": first, "versus": second, "decision": decision})
        elif row["model"] in drawn:
            for name in names[drawn.index(row["model"]) :: len(drawn)]:
                ids = {
                    column: row[column] and row[column].replace(row["model"], name)
                    for column in ("model", "arm_id", "versus_arm_id")
                }
                made.append(moved(row, dice.normal(0, 3)) | ids)
        else:
            made.append(row)
    return made


def moved(row: dict[str, Any], points: float) -> dict[str, Any]:
    """A comparison of scores moved by some points."""
    ends = ("difference", "low", "high", "low_90", "high_90")
    is_score = row["metric"] == "primary"
    return row | {end: row[end] + points for end in ends if is_score and row[end] is not None}


def of_arms(rows: list[dict[str, Any]], arms: list[ArmFactors]) -> pa.Table:
    """Scores of every arm of a large grid, each those of the first arm of a small one, and all headlines."""
    headlines = [row for row in rows if ":" in row["arm_id"]]
    first = next(row["arm_id"] for row in rows if ":" not in row["arm_id"])
    own = [row for row in rows if row["arm_id"] == first]
    repeated = [row | {"arm_id": arm.arm_id} for arm in arms for row in own]
    return tables.from_rows([*repeated, *headlines], schemas.SCORES)


def of_pairs(rows: list[dict[str, Any]], arms: list[ArmFactors]) -> Iterator[dict[str, Any]]:
    """Yield the comparisons of every pair of a large grid, each those of the first pair, and all others."""
    yield from (row for row in rows if row["arm_id"] is None)
    first = next(row for row in rows if row["arm_id"] is not None)
    sides = first["arm_id"], first["versus_arm_id"]
    own = [row for row in rows if (row["arm_id"], row["versus_arm_id"]) == sides]
    for factor, family in families(arms).items():
        for ours, theirs in family:
            names = {"factor": factor, "arm_id": ours, "versus_arm_id": theirs}
            yield from (row | names for row in own)


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
