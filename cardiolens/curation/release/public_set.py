"""`set.json` and `CARD.md` of an imported public set: digests to compare, terms, and what it cannot ask.

Names of downloaded files and folders do not count: the digest of the files is that of their contents.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.digest import digest_of
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.curation.ingest.conventions import Convention
from cardiolens.curation.ingest.scan import find
from cardiolens.curation.questions.stage_files import read_lines
from cardiolens.curation.release.verify import index_of
from cardiolens.protocol.tasks.catalogue import load_catalogue

CARD_NAME, INDEX = "CARD.md", "set.json"
QUESTIONS = "questions/questions.jsonl"
_FILES = rf"studies/[^/]+/.+|{re.escape(QUESTIONS)}"  # that the index lists
_PROTOCOL = "openprotocol-1"
_CHUNK = 1 << 20
Record = dict[str, Any]


def write_set(source: Path, out: Path, convention: Convention) -> Record:
    """Add a set to `out/set.json`, write the card of all sets in it, and return the content of the file."""
    files = sorted(_source_digests(source))
    facts = {name: getattr(convention, name) for name in ("title", "place", "licence", "limits")}
    one_set = {
        **facts,
        "sources": list(convention.sources),
        "downloaded": {"count": len(files), "digest": digest_of(files), "sha256": files},
    }
    sets = _other_sets(out) | {convention.name: one_set}
    record: Record = {"schema": "set-1", "sets": dict(sorted(sets.items()))}
    record["files"] = index_of(out, _FILES)
    disk.write_text(out / INDEX, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    disk.write_text(out / CARD_NAME, "\n".join(_card(out, record)) + "\n")
    return record


def _other_sets(out: Path) -> Record:
    """Return the sets of earlier imports into a folder."""
    try:
        sets = read_json(out / INDEX)["sets"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return sets if isinstance(sets, dict) else {}


def _source_digests(source: Path) -> Iterator[str]:
    for candidate in find(source):
        if candidate.reason is None:
            total = hashlib.sha256()
            with candidate.place.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    total.update(chunk)
            yield total.hexdigest()


def _card(out: Path, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the card: what the sets can ask and cannot, their terms, and leakage."""
    lines = read_lines(out / QUESTIONS)
    yield "# Public hearts"
    yield ""
    yield (
        "Pictures and labels are public: any model may have been trained on them, and a high score may be "
        "memory. Compare with a private cohort before you conclude. Every answer is a label of its set. "
        "Nobody verified it for these questions. Research use only."
    )
    for name, each in record["sets"].items():
        counts = Counter(line["subtask"] for line in lines if line["verification"]["layout"] == name)
        silent = [subtask for subtask in load_catalogue(_PROTOCOL).subtasks if subtask not in counts]
        downloaded = each["downloaded"]
        yield from (
            "",
            f"## {each['title']}",
            "",
            f"* Layout `{name}`, {downloaded['count']} files, digest `{downloaded['digest']}`.",
            f"* From: {each['place']}. Terms: {each['licence']}.",
            f"* Limits: {each['limits']}.",
            f"* Asks: {', '.join(f'{key} ({n})' for key, n in sorted(counts.items())) or 'none'}.",
            f"* Cannot ask: {', '.join(silent)}.",
            "* Where its traits were read: " + "; ".join(each["sources"]) + ".",
        )
    yield from (
        "",
        f"Files of studies and of {len(lines)} questions: {len(record['files'])}, digest "
        f"`{digest_of(record['files'])}`. Two imports are the same if their digests agree.",
    )
