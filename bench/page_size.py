"""Benchmark of viewer and page at the paper's size: 24 models x 24 arms x 13,494 questions, and fewer models.

Verdicts, prompts and replies are simulated, as long as real ones; a run is written a part at a time. Measured
are the served viewer (start, lists, cases, search), the portable viewer, and the page, of made-up scores and
the verdicts of few patients. A row of its tables is an arm or a pair of them, so patients add none.

python -m bench.page_size [--models 24] [--items 13494] [--page]
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.bootstrap import verdicts
from bench.page import prompt, write_record
from cardiolens.base import disk
from cardiolens.score.claims.parts_of_cohort import Groups
from cardiolens.score.run_results.run_analyses import analyses_of, write_analyses
from cardiolens.score.statistics.factors import ArmFactors, families
from cardiolens.score.statistics.items import ArmAnswers
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.show.page.case_viewer.item_sources import open_sources
from cardiolens.show.page.case_viewer.viewer_server import Viewer, write_viewer
from cardiolens.show.page.page_data import read_facts, read_header
from cardiolens.show.page.page_rendering import render
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run, Store

PATIENTS = 670
PATIENTS_OF_PAGE = 20  # whose verdicts the page's analyses are made of
SUBTASKS = 32
PART_ROWS = 4_096
ROW = "The left ventricle is of normal size; its wall moves evenly. " * 7
LISTS = (("clinical", "random", "uniform"), ("8", "16", "32", "64"), ("standard", "reasoning"))
CONFIDENCE = (
    *("auroc", "average_precision", "calibration_error", "risk_area"),
    *(f"calibration.{number}.{side}" for number in range(10) for side in ("accuracy", "confidence")),
    *(f"risk.{number}" for number in range(10)),
)


def arms(models: int) -> list[ArmFactors]:
    names = [f"model{number:02d}" for number in range(models)]
    return [ArmFactors("-".join(entry), *entry) for entry in product(names, *LISTS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=24)
    parser.add_argument("--items", type=int, default=13_494, help="questions of each arm")
    parser.add_argument("--page", action="store_true", help="the page too, from simulated scores")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(1) as elsewhere:  # so that the peak is the viewer's own
            run = elsewhere.submit(make_run, Path(folder), given.models, given.items).result()
        print(f"verdicts: {24 * given.models * given.items:,}; peak before {peak():.2f} GiB", flush=True)
        served = timed("view: start", lambda: Viewer(open_sources(run, [run])))
        arm = 24 * given.models // 2
        for name, path, words in (
            ("first list", f"endings/{arm}.js", ""),
            ("first case", f"cases/{given.items // 2}/{arm}.js", ""),
            ("another case, two arms", f"cases/7/0-{arm}.js", ""),
            ("words of a reply", f"said/{arm}.js", "23456"),
        ):
            timed(f"view: {name}", lambda path=path, words=words: served.script(path, words))
        print(f"peak {peak():.2f} GiB")
        header = read_header(run, [run])
        timed("portable viewer", lambda: write_viewer(run, [run], header, include_images=False))
        size = sum(path.stat().st_size for path in run.viewer.rglob("*") if path.is_file())
        index = (run.viewer / "index.html").stat().st_size
        print(f"viewer {size / 1e6:.1f} MB, of these index.html {index / 1e6:.1f} MB; peak {peak():.2f} GiB")
        if given.page:
            page_of(run, given.models)


def timed(name: str, act: Callable[[], Any]) -> Any:
    started, worked = time.perf_counter(), time.process_time()
    made = act()
    seconds, worked = time.perf_counter() - started, time.process_time() - worked
    print(f"{name}: {seconds:.2f} s, of these {worked:.2f} s of processor", flush=True)
    return made


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def page_of(run: Run, models: int) -> None:
    """Render the page of simulated scores, and print its size."""
    asked, simulated = arms(models), scores(models)
    few = pa.compute.field("study_id").isin([f"p{number:04d}" for number in range(PATIENTS_OF_PAGE)])
    judged = Verdicts.of(tables.query(run.verdicts, schemas.VERDICTS, schemas.VERDICTS.names, few))
    made = timed(
        "analyses of few patients",
        lambda: analyses_of(
            judged, ArmAnswers.of(judged), simulated, asked, groups=Groups(), settings=Settings(1, 20, 1)
        ),
    )
    tables.replace(run.scores, simulated, schemas.SCORES)
    tables.replace(run.comparisons, comparisons(asked), schemas.COMPARISONS)
    write_analyses(run, made)
    print(f"{run.analyses.name} {run.analyses.stat().st_size / 1e6:.1f} MB, {simulated.num_rows:,} scores")
    facts = timed("page: read", lambda: read_facts(run, [run]))
    page = timed("page", lambda: render(facts))
    beside = sum(len(script.encode()) for script in page.chunks.values())
    index = len(page.index.encode())
    print(f"index.html {index / 1e6:.1f} MB, tables beside it {beside / 1e6:.1f} MB; peak {peak():.2f} GiB")


def make_run(folder: Path, models: int, items: int) -> Run:
    """Write a finished run and its store, a part at a time."""
    run, store = Run(folder / "outputs" / "bench-00000000"), Store(folder / "store")
    asked = arms(models)
    write_record(run, store, folder)
    record = json.loads(run.manifest.read_text())
    record["models"] = {f"model{number:02d}": {"model_key": f"key{number:02d}"} for number in range(models)}
    factors = ("arm_id", "model", "selector", "budget", "prompt", "control")
    record["arms"] = [{name: getattr(arm, name) for name in factors} for arm in asked]
    disk.write_text(run.manifest, json.dumps(record))
    own = json.loads(run.configuration.read_text())
    own["model"] = [{"name": name, "source": "packaged/tiny"} for name in record["models"]]
    disk.write_text(run.configuration, json.dumps(own))
    tables.replace(store.questions, questions(items), schemas.QUESTIONS)
    for model in record["models"]:
        write_model(run, store, model, [arm for arm in asked if arm.model == model], items)
    return run


def write_model(run: Run, store: Store, model: str, asked: list[ArmFactors], items: int) -> None:
    """Requests study by study, as a plan has them; verdicts arm by arm; completions in any order."""
    n, dice = len(asked), np.random.default_rng(int(model[-2:]))
    names = pa.array([arm.arm_id for arm in asked])
    prompts = pa.array([prompt(int(arm.budget)) for arm in asked])
    frames = pa.array(
        [[{"volume_id": "cine_sax", "idx": idx} for idx in range(int(arm.budget))] for arm in asked],
        schemas.REQUESTS.field("frames").type,
    )
    for start in range(0, items * n, PART_ROWS):
        at = np.arange(start, min(start + PART_ROWS, items * n))
        question, arm = pa.array(at // n), pa.array(at % n)
        known = named(at // n)
        columns = {
            **{name: known[name] for name in ("qa_id", "study_id", "subtask")},
            "frames_study_id": known["study_id"],
            "arm_id": names.take(arm),
            "frames": frames.take(arm),
            "system": pa.repeat("You read cardiac MRI.", len(at)),
            "prompt": pa.compute.binary_join_element_wise(prompts.take(arm), known["qa_id"], ""),
            "status": pa.repeat("planned", len(at)),
            "flags": pa.array([[]] * len(at), pa.list_(pa.string())),
            "request_key": keys(model, at % n, at // n),
        }
        tables.write_part(
            run.requests(model), whole(columns, schemas.REQUESTS, len(question)), schemas.REQUESTS
        )
    question, arm = np.tile(np.arange(items), n), np.repeat(np.arange(n), items)
    key, known = keys(model, arm, question), named(question)
    letters = pa.array([[letter] for letter in "ABCDE"])
    right = dice.integers(0, 5, len(arm))
    columns = {
        **known,
        "arm_id": names.take(pa.array(arm)),
        "channel": pa.repeat("answer", len(arm)),
        "patient_id": known["study_id"],
        "tier": pa.repeat(pa.scalar(1, pa.int32()), len(arm)),
        "answer_type": pa.repeat("single", len(arm)),
        "request_key": key,
        "status": pa.repeat("judged", len(arm)),
        "parse_status": pa.array(dice.choice(["ok", "ok", "ok", "parse_error"], len(arm))),
        "parsed": letters.take(pa.array(dice.integers(0, 5, len(arm)))),
        "gold": letters.take(pa.array(right)),
        "correct": pa.array(dice.random(len(arm)) < 0.5),
    }
    tables.write_part(run.verdicts, whole(columns, schemas.VERDICTS, len(arm)), schemas.VERDICTS)
    order = dice.permutation(len(arm))
    for start in range(0, len(order), 65_536):
        some = order[start : start + 65_536]
        numbers = pa.array(dice.integers(0, 10**6, len(some))).cast(pa.string())
        columns = {
            "request_key": key.take(pa.array(some)),
            "text": pa.compute.binary_join_element_wise(numbers, ROW, "ANSWER: A", ". "),
            "status": pa.repeat("ok", len(some)),
            "written_at": pa.repeat(pa.scalar(start, pa.timestamp("us", "UTC")), len(some)),
        }
        rows = whole(columns, schemas.COMPLETIONS, len(some))
        tables.write_part(store.completions(f"key{model[-2:]}"), rows, schemas.COMPLETIONS)


def whole(columns: dict[str, pa.Array], schema: pa.Schema, rows: int) -> pa.Table:
    full = {name: columns.get(name, pa.nulls(rows, schema.field(name).type)) for name in schema.names}
    return pa.table(full).cast(schema)


def named(question: np.ndarray) -> dict[str, pa.Array]:
    """Ids of questions by number: twenty of each study."""
    study, subtask = question // 20, question % SUBTASKS
    studies = pa.compute.binary_join_element_wise(
        "p", pa.compute.utf8_lpad(pa.array(study).cast(pa.string()), 4, "0"), ""
    )
    subtasks = pa.array([f"S{number:02d}" for number in range(SUBTASKS)]).take(pa.array(subtask))
    qa_ids = pa.compute.binary_join_element_wise(studies, subtasks, ":")
    sequence = pa.array(("cine", "lge", "perfusion", "t2")).take(pa.array(subtask % 4))
    return {"qa_id": qa_ids, "study_id": studies, "subtask": subtasks, "sequence": sequence}


def keys(model: str, arm: np.ndarray, question: np.ndarray) -> pa.Array:
    """Keys that no order or prefix of theirs tells anything about, as hashes are."""
    mixed = (arm.astype(np.uint64) * np.uint64(1 << 32) + question.astype(np.uint64)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    return pa.compute.binary_join_element_wise(pa.array(mixed).cast(pa.string()), model, "-")


def questions(items: int) -> pa.Table:
    known = named(np.arange(items))
    options = [[{"key": key, "text": f"Option {key}"} for key in "ABCDE"]] * items
    columns = {
        **known,
        "patient_id": known["study_id"],
        "question": pa.repeat("Which of these is shown?", items),
        "options": pa.array(options, schemas.QUESTIONS.field("options").type),
    }
    return whole(columns, schemas.QUESTIONS, items)


def scores(models: int) -> pa.Table:
    """Scores of every arm: each metric and scope of a small run.

    To them come probabilities of options, as if every model gave them.
    """
    asked = arms(models)
    small = score(verdicts(20, ["a"], 640), [], Settings(1, 20, 1)).scores
    kinds = [(row["metric"], row["scope"]) for row in small.to_pylist()]
    kinds += product(CONFIDENCE, ["tier:1", *(f"subtask:S{number:02d}" for number in range(SUBTASKS))])
    number = len(kinds) * len(asked)
    value = np.random.default_rng(3).random(number) * 100
    columns = {
        "metric": pa.array([metric for metric, _ in kinds * len(asked)]),
        "scope": pa.array([scope for _, scope in kinds * len(asked)]),
        "arm_id": pa.array(np.repeat([arm.arm_id for arm in asked], len(kinds))),
        **_interval("value", value),
    }
    return whole(columns, schemas.SCORES, number)


def comparisons(asked: list[ArmFactors]) -> pa.Table:
    """The difference of the score of every pair of arms that differ in one factor, on every tier."""
    pairs = [
        (factor, *pair, tier)
        for factor, family in families(asked).items()
        for pair in family
        for tier in (1, 2, 3)
    ]
    level = {arm.arm_id: arm for arm in asked}
    difference = np.random.default_rng(4).normal(0, 5, len(pairs))
    columns = {
        **{
            name: pa.array([pair[at] for pair in pairs])
            for at, name in enumerate(("factor", "arm_id", "versus_arm_id"))
        },
        "level": pa.array([str(getattr(level[ours], factor)) for factor, ours, _, _ in pairs]),
        "versus": pa.array([str(getattr(level[theirs], factor)) for factor, _, theirs, _ in pairs]),
        "tier": pa.array([tier for *_, tier in pairs], pa.int32()),
        **{name: pa.repeat(value, len(pairs)) for name, value in _EXPLORED.items()},
        "low_90": pa.array(difference - 2.5),
        "high_90": pa.array(difference + 2.5),
        **_interval("difference", difference),
    }
    return whole(columns, schemas.COMPARISONS, len(pairs))


_EXPLORED = {
    "metric": "primary",
    "adjustment": "fdr",
    "decision": "open",
    "simulated": False,
    "p_adjusted": 0.5,
}


def _interval(name: str, value: np.ndarray) -> dict[str, pa.Array]:
    ends = {name: pa.array(value), "low": pa.array(value - 3), "high": pa.array(value + 3)}
    counts = {"n_items": 400, "n_patients": PATIENTS}
    counted = {name: pa.repeat(pa.scalar(number, pa.int32()), len(value)) for name, number in counts.items()}
    return {**ends, **counted, "method": pa.repeat("bootstrap", len(value))}


if __name__ == "__main__":
    main()
