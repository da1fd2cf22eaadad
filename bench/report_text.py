"""Precision and recall of the report extractor on sentence files: `python bench/report_text.py FILE ...`."""

import sys
from pathlib import Path

import yaml

from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.report_text.entities import Entity
from cardiolens.report_text.extract import extract

Pair = tuple[set[Entity], frozenset[Entity]]  # what a reader finds, what the extractor finds


def pairs(path: Path) -> list[Pair]:
    """Both readings of every sentence of a file."""
    catalogue = load_catalogue("openprotocol-1")
    cases = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [(_wanted(case["entities"]), extract(case["text"], case["sequence"], catalogue)) for case in cases]


def line(name: str, read: list[Pair]) -> str:
    """Scores of one file."""
    right = sum(len(gold & found) for gold, found in read)
    precision = right / sum(len(found) for _, found in read)
    recall = right / sum(len(gold) for gold, _ in read)
    f1 = 2 * precision * recall / (precision + recall)
    exact = sum(gold == found for gold, found in read)
    return f"{name}: n {len(read)}, exact {exact}, P {precision:.3f}, R {recall:.3f}, F1 {f1:.3f}"


def _wanted(entities: dict[str, list[str]]) -> set[Entity]:
    return {(field, value) for field, values in entities.items() for value in values}


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        print(line(path.stem, pairs(path)))
