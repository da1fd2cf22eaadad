"""`python -m cardiolens.work run=outputs/... step=prepare|model|score`: one job of a submitted run.

The batch scripts of `cardiolens.submit` call this verb; so can a person. `step=model` needs `model=`, and
takes the `address=` of a Ray cluster and the number of `nodes=` that this cluster must have.
"""

import logging
from typing import Literal

from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import PlainFormatter
from cardiolens.commands.command import Action, verb
from cardiolens.config.base import GivenPath, Positive, Spec
from cardiolens.storage import documents
from cardiolens.storage.places import open_run, run_of
from cardiolens.workflow.slurm.job_steps import prepare_step, run_model, score_step


class Words(Spec):
    """Words of the command."""

    run: GivenPath
    step: Literal["prepare", "model", "score"]
    model: str | None = None  # for step=model
    address: str | None = None  # Ray cluster that step=model joins
    nodes: Positive = 1  # nodes of that Ray cluster


def work(words: Words) -> int:
    """Do the named step of a run and return the exit code."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    run = open_run("run", words.run)
    spec = documents.as_written(run)
    if run_of(spec).root.resolve() != run.root.resolve():
        raise InputError(
            f"run={run.root}: its configuration is that of {run_of(spec).root}; start the job in the folder "
            "from which it was submitted, or submit it again"
        )
    if words.step != "model":
        spec = spec.model_copy(update={"keep_going": True})  # each model has a job of its own
        return prepare_step(run, spec) if words.step == "prepare" else score_step(run, spec)
    names = [model.name for model in spec.model]
    if words.model not in names:
        raise InputError(f"model={words.model}: not a model of this run; choose from {', '.join(names)}")
    cluster = spec.cluster.model_copy(update={"address": words.address})
    return run_model(run, spec.model_copy(update={"cluster": cluster}), words.model, words.nodes)


main = verb(__name__, __doc__, Action(Words, work))
