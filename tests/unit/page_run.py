"""A finished run of simulated readers on the small cohort, as a sweep leaves it behind."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
from small_cohort import judge, reader, stored, sweep_spec, swept

from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.plan.plan import Plan
from cardiolens.score.run_results.scoring import RunResults
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run
from cardiolens.workflow.steps.conclude import counters, write_manifest

SOME = ["C02", "C10", "D01", "D02", "R-CINE"]
PROMPTS = [
    {"name": "standard", "style": "standard", "max_tokens": 64},
    {"name": "reasoning", "style": "reasoning", "max_tokens": 512},
]
SELECTORS = [
    {"name": "clinical", "kind": "clinical"},
    {"name": "random", "kind": "random", "seeds": [2026]},
]


def full_spec(root: Path, **changes: Any) -> SweepSpec:
    """Two readers at every selector, budget and prompt."""
    tree = {
        "name": "page",
        "budget": [8, 16],
        "selector": SELECTORS,
        "prompt": PROMPTS,
        "subtask": SOME,
        "statistics": {"min_n": 1, "resamples": 40, "seed": 7},
    }
    return sweep_spec(root, reader("noisy", error=0.3), reader("collapse", share=0.6), **(tree | changes))


def small_spec(root: Path, name: str, **changes: Any) -> SweepSpec:
    """The same readers, one arm each and its control."""
    one = {"budget": [16], "selector": SELECTORS[:1], "prompt": PROMPTS[:1], "control": ["none", "blind"]}
    return full_spec(root, name=name, **(one | changes))


def finished(spec: SweepSpec) -> Run:
    """Plan, answer, judge, and write the record."""
    planned, judged = swept(spec)
    write_record(planned, judged)
    return planned.run


def write_record(planned: Plan, judged: RunResults) -> None:
    """Configuration and manifest of a run that executed everything."""
    documents.write_configuration(planned.run, planned.spec)
    counted = counters(planned, {}, judged.replies.counts)
    seconds = {"prepare": 0.0, "plan": 0.1, "load": 0.0, "generate": 0.2, "judge": 0.3}
    outcome = {"seconds": seconds, "failed": {}, "questions_digest": judged.replies.questions_digest}
    write_manifest(planned, {**counted, **outcome})


def reply_instead(planned: Plan, model: str, said: str | None) -> RunResults:
    """Judge again after a model's completions say something else, or are gone."""
    folder = stored(planned, model)
    old = tables.read(folder, schemas.COMPLETIONS)
    texts = None if said is None else pa.array([said] * old.num_rows, pa.string())
    _replace(folder, old, "text", texts)
    return judge(planned)


def with_probabilities(planned: Plan, model: str) -> RunResults:
    """Judge again after a model gave its letters with confidences between 50 and 99 percent."""
    folder = stored(planned, model)
    old = tables.read(folder, schemas.COMPLETIONS).sort_by("request_key")
    given = []
    for number, text in enumerate(old["text"].to_pylist()):
        letter = text.removeprefix("ANSWER: ")[:1]
        sure = 0.5 + (number * 37 % 50) / 100
        other = "B" if letter == "A" else "A"
        given.append([(letter, math.log(sure)), (other, math.log(1 - sure))])
    column = "option_logprobs"
    _replace(folder, old, column, pa.array(given, schemas.COMPLETIONS.field(column).type))
    return judge(planned)


def _replace(folder: Path, old: pa.Table, name: str, column: pa.Array | None) -> None:
    for part in tables.parts(folder):
        part.unlink()
    if column is not None:
        place = old.schema.get_field_index(name)
        tables.write_part(folder, old.set_column(place, name, column), schemas.COMPLETIONS)
