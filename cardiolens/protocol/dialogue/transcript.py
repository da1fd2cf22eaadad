"""The table `seen`: frames, prompts and replies of chains stage by stage.

Samples are left out: their rows in `requests` and `completions` hold everything.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from cardiolens.protocol.dialogue.chain import Chain, Samples, Step
from cardiolens.protocol.dialogue.frame_requests import Choice
from cardiolens.storage import tables
from cardiolens.storage.schemas import SEEN


def seen_table(chains: Mapping[str, Chain], steps: Sequence[Step]) -> pa.Table:
    """The stages whose requests are known, by chain and in order; those of samples are left out."""
    in_turn = [step for step in steps if not isinstance(chains[step.chain], Samples)]
    in_order = sorted(in_turn, key=lambda step: (step.chain, step.stage))
    return tables.from_rows([_row(chains[step.chain], step) for step in in_order], SEEN)


def _row(chain: Chain, step: Step) -> dict[str, object]:
    request, completion = step.request, step.completion
    reply = None if completion is None else str(completion["text"] or "")
    return {
        "request_key": step.chain,
        "stage": step.stage,
        "step_key": step.request_key,
        "frames": None if request.frames is None else [place._asdict() for place in request.frames],
        "prompt": request.prompt,
        "reply": reply,
        "not_shown": _not_shown(chain, step, reply),
        "status": None if completion is None else completion["status"],
    }


def _not_shown(chain: Chain, step: Step, reply: str | None) -> int | None:
    if reply is None or not isinstance(chain, Choice) or not step.request.asks_for_frames:
        return None
    return chain.after((*step.replies, reply)).not_shown[-1]
