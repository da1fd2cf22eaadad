"""`python -m cardiolens.track run=outputs/...`: mirror a run to Weights & Biases.

W&B gets one group with a run for the sweep and a run per model, with `runs=arms` a run per arm too. The ids
of these runs are fixed, so mirroring again replaces them. The mirror is offline unless configured otherwise
or `mode=online`. W&B gets no frame, report text, study id, patient id or question id.
`workspace run=outputs/...` saves a workspace and a report of a run that is in W&B.
"""

import sys
from typing import Literal

from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.config.command_words import read_words
from cardiolens.score.run_results.stored_replies import check_stored
from cardiolens.show.tracker.mirror import track
from cardiolens.show.tracker.run_group import check_tracker
from cardiolens.show.tracker.workspace import save_workspace
from cardiolens.storage import documents
from cardiolens.storage.run_word import RunWord


class Words(RunWord):
    """Words of the command."""

    mode: Literal["online", "offline"] | None = None  # None: as the run is configured
    runs: Literal["summary", "models", "arms"] | None = None


class WorkspaceWords(RunWord):
    """Words of `workspace`."""

    entity: str | None = None  # a user or team of W&B; None: the run's


def mirror(words: Words) -> int:
    """Mirror a run; return 0 if all of it was written, else 1."""
    run = words.open()
    check_stored(run)
    tracker = documents.read_configuration(run).tracker
    if words.mode is not None:
        kind = "wandb" if tracker.kind == "none" else tracker.kind
        tracker = tracker.model_copy(update={"kind": kind, "mode": words.mode})
    if tracker.kind == "none":
        raise InputError("the run was configured with tracker=none; add mode=offline or mode=online")
    if words.runs is not None:
        tracker = tracker.model_copy(update={"runs": words.runs})
    check_tracker(tracker)
    return 0 if track(run, tracker) else 1


def workspace(words: WorkspaceWords) -> int:
    """Save a workspace and a report of a run that is in W&B, and print where they are."""
    run = words.open()
    check_stored(run)
    saved = save_workspace(run, words.entity)
    say(f"workspace: {saved.workspace}")
    say(f"report: {saved.report}")
    return 0


def main() -> int:
    begin()
    words = sys.argv[1:]
    try:
        if words[:1] == ["workspace"]:
            return workspace(read_words(WorkspaceWords, words[1:]))
        return mirror(read_words(Words, words))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
