"""Verify a release: every file against the index, and patients against cohorts."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.files import read_json
from cardiolens.curation.release.facts import SCHEMA
from cardiolens.curation.release.make import INDEX, digests
from cardiolens.study.manifest import MANIFEST_NAME

MADE_BY_SWEEPS = ("outputs", "stores")  # in the folder that a sweep is started in


def verify(folder: Path) -> int:
    """Print the differences between a folder and its index; return 0 if there are none, else 1."""
    lines = list(differences(folder))
    for line in lines:
        say(line)
    say(f"{folder}: {len(lines)} differences" if lines else f"{folder}: as released")
    return 1 if lines else 0


def differences(folder: Path) -> Iterator[str]:
    """Yield a line per missing, changed or unknown file, and per patient in two cohorts."""
    index = _index(folder)
    digests_here = {name: digest for name, _, digest in digests(folder)}
    for name, file in index.items():
        if name not in digests_here:
            yield f"{name}: is missing"
        elif digests_here[name] != file["sha256"]:
            yield f"{name}: is not what was released"
    for name in sorted(digests_here.keys() - index.keys()):
        if name.partition("/")[0] in MADE_BY_SWEEPS:
            continue
        yield f"{name}: is not of this release"
    cohorts: dict[str, set[str]] = defaultdict(set)
    for path in sorted(folder.glob(f"studies/*/{MANIFEST_NAME}")):
        manifest = _manifest(path)
        cohorts[str(manifest.get("patient_id"))] |= set(map(str, manifest.get("cohort", ())))
    for patient, names in sorted(cohorts.items()):
        if len(names) > 1:
            yield f"patient {patient}: is in cohorts {', '.join(sorted(names))}"


def _index(folder: Path) -> Mapping[str, Mapping[str, object]]:
    try:
        index_record: Any = read_json(folder / INDEX)
        index = index_record["files"]
        is_complete = index_record["schema"] == SCHEMA and all("sha256" in file for file in index.values())
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"verify={folder}: is no release ({type(error).__name__}: {error})") from None
    if not is_complete:
        raise InputError(f"verify={folder}: {INDEX} is not of schema {SCHEMA}; another version made it")
    return dict(index)


def _manifest(path: Path) -> Mapping[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # its digest has been named
    return record if isinstance(record, dict) else {}
