"""Training of the small reader: cohorts, two stages, the model with its record."""

from cardiolens.config.reader import ReaderSpec
from cardiolens.steps.prepare import prepare_sweep
from cardiolens.terminal.console import say
from cardiolens.training.examples import cohort_spec
from cardiolens.training.learn import learn
from cardiolens.training.record import write_record


def train_reader(spec: ReaderSpec) -> int:
    """Train as configured; 0 when the model is written, 1 if a study could not be prepared."""
    for cohort in spec.cohorts:
        prepared = prepare_sweep(cohort_spec(spec, cohort))
        if prepared.failed:
            say(f"cohort {cohort.name}: {len(prepared.failed)} studies could not be prepared")
            return 1
    learn(spec)
    folder = spec.out / "model"
    write_record(spec, folder)
    say(f"model: {folder} (model.reader_small.source={folder} in a sweep)")
    return 0
