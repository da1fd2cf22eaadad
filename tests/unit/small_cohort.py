"""Phantom patients with their true questions but frames of four pixels, and sweeps of readers on them.

The whole pipeline but Ray: what a sweep streams through actors is here one loop.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec, parse
from cardiolens.config.sweep_factors import Arm, arms_asking_back
from cardiolens.inference.engine.ask import Engine
from cardiolens.inference.engine.readers import open_reader
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.stream.loader import StudyLoader, counters_of
from cardiolens.inference.stream.replica import Replica
from cardiolens.phantom.fixed_reports import reports
from cardiolens.phantom.roster import SEQUENCES, catalogue, study
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.instantiate import records
from cardiolens.protocol.tasks.questions import write_questions
from cardiolens.protocol.tasks.truth import findings
from cardiolens.score.run_results.scoring import RunResults, judge_and_write
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import Cohort, StudyRecord, write_cohort
from cardiolens.study.shards import frames_table, part_writer

SEED = 2026
PUBLIC = 3  # every third patient belongs to the public part
VIEWS = {  # slices, phases
    "cine_sax": (3, 6),
    "cine_4ch": (1, 6),
    "cine_3ch": (1, 6),
    "lge_sax": (3, 1),
    "lge_4ch": (1, 1),
    "perf_sax": (3, 8),
    "t2_sax": (3, 1),
}
SEQUENCE = {"perf": "perfusion"}


def make_cohort(root: Path, patients: int) -> Path:
    """A store with shards, and `questions.jsonl` beside it, of the first phantom patients."""
    names = [f"PH-{number:04d}" for number in range(1, patients + 1)]
    with part_writer(root / "store", "part-0.parquet") as writer:
        for number, name in enumerate(names):
            for view, (slices, phases) in VIEWS.items():
                row = volume_row(name, view, slices, phases) | {
                    "cohort": ["full", "public"] if number % PUBLIC == 0 else ["full"]
                }
                writer.rows.append(writer.write(row, frame_rows(name, view, slices, phases)))
    record = StudyRecord(part="part-0.parquet", state="")
    write_cohort(root / "store", Cohort(window_pct=(1, 99), studies=dict.fromkeys(names, record), failed={}))
    write_questions(root / "questions.jsonl", [entry for name in names for entry in questions_of(name)])
    return root


def questions_of(name: str, of: Catalogue | None = None) -> list[dict[str, Any]]:
    """The `qa-1` records of one phantom patient, reports among them."""
    made, tasks = study(SEED, name), of or catalogue()
    found = findings(made.truth)
    written = reports(found, made.seed, tasks, SEQUENCES)
    return records(name, tasks, found, sequences=SEQUENCES, reports=written)


def volume_row(name: str, view: str, slices: int, phases: int) -> dict[str, Any]:
    prefix, code = view.split("_")
    return {
        "study_id": name,
        "patient_id": name,
        "species": "phantom",
        "volume_id": view,
        "sequence": SEQUENCE.get(prefix, prefix),
        "view": code,
        "n_slices": slices,
        "n_phases": phases,
        "height": 2,
        "width": 2,
        "spacing_mm": [1.0, 1.0, 8.0],
        "spatial_order": "base_to_apex" if code == "sax" else "unknown",
        "key_layers": [0, 1, 2][:slices],
        "ed_phase": 0,
        "es_phase": 2 if phases > 1 else 0,
        "t_on": 1 if prefix == "perf" else None,
        "t_peak": 4 if prefix == "perf" else None,
        "window_low": 0.0,
        "window_high": 1.0,
        "source_sha256": f"{name}/{view}",
    }


def frame_rows(name: str, view: str, slices: int, phases: int) -> pa.Table:
    number, count = int(name.removeprefix("PH-")), slices * phases
    pixels = np.array([[number % 256, number // 256, len(view), idx] for idx in range(count)], np.uint8)
    row = {"study_id": name, "volume_id": view, "n_phases": phases}
    return frames_table(row, pixels.reshape(count, 2, 2))


def reader(engine: str, name: str = "", **options: Any) -> dict[str, Any]:
    """A simulated reader as an entry of `model`."""
    return {"name": name or engine, "engine": engine, "options": options, "long_side": 8}


def sweep_spec(root: Path, *models: dict[str, Any], **changes: Any) -> SweepSpec:
    """A sweep of readers on a small cohort: clinical selection, 8 frames, standard prompt unless changed."""
    tree: dict[str, Any] = {
        "name": "small",
        "dataset": {"name": "small", "studies": root, "questions": root / "questions.jsonl"},
        "model": models,
        "selector": [{"name": "clinical", "kind": "clinical"}],
        "budget": [8],
        "prompt": [{"name": "standard", "style": "standard", "max_tokens": 64}],
        "store": root / "store",
        "outputs": root / "outputs",
        "statistics": {"min_n": 1, "resamples": 200, "seed": 7},
    }
    return parse(tree | changes)


def swept(spec: SweepSpec, engine: Engine | None = None, width: int = 4096) -> tuple[Plan, RunResults]:
    """Plan, answer and judge; `engine` answers in the place of the readers, `width` requests at once."""
    planned = plan(spec)
    answer(planned, engine, width)
    return planned, judge(planned)


def judge(planned: Plan) -> RunResults:
    """Judge what there is."""
    keys = {name: identity.model_key for name, identity in planned.identities.items()}
    return judge_and_write(planned.run, planned.store, keys, planned.spec)


def answer(planned: Plan, engine: Engine | None = None, width: int = 4096) -> dict[str, Counter[str]]:
    """Answer what is missing of a plan; the counters of each model."""
    return {model.name: asyncio.run(_answer(planned, model, engine, width)) for model in planned.spec.model}


async def _answer(planned: Plan, model: ModelSpec, engine: Engine | None, width: int) -> Counter[str]:
    completions = planned.store.completions(planned.identities[model.name].model_key)
    left = missing_of(planned, model.name)
    rendering = Rendering(model.long_side)
    arms = {arm.arm_id: arm for arm in planned.arms}
    read = StudyLoader(planned.store.root, planned.volumes, rendering)
    replica = Replica(
        lambda: engine or open_reader(model, planned.store.questions, arms),
        completions,
        width,
        planned.spec.stream,
        parts=left.work["part"].to_pylist(),
        questions=planned.store.questions,
        asking_back=arms_asking_back(planned.spec),
        read_back=left.read_back,
        names_question=model.told_questions,
        load_volume=read.volume,
    )

    async def study(row: int) -> Counter[str]:
        return sum(
            [counters_of(done) async for done in replica(pa.concat_tables(read(left.work.slice(row, 1))))],
            Counter[str](),
        )

    return sum(await asyncio.gather(*map(study, range(left.work.num_rows))), Counter[str]())


def stored(planned: Plan, model: str = "") -> Path:
    """Completions of a model of a plan, of the only one unless it is named."""
    (name,) = [model] if model else planned.identities
    return planned.store.completions(planned.identities[name].model_key)


def requests_of(planned: Plan, model: str = "", **of_arm: object) -> list[dict[str, Any]]:
    """Requests of a model by question, of the only one unless it is named; of the arms with these values."""
    (name,) = [model] if model else planned.identities
    own = {arm.arm_id for arm in planned.arms if all(_named(arm, key) == of_arm[key] for key in of_arm)}
    rows = tables.read(planned.run.requests(name), schemas.REQUESTS).sort_by("qa_id").to_pylist()
    return [row for row in rows if row["arm_id"] in own]


def _named(arm: Arm, key: str) -> object:
    return getattr(getattr(arm, key), "name", getattr(arm, key))


def values(judged: RunResults, arm_id: str, metrics: Iterable[str]) -> dict[tuple[str, str], float]:
    """Scores of one arm by metric and scope."""
    wanted = set(metrics)
    return {
        (row["metric"], row["scope"]): row["value"]
        for row in judged.scores.to_pylist()
        if row["arm_id"] == arm_id and row["metric"] in wanted
    }
