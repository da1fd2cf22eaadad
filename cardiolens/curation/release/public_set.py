"""`set.json` and `CARD.md` of an imported public set: digests to compare, terms, and what it cannot ask.

Names of downloaded files and folders do not count: the digest of the files is that of their contents.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.digest import digest_of, sha256_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_json, read_text
from cardiolens.curation.ingest.layouts.convention import Convention
from cardiolens.curation.ingest.scan import find
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.manifest import MANIFEST_NAME, read_study

SET_NAME, CARD_NAME = "set.json", "CARD.md"
SCHEMA = "set-1"
QUESTIONS = "questions/questions.jsonl"
_PROTOCOL = "openprotocol-1"
_CHUNK = 1 << 20
Record = dict[str, Any]


def write_set(source: Path, out: Path, convention: Convention) -> Record:
    """Add a set to `out/set.json`, write the card of all sets in it, and return the content of the file."""
    files = sorted(_source_digests(source))
    studies = {path.parent.name: sha256_of(path) for path in sorted(out.glob(f"studies/*/{MANIFEST_NAME}"))}
    questions = out / QUESTIONS
    one_set = {
        "title": convention.title,
        "place": convention.place,
        "licence": convention.licence,
        "limits": convention.limits,
        "sources": list(convention.sources),
        "files": {"count": len(files), "digest": digest_of(files), "sha256": files},
    }
    record: Record = {
        "schema": SCHEMA,
        "sets": dict(sorted((_other_sets(out) | {convention.name: one_set}).items())),
        "studies": {"count": len(studies), "digest": digest_of(studies), "sha256": studies},
        "questions": {"sha256": sha256_of(questions) if questions.is_file() else ""},
    }
    disk.write_text(out / SET_NAME, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    disk.write_text(out / CARD_NAME, "\n".join(_card(out, record)) + "\n")
    return record


def _other_sets(out: Path) -> Record:
    """Return the sets of earlier imports into a folder."""
    try:
        sets = read_json(out / SET_NAME)["sets"]
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
    lines = [parse_json(line) for line in read_text(out / QUESTIONS).splitlines() if line]
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
        yield from (
            "",
            f"## {each['title']}",
            "",
            f"* Layout `{name}`, {each['files']['count']} files, digest `{each['files']['digest']}`.",
            f"* From: {each['place']}. Terms: {each['licence']}.",
            f"* Limits: {each['limits']}.",
            f"* Asks: {', '.join(f'{key} ({n})' for key, n in sorted(counts.items())) or 'none'}.",
            f"* Cannot ask: {', '.join(silent)}.",
            "* Where its traits were read: " + "; ".join(each["sources"]) + ".",
        )
    yield from (
        "",
        f"Studies: {record['studies']['count']}, digest `{record['studies']['digest']}`. "
        f"Questions: {len(lines)}, sha256 `{record['questions']['sha256']}`. "
        "`python -m cardiolens.release verify=<this folder>` compares both.",
    )


def verify_set(folder: Path) -> int:
    """Print what of an imported set differs from its `set.json`; return 0 if nothing does."""
    try:
        record = read_json(folder / SET_NAME)
        studies = {str(name): str(value) for name, value in record["studies"]["sha256"].items()}
        questions, schema = record["questions"]["sha256"], record["schema"]
        digests = {f"files of {name}": str(each["files"]["digest"]) for name, each in record["sets"].items()}
        digests["studies"] = str(record["studies"]["digest"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(
            f"verify={folder}: {SET_NAME} cannot be read ({reason}); import the set again"
        ) from None
    if schema != SCHEMA:
        raise InputError(f"verify={folder}: {SET_NAME} is not of schema {SCHEMA}; another version made it")
    differences = list(_differences(folder, studies, questions))
    for line in differences:
        say(line)
    for part, digest in digests.items():
        say(f"{part}: {digest}")
    say(f"questions: {questions}")
    say(f"{folder}: {len(differences)} differences" if differences else f"{folder}: as imported")
    return 1 if differences else 0


def _differences(folder: Path, studies: Mapping[str, str], questions: str) -> Iterator[str]:
    present = {path.parent.name for path in folder.glob(f"studies/*/{MANIFEST_NAME}")}
    for name in sorted(present - studies.keys()):
        yield f"studies/{name}: is not of this import"
    for name, sha256 in sorted(studies.items()):
        place = folder / "studies" / name
        if name not in present:
            yield f"studies/{name}: is missing"
        elif sha256_of(place / MANIFEST_NAME) != sha256:
            yield f"studies/{name}/{MANIFEST_NAME}: is not what was imported"
        else:
            yield from _volume_differences(place)
    path = folder / QUESTIONS
    if questions and not (path.is_file() and sha256_of(path) == questions):
        yield f"{QUESTIONS}: is not what was drafted"


def _volume_differences(folder: Path) -> Iterator[str]:
    for volume in read_study(folder).manifest.volumes:
        declared = {volume.path: volume.sha256}
        if volume.mask is not None:
            declared[volume.mask.path] = volume.mask.sha256
        for name, sha256 in declared.items():
            path = folder / name
            if not path.is_file() or sha256_of(path) != sha256:
                yield f"studies/{folder.name}/{name}: is not what was imported"
