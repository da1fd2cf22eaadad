"""Several replies to one question as the text of one completion: a line of JSON each."""

import json
from collections.abc import Iterable
from typing import NamedTuple

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
    """Replies in the order of their seeds as lines of JSON, which people can read too."""
    return "\n".join(json.dumps(sample._asdict(), ensure_ascii=False) for sample in samples)


def samples_of(text: str) -> tuple[Sample, ...]:
    """The replies in a text; none in one that does not hold such lines, as a server may say what it likes."""
    try:
        samples = tuple(Sample(**json.loads(line)) for line in text.split("\n"))
    except (ValueError, TypeError):
        return ()
    return samples if all(isinstance(field, str) for sample in samples for field in sample) else ()
