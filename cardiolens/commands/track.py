"""`python -m cardiolens.track run=outputs/...`: mirror a run to Weights & Biases.

W&B gets one group with a run for the sweep, a run per arm and a run per model (its progress over time). Their
ids are fixed, so mirroring again replaces them. The mirror is offline unless configured or `mode=online`. It
gets no frame, report text, study id, patient id or question id.
"""

import sys

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.show.tracker.mirror import check_tracker, track
from cardiolens.storage import documents
from cardiolens.storage.run_word import read_run


def main() -> int:
    begin()
    words = sys.argv[1:]
    try:
        modes = [word.partition("=")[2] for word in words if word.startswith("mode=")]
        if any(mode not in ("online", "offline") for mode in modes):
            raise InputError(f"mode={modes[0]}: choose online or offline")
        run = read_run([word for word in words if not word.startswith("mode=")])
        tracker = documents.read_configuration(run).tracker
        if modes:
            tracker = tracker.model_copy(update={"kind": "wandb", "mode": modes[-1]})
        if tracker.kind == "none":
            raise InputError("the run was configured with tracker=none; add mode=offline or mode=online")
        check_tracker(tracker)
        return 0 if track(run, tracker, progress=True) else 1
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
