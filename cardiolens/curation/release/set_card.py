"""`CARD.md`: what imported public sets can ask and cannot, their terms, and what is known of leakage."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.curation.release.set_manifest import QUESTIONS
from cardiolens.protocol.tasks.catalogue import load_catalogue

CARD_NAME = "CARD.md"
_PROTOCOL = "openprotocol-1"


def write_card(out: Path, record: Mapping[str, Any]) -> Path:
    """Write the card of the sets that `set.json` records, and return its path."""
    path = out / CARD_NAME
    disk.write_text(path, "\n".join(_lines(out, record)) + "\n")
    return path


def _lines(out: Path, record: Mapping[str, Any]) -> Iterator[str]:
    lines = [parse_json(line) for line in read_text(out / QUESTIONS).splitlines() if line]
    by_set = {
        name: [each for each in lines if each["verification"]["layout"] == name] for name in record["sets"]
    }
    yield "# Public hearts"
    yield ""
    yield (
        "Pictures and labels are public: any model may have been trained on them, and a high score may be "
        "memory. Compare with a private cohort before you conclude. Every answer is a label of its set. "
        "Nobody verified it for these questions. Research use only."
    )
    for name, each in record["sets"].items():
        by_subtask = Counter(line["subtask"] for line in by_set[name])
        silent = [subtask for subtask in load_catalogue(_PROTOCOL).subtasks if subtask not in by_subtask]
        yield from (
            "",
            f"## {each['title']}",
            "",
            f"* Layout `{name}`, {each['files']['count']} files, digest `{each['files']['digest']}`.",
            f"* From: {each['place']}. Terms: {each['licence']}.",
            f"* Limits: {each['limits']}.",
            f"* Asks: {', '.join(f'{key} ({n})' for key, n in sorted(by_subtask.items())) or 'none'}.",
            f"* Cannot ask: {', '.join(silent)}.",
            "* Where its traits were read: " + "; ".join(each["sources"]) + ".",
        )
    yield from (
        "",
        f"Studies: {record['studies']['count']}, digest `{record['studies']['digest']}`. "
        f"Questions: {len(lines)}, sha256 `{record['questions']['sha256']}`. "
        "`python -m cardiolens.release verify=<this folder>` compares both.",
    )
