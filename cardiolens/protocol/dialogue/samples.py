"""Several replies to one question as the text of one completion, one JSON object per line."""

import json
from collections.abc import Iterable
from typing import NamedTuple

from cardiolens.base.untrusted.bounded_files import parse_json

SAMPLED = "samples"  # finish reason of a completion whose text holds several replies


class Sample(NamedTuple):
    """One of several replies."""

    text: str
    finish_reason: str
    status: str  # ok or refused

    @property
    def refused(self) -> bool:
        return self.status == "refused"

    @property
    def cut(self) -> bool:
        return self.finish_reason == "length"


def samples_to_lines(samples: Iterable[Sample]) -> str:
    """Format replies as JSON Lines, in the order of their seeds."""
    return "\n".join(json.dumps(sample._asdict(), ensure_ascii=False) for sample in samples)


def samples_of(text: str) -> tuple[Sample, ...]:
    """Parse the replies in a text; empty if it has another format, since a server may return anything."""
    try:
        samples = tuple(Sample(**parse_json(line)) for line in text.split("\n"))
    except (ValueError, TypeError):
        return ()
    return samples if all(isinstance(field, str) for sample in samples for field in sample) else ()
