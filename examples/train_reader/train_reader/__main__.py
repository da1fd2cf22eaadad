"""`python -m train_reader out=...`: cohorts, two stages, the model, its record, its entry in `conf/model`."""

import json
import platform
from importlib.metadata import version
from pathlib import Path

import yaml

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.digest import digest_of_tree
from cardiolens.commands.command import Action, verb
from cardiolens.workflow.steps.prepare_studies import prepare_sweep
from train_reader.examples import cohort_spec
from train_reader.learn import CURVE, check, learn
from train_reader.recipe import ReaderSpec, read_recipe
from train_reader.tiny import IMAGE_SIDE

NAME = "reader_small"
RECORD = "training.json"


def train(spec: ReaderSpec) -> int:
    """Make the cohorts, train on them, and write the model; continue a training that was stopped.

    Returns 0 when the model is written, 1 if a study could not be prepared.
    """
    check(spec)
    for cohort in spec.cohorts:
        prepared = prepare_sweep(cohort_spec(spec, cohort))
        if prepared.failed:
            say(f"cohort {cohort.name}: {len(prepared.failed)} studies could not be prepared")
            return 1
    learn(spec)
    folder = spec.out / "model"
    _write_record(spec, folder)
    _write_entry(spec.out / "conf" / "model" / f"{NAME}.yaml", folder.resolve())
    say(f"model: {folder}; as model=[{NAME}] in a sweep started in {spec.out}")
    return 0


def _write_record(spec: ReaderSpec, folder: Path) -> None:
    """Write what determined the weights, the duration, and the learning curve beside the weights."""
    curve = [json.loads(line) for line in (spec.out / CURVE).read_text().splitlines()]
    record = {
        "schema": "training-1",
        "recipe": spec.model_dump(mode="json", exclude={"out", "device"}),
        "code": digest_of_tree(Path(__file__).parent),
        "hours": round(curve[-1]["seconds"] / 3600, 2),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("cardiolens", "torch", "transformers", "tokenizers")},
        "curve": curve,
    }
    disk.write_text(folder / RECORD, json.dumps(record, indent=1) + "\n")


def _write_entry(path: Path, source: Path) -> None:
    entry = {
        "source": str(source),
        "engine_options": {"kv_cache_memory_bytes": 2**30},
        "long_side": IMAGE_SIDE,
        "max_tokens": {"standard": 16, "reasoning": 64, "report": 64},
    }
    disk.write_text(path, yaml.safe_dump({NAME: entry}, sort_keys=False))


main = verb(__name__, __doc__, Action(None, lambda words: train(read_recipe(words))))
