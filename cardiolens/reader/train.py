"""Train the small reader: cohorts, two stages, the model, its record, its entry in `conf/model`."""

from pathlib import Path

import yaml

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.config.reader import ReaderSpec
from cardiolens.inference.models.embedded import IMAGE_SIDE
from cardiolens.reader.examples import cohort_spec
from cardiolens.reader.learn import check, learn
from cardiolens.reader.record import write_record
from cardiolens.workflow.steps.prepare_studies import prepare_sweep

NAME = "reader_small"


def train_reader(spec: ReaderSpec) -> int:
    """Train as configured; return 0 when the model is written, 1 if a study could not be prepared."""
    check(spec)
    for cohort in spec.cohorts:
        prepared = prepare_sweep(cohort_spec(spec, cohort))
        if prepared.failed:
            say(f"cohort {cohort.name}: {len(prepared.failed)} studies could not be prepared")
            return 1
    learn(spec)
    folder = spec.out / "model"
    write_record(spec, folder)
    _write_entry(spec.out / "conf" / "model" / f"{NAME}.yaml", folder.resolve())
    say(f"model: {folder}; as model=[{NAME}] in a sweep started in {spec.out}")
    return 0


def _write_entry(path: Path, source: Path) -> None:
    entry = {
        "source": str(source),
        "kv_cache_gib": 1.0,
        "long_side": IMAGE_SIDE,
        "max_tokens": {"standard": 16, "reasoning": 64, "report": 64},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.write_text(path, yaml.safe_dump({NAME: entry}, sort_keys=False))
