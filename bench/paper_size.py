"""Benchmark of judging and scoring a run of the paper's size: time and memory by number of models.

    python -m bench.paper_size [--models 1 4] [--patients 670] [--resamples 2000]

Requests and completions of `full` are written without an engine: 24 arms a model, 20 choice questions a
patient (no reports), replies that are letters, right three times in five. Each number of models is judged
and scored in a process of its own, whose peak is printed.
"""

import argparse
import logging
import random
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.compose import read_spec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm, arms
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.score.claims.parts_of_cohort import Groups
from cardiolens.score.run_results import model_replies, scoring
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run, Store

QUESTIONS_A_PATIENT = 20
RIGHT = 0.6
STEPS = {
    "judge": model_replies,
    "compute_scores": scoring,
    "analyses_of": scoring,
}


def main() -> None:
    """Measure each number of models."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--patients", type=int, default=670)
    parser.add_argument("--resamples", type=int, default=2000)
    given = parser.parse_args()
    for models in given.models:
        with tempfile.TemporaryDirectory() as folder:
            for step in (write, measure):
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:  # a peak of its own
                    alone.submit(step, Path(folder), models, given.patients, given.resamples).result()


def specification(folder: Path, models: int, resamples: int) -> SweepSpec:
    """`full` for a number of models, which are one model under several names."""
    words = ["+experiment=full", "model=[gemma_3_12b]", "tracker=none", f"statistics.resamples={resamples}"]
    spec = read_spec([*words, f"store={folder}/store", f"outputs={folder}/outputs"])
    (model,) = spec.model
    named = tuple(model.model_copy(update={"name": f"model_{number:02d}"}) for number in range(models))
    return spec.model_copy(update={"model": named})


def write(folder: Path, models: int, patients: int, resamples: int) -> None:
    """Write questions, requests and completions, a model at a time."""
    spec = specification(folder, models, resamples)
    run, store = Run(folder / "run"), Store(spec.store)
    questions = cohort(spec, patients)
    tables.write_part(store.questions, questions, schemas.QUESTIONS)
    for model in spec.model:
        of_model = [arm for arm in arms(spec) if arm.model.name == model.name]
        for arm in of_model:
            asked, said = asked_and_said(arm, questions)
            tables.write_part(run.requests(model.name), asked, schemas.REQUESTS)
            tables.write_part(store.completions(model.name), said, schemas.COMPLETIONS)


def cohort(spec: SweepSpec, patients: int) -> pa.Table:
    """Choice questions of the protocol, several a patient, in turn."""
    dice = random.Random(2026)
    catalogue = load_catalogue(spec.dataset.protocol)
    asked = [subtask for subtask in catalogue.subtasks.values() if subtask.answer_type != "report"]
    rows: list[dict[str, object]] = []
    for number in range(patients * QUESTIONS_A_PATIENT):
        patient, subtask = f"PH-{number // QUESTIONS_A_PATIENT:04d}", asked[number % len(asked)]
        others = [key for key in subtask.keys if key not in subtask.exclusive]
        most = min(3, len(others)) if subtask.answer_type == "multi" else 1
        rows.append(
            {
                "qa_id": f"{patient}:{subtask.id}",
                "study_id": patient,
                "patient_id": patient,
                "tier": subtask.tier,
                "subtask": subtask.id,
                "sequence": subtask.sequence,
                "question": subtask.question,
                "answer_type": subtask.answer_type,
                "options": [{"key": option.key, "text": option.text} for option in subtask.options],
                "exclusive": list(subtask.exclusive),
                "answer": sorted(dice.sample(others, dice.randint(1, most))),
            }
        )
    return tables.from_rows(rows, schemas.QUESTIONS)


def asked_and_said(arm: Arm, questions: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The requests of one arm, and a reply to each."""
    dice = np.random.default_rng(zlib.crc32(arm.arm_id.encode()))
    number = questions.num_rows
    options = questions["options"].combine_chunks()
    keys = pa.ListArray.from_arrays(options.offsets, options.flatten().field("key"))
    some = dice.integers(0, np.asarray(pc.list_value_length(keys)))
    others = keys.flatten().take(np.asarray(keys.offsets)[:-1] + some)
    right = pa.array(dice.random(number) < RIGHT)
    said = pc.if_else(right, pc.binary_join(questions["answer"].combine_chunks(), ", "), others)
    key = pa.array([dice.bytes(16).hex() for _ in range(number)])
    asked = {name: questions[name] for name in ("qa_id", "study_id", "subtask")}
    asked |= {"arm_id": pa.repeat(arm.arm_id, number), "option_keys": keys, "request_key": key}
    asked |= {"status": pa.repeat(schemas.PLANNED, number)}
    replied = {"request_key": key, "text": said, "status": pa.repeat("ok", number)}
    replied |= {"finish_reason": pa.repeat("stop", number)}
    instant = schemas.COMPLETIONS.field("written_at").type
    replied |= {"written_at": pa.repeat(pa.scalar(datetime(2026, 1, 1, tzinfo=UTC), instant), number)}
    return _whole(asked, schemas.REQUESTS), _whole(replied, schemas.COMPLETIONS)


def _whole(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    number = len(next(iter(columns.values())))
    return pa.table([columns.get(name, pa.nulls(number)) for name in schema.names], schema.names).cast(schema)


def measure(folder: Path, models: int, patients: int, resamples: int) -> None:
    """Judge and score, and print what each step took."""
    spec = specification(folder, models, resamples)
    logging.disable()
    pa.set_cpu_count(1)
    spent = dict.fromkeys(STEPS, 0.0)
    peaks = dict.fromkeys(STEPS, 0.0)
    for name, module in STEPS.items():
        setattr(module, name, _timed(name, getattr(module, name), spent, peaks))
    before, started, worked = _peak(), time.perf_counter(), time.process_time()
    names = {model.name: model.name for model in spec.model}
    run = Run(folder / "run")
    setattr(scoring, "groups_of", lambda *_: Groups())  # noqa: B010 - there are no studies
    results = scoring.judge_and_write(run, Store(spec.store), names, spec)
    seconds, worked = time.perf_counter() - started, time.process_time() - worked
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    n_verdicts = sum(results.replies.counts[name] for name in ("ok", "refused"))
    print(
        f"{models} models, {patients} patients: {n_verdicts:,} verdicts, "
        f"{results.scores.num_rows:,} scores, "
        f"{seconds:.1f} s ({worked:.1f} s of processor), peak {_peak():.2f} GiB ({before:.2f} before)"
    )
    print(
        f"    processes beside it: {others.ru_utime + others.ru_stime:.1f} s of processor, the largest "
        f"{others.ru_maxrss / 2**20:.2f} GiB"
    )
    print("   ", ", ".join(f"{name} {spent[name]:.1f} s (peak {peaks[name]:.2f} GiB)" for name in STEPS))
    sys.stdout.flush()


def _timed(
    name: str, step: Callable[..., Any], spent: dict[str, float], peaks: dict[str, float]
) -> Callable[..., Any]:
    def run(*given: Any, **named: Any) -> Any:
        started = time.process_time()
        found = step(*given, **named)
        spent[name] += time.process_time() - started
        peaks[name] = _peak()
        return found

    return run


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
