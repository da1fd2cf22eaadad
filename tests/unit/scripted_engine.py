"""A function that answers prompts, in place of the engine of a plan of text requests."""

from collections.abc import Callable

from cardiolens.inference.plan.plan import Plan
from cardiolens.storage import schemas, tables


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
