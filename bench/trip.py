"""Count the files, functions and records that one question passes on its way from study to completion.

python -m bench.trip            # the oracle, one study, one question, without Ray
python -m bench.trip --list     # with their names

Files and functions are those of the package that run while a prepared study is planned and answered. A record
is a dataclass, named tuple or model of the package that is made meanwhile and holds the question, its request
or its reply.
"""

import contextlib
import io
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from cardiolens.base.paths import PACKAGE
from cardiolens.config.compose import read_spec
from cardiolens.config.dataset import PhantomSpec, Windows
from cardiolens.inference.plan.candidates import place_sweep
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream.execution import execute
from cardiolens.phantom.phantom_cohort import make_cohort
from cardiolens.study.cohort import current_cohort, write_cohort
from cardiolens.study.group import prepare_group

COHORT = PhantomSpec(canonical=("PH-NORMAL",), size="ci")
HOLDS = {
    "qa_id",
    "request_key",
    "asked",
    "question",
    "prompt",
    "reply",
    "text",
}  # fields of a record on the way


class Trip:
    """What ran of the package since it was begun."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.records: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; `sys.setprofile` calls this."""
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(str(PACKAGE)):
            self.functions.add((code.co_filename.removeprefix(f"{PACKAGE}/"), code.co_qualname))
        elif code.co_name in {
            "__init__",
            "__new__",
        }:  # of a dataclass or a named tuple, whose file is no file
            own = frame.f_locals.get("self", frame.f_locals.get("_cls"))
            kind = own if isinstance(own, type) else type(own)
            if kind.__module__.startswith("cardiolens.") and HOLDS & set(
                getattr(kind, "__annotations__", {})
            ):
                self.records.add(f"{kind.__module__.removeprefix('cardiolens.')}.{kind.__name__}")

    @property
    def files(self) -> set[str]:
        """The files of those functions."""
        return {file for file, _ in self.functions}


def trip(folder: Path) -> Trip:
    """Plan and answer one question of one prepared study, and note what runs."""
    make_cohort(COHORT, folder)
    studies, store, windows = folder / "studies", folder / "store", Windows()
    outcomes = prepare_group(store, "part-0.parquet", sorted(studies.iterdir()), windows)
    records = {outcome.name: outcome.record for outcome in outcomes if outcome.record is not None}
    write_cohort(store, current_cohort(store, windows).model_copy(update={"studies": records, "failed": {}}))
    data = [f"dataset.studies={studies}", f"dataset.questions={folder}/questions.jsonl"]
    words = ["model=[oracle]", "selector=[clinical]", "budget=[8]", "control=[none]", "subtask=[C01]"]
    spec = read_spec([*words, *data, f"store={store}", f"outputs={folder}/outputs", "tracker=none"])
    noted = Trip()
    threading.setprofile(noted)
    sys.setprofile(noted)
    try:
        planned = plan(spec)
        remaining = {"oracle": missing_of(planned, "oracle")}
        executed = execute(planned, place_sweep(planned, remaining, ()), remaining)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert executed.counters["oracle"]["ok"], executed
    return noted


def main(words: list[str]) -> None:
    """Print the numbers, and the names with --list."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        noted = trip(Path(folder))
    if "--list" in words:
        print("\n".join([*sorted(noted.files), "", *sorted(noted.records), ""]))
    print(f"{len(noted.files)} files, {len(noted.functions)} functions, {len(noted.records)} records")


if __name__ == "__main__":
    main(sys.argv[1:])
