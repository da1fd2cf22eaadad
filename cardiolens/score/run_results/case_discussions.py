"""Case discussions that a model wrote before its answers, from the requests and replies of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from cardiolens.protocol.dialogue.chain import Steps
from cardiolens.protocol.dialogue.chain_tables import read_chains, walk
from cardiolens.storage import tables
from cardiolens.storage.schemas import REQUESTS


@dataclass(frozen=True, slots=True)
class WrittenDiscussion:
    """The discussion of one case."""

    text: str
    is_cut: bool  # by the limit of its tokens


def discussions_by_case(requests: Path, completions: Path, arm_id: str) -> Mapping[str, WrittenDiscussion]:
    """Return the discussions of an arm by study; a case without one has no entry.

    The arm's prompt has `steps: discussion`, so that the first request of each chain asks for it.
    """
    rows = tables.read(requests, REQUESTS, ("arm_id", "study_id", "request_key"))
    of_arm = rows.filter(pc.equal(rows["arm_id"], arm_id)).to_pylist()
    studies = {row["request_key"]: row["study_id"] for row in of_arm}
    chains = {
        key: chain
        for key, chain in read_chains(requests).items()
        if key in studies and isinstance(chain, Steps)
    }
    return {
        studies[step.chain]: WrittenDiscussion(
            str(step.completion["text"] or ""), step.completion["finish_reason"] == "length"
        )
        for step in walk(chains, completions)
        if step.stage == 0 and step.completion is not None and step.completion["status"] == "ok"
    }
