"""A small MedThinkVQA with chains of three requests, and a reader whose replies tell the stages apart."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from set_cohort import prepare_set, set_spec
from small_cohort import reader, stored, swept

from cardiolens.benchmarks.medthinkvqa import MAP, PROTOCOL
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.ask import Ask, Engine, ErrorKind, Pictures, Reply, RequestError
from cardiolens.protocol.dialogue.chain_tables import read_chains, walk
from cardiolens.storage import schemas, tables
from tests.support.cases.example_cases import make_cases

SELF = {"name": "twi_self", "style": "standard", "max_tokens": 64, "steps": "self"}
DIRECT = {"name": "direct", "style": "standard", "max_tokens": 64}


class Scribe(Engine):
    """Reader whose reply to a step names the step and the request; it can refuse or fail a step."""

    def __init__(self, ends: str = "", how: str = "") -> None:
        self.asked: list[Ask] = []
        self._ends, self._how = ends, how

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self.asked.append(ask)
        for key in ask.frame_keys:
            pictures(key)
        found = re.findall(r"Step (\d):", ask.text)
        step = found[-1] if "ANSWER" not in ask.text else "3"
        if step == self._ends and self._how == "failed":
            raise RequestError(ErrorKind.FAILED, "no luck")
        text = "ANSWER: A" if step == "3" else f"said {step} to {ask.request_key}"
        refused = step == self._ends and self._how == "refused"
        return Reply(text=text, finish_reason="stop", prompt_tokens=10, output_tokens=1, refused=refused)


def make_cohort(folder: Path, n_cases: int) -> Path:
    """A store with the frames of generated cases, and their questions."""
    make_cases(folder, n_cases, 1)
    prepare(folder)
    return folder


def prepare(folder: Path) -> None:
    """Write the store of the cases in a folder, and their questions."""
    prepare_set(folder, MAP, PROTOCOL)


def spec_of(root: Path, *prompts: dict[str, Any], **changed: Any) -> SweepSpec:
    """A sweep of one reader, whose requests are chains unless `prompts` say otherwise."""
    tree: dict[str, Any] = {
        "name": "chains",
        "selector": [{"name": "uniform", "kind": "uniform"}],
        "budget": [3],
        "prompt": list(prompts) or [SELF],
        "statistics": {"min_n": 1, "resamples": 50, "seed": 7},
        "tracker": {"mode": "none"},
    }
    return set_spec(root, MAP, PROTOCOL, reader("uniform"), **(tree | changed))


def check_lost_rows(spec: SweepSpec, engine: Callable[[], Any], lost: st.DataObject) -> None:
    """Sweep, lose rows, and sweep again: the same tables come, and nothing that is on disk is asked again.

    A chain that has its row is not gone again, so steps of it that were lost stay lost.
    """
    shutil.rmtree(spec.store / "completions", ignore_errors=True)
    planned, whole = swept(spec, engine())
    table = tables.read(stored(planned), schemas.COMPLETIONS)
    keep = lost.draw(st.lists(st.booleans(), min_size=table.num_rows, max_size=table.num_rows))
    tables.replace(stored(planned), table.filter(pa.array(keep)), schemas.COMPLETIONS)
    chains = read_chains(planned.run.requests("uniform"))
    kept = {step.request_key for step in walk(chains, stored(planned)) if step.completion}
    again = engine()
    _, judged = swept(spec, again)
    assert judged.replies.verdicts.equals(whole.replies.verdicts)
    asked = [ask.request_key for ask in again.asked]
    assert len(asked) == len(set(asked))
    assert not kept & set(asked)
    before, after = (
        {row["request_key"]: row["text"] for row in rows.to_pylist()}
        for rows in (table, tables.read(stored(planned), schemas.COMPLETIONS))
    )
    assert after.items() <= before.items()
