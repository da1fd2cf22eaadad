"""`python -m cardiolens.track run=outputs/...`: mirror a run to Weights & Biases.

W&B gets one group with a run for the sweep and a run per model, with `runs=arms` a run per arm too. The ids
of these runs are fixed, so mirroring again replaces them. The mirror is offline unless configured otherwise
or `mode=online`. W&B gets no frame, report text, study id, patient id or question id.
"""

import sys
from typing import Literal

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.config.command_words import read_words
from cardiolens.score.run_results.stored_replies import check_stored
from cardiolens.show.tracker.mirror import track
from cardiolens.show.tracker.run_group import check_tracker
from cardiolens.storage import documents
from cardiolens.storage.run_word import RunWord


class Words(RunWord):
    """Words of the command."""

    mode: Literal["online", "offline"] | None = None  # None: as the run is configured
    runs: Literal["summary", "models", "arms"] | None = None


def main() -> int:
    begin()
    try:
        words = read_words(Words, sys.argv[1:])
        run = words.open()
        check_stored(run)
        tracker = documents.read_configuration(run).tracker
        if words.mode is not None:
            tracker = tracker.model_copy(update={"kind": "wandb", "mode": words.mode})
        if tracker.kind == "none":
            raise InputError("the run was configured with tracker=none; add mode=offline or mode=online")
        if words.runs is not None:
            tracker = tracker.model_copy(update={"runs": words.runs})
        check_tracker(tracker)
        return 0 if track(run, tracker) else 1
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
