"""The replies of a run that a person reads: a sample of each model's, rule by rule and status by status."""

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json

SAMPLE = "audit_sample.json"
YOUNG = frozenset({"answer_phrase"})  # rules of which least is known
_LEAST = 5  # replies of a stratum, where it has as many
_MORE = 2.0  # times as many of young rules, and of what was not read


@dataclass(frozen=True, slots=True)
class Sampled:
    """One reply of the sample, by the place of its verdict, and its stratum."""

    model: str
    arm_id: str
    qa_id: str
    stratum: str  # status and rule when the sample was drawn


@dataclass(frozen=True, slots=True)
class Sample:
    """Replies in the order in which they are read, and the sizes of their strata."""

    replies: tuple[Sampled, ...]
    sizes: Mapping[str, Mapping[str, int]]  # model -> stratum -> replies in the run


def draw(verdicts: Sequence[Mapping[str, Any]], per_model: int, seed: int) -> Sample:
    """Draw `per_model` replies of each model from judged verdicts, which name their model."""
    dice = random.Random(seed)
    strata: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in verdicts:
        name = f"{row['parse_status']}: {row['rule']}"
        strata.setdefault(row["model"], {}).setdefault(name, []).append(row)
    replies: list[Sampled] = []
    for model, by_name in strata.items():
        numbers = allocate({name: len(rows) for name, rows in by_name.items()}, per_model)
        for name, rows in by_name.items():
            picked = dice.sample(rows, numbers[name])
            replies += [Sampled(model, row["arm_id"], row["qa_id"], name) for row in picked]
    dice.shuffle(replies)  # whose reply is read next, and by which rule, says nothing
    sizes = {model: {name: len(rows) for name, rows in by_name.items()} for model, by_name in strata.items()}
    return Sample(tuple(replies), sizes)


def allocate(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """How many replies of each stratum are read: a few, and the rest by size, more where rules are young."""
    numbers = {name: min(size, _LEAST) for name, size in sizes.items()}
    weights = {name: size * (_MORE if _is_young(name) else 1.0) for name, size in sizes.items()}
    while (n_open := total - sum(numbers.values())) > 0:
        open_names = [name for name in sizes if numbers[name] < sizes[name]]
        if not open_names:
            break
        of_all = sum(weights[name] for name in open_names)
        for name in sorted(open_names, key=lambda name: -weights[name]):
            more = max(1, round(n_open * weights[name] / of_all))
            more = min(more, sizes[name] - numbers[name], total - sum(numbers.values()))
            numbers[name] += max(0, more)
    return numbers


def _is_young(stratum: str) -> bool:
    status, _, rule = stratum.partition(": ")
    return status != "ok" or rule in YOUNG


def strata_of(sample: Sample) -> Counter[tuple[str, str]]:
    """Number of sampled replies by model and stratum."""
    return Counter((reply.model, reply.stratum) for reply in sample.replies)


def keep(path: Path, sample: Sample) -> None:
    """Write a sample; later audits of the run read the same replies."""
    tree = {
        "schema": "audit-sample-1",
        "replies": [asdict(entry) for entry in sample.replies],
        "sizes": sample.sizes,
    }
    disk.write_text(path, json.dumps(tree, indent=1) + "\n")


def read_sample(path: Path) -> Sample | None:
    """Read the sample of a run; None if none was drawn yet."""
    if not path.is_file():
        return None
    try:
        tree = read_json(path)
        return Sample(tuple(Sampled(**entry) for entry in tree["replies"]), tree["sizes"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: is no sample of an audit ({error}); delete it and run again") from error
