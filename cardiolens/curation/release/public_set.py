"""`set.json` and `CARD.md` of an imported public set: digests to compare, terms, and what it cannot ask.

Names of downloaded files and folders do not count: the digest of the files is that of their contents.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from cardiolens.base import disk
from cardiolens.base.digest import digest_of, sha256_of
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.curation.ingest.conventions import Convention
from cardiolens.curation.ingest.export_files import find
from cardiolens.curation.questions.stage_files import read_lines
from cardiolens.curation.release.verify import index_of
from cardiolens.protocol.tasks.catalogue import load_catalogue

CARD_NAME, INDEX = "CARD.md", "set.json"
QUESTIONS = "questions/questions.jsonl"
_FILES = rf"studies/[^/]+/.+|{re.escape(QUESTIONS)}"  # that the index lists
_PROTOCOL = "openprotocol-1"
Record = dict[str, Any]


def write_set(source: Path, out: Path, convention: Convention) -> Record:
    """Add a set to `out/set.json`, write the card of all sets in it, and return the content of the file."""
    files = sorted(sha256_of(each.place) for each in find(source) if each.reason is None)
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
    disk.write_text(out / CARD_NAME, _card(out, record))
    return record


def _other_sets(out: Path) -> Record:
    """Return the sets of earlier imports into a folder."""
    try:
        sets = read_json(out / INDEX)["sets"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return sets if isinstance(sets, dict) else {}


def _card(out: Path, record: Mapping[str, Any]) -> str:
    """Return the card: what the sets can ask and cannot, their terms, and leakage."""
    lines = read_lines(out / QUESTIONS)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        counts[line["verification"]["layout"]][line["subtask"]] += 1
    template = Path(__file__).with_name("set_card.md.j2").read_text(encoding="utf-8")
    jinja = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    return jinja.from_string(template).render(
        sets=record["sets"],
        counts=counts,
        subtasks=list(load_catalogue(_PROTOCOL).subtasks),
        n_questions=len(lines),
        n_files=len(record["files"]),
        digest=digest_of(record["files"]),
    )
