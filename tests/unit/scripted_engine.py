"""A function that answers prompts in place of an engine, and other ways in which readers choose frames."""

import json
from collections.abc import Callable

from cardiolens.inference.engine.ask import Ask
from cardiolens.inference.plan.plan import Plan
from cardiolens.storage import schemas, tables

NO_FRAMES = ("cine_xyz slice 0 phase 0", "everything")


def answering(
    reply_to: Callable[[str], str], finish_reason: str = "stop"
) -> tuple[Callable[[Plan], None], list[str]]:
    """What answers a plan, and the prompts that it has asked."""
    prompts: list[str] = []

    def answer(planned: Plan) -> None:
        (name,) = planned.identities
        rows: list[dict[str, object]] = []
        for row in tables.read(planned.run.requests(name), schemas.REQUESTS).to_pylist():
            prompts.append(row["prompt"])
            done = {"status": "ok", "finish_reason": finish_reason, "text": reply_to(row["prompt"])}
            rows.append({"request_key": row["request_key"]} | done)
        folder = planned.store.completions(planned.identities[name].model_key)
        tables.write_part(folder, tables.from_rows(rows, schemas.COMPLETIONS), schemas.COMPLETIONS)

    return answer, prompts


CHOOSES = "cardiolens.inference.engine.readers.ask_for_frames"  # to be patched with one of these


def greedily(ask: Ask) -> str:
    """Ask for as many frames as allowed, as simulated readers do."""
    return json.dumps({"frames": ask.constraint.naming.names[: ask.constraint.naming.most]})


def lazily(ask: Ask) -> str:
    """Ask for as few frames as allowed: one, then none."""
    return json.dumps({"frames": ask.constraint.naming.names[: ask.constraint.naming.least]})


def illegally(ask: Ask) -> str:
    """Ask for frames that do not exist, then for as many as allowed."""
    is_first = "This is request 1 of " in ask.text
    return json.dumps({"frames": NO_FRAMES}) if is_first else greedily(ask)
