"""What a release keeps of a question and of study.json, under their old ids; all else is left out."""

import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.curation.review.ledger import Verdict
from cardiolens.protocol.tasks.questions import GivenQuestion
from cardiolens.study.manifest import MANIFEST_NAME, Study

Record = dict[str, Any]
_LAST_STAGE = 9  # of the protocol
_MOST_READERS = 99
_LEFT_OUT = frozenset(
    {"evidence", "evidence_slices", "parent", "canary"}
)  # the canary is that of an earlier release
_BATCH = "b00, b01, ..."


def kept_question(row: GivenQuestion, file: str) -> Record:
    """Return a question's record without its evidence, parent and verifiers' names.

    `parent` is of free form and may hold an old id; readers take the catalogue's. InputError names the line
    and the value of a verification that the review does not write.
    """
    record = {name: value for name, value in row.record.items() if name not in _LEFT_OUT}
    if "verification" in record:
        record["verification"] = _verification(row, f"{file} line {row.number}")
    return record


def kept_manifest(study: Study) -> Record:
    """Return the content of study.json without the ids of patient, report and cohorts."""
    manifest: Record = read_json(study.folder / MANIFEST_NAME)
    return {
        name: value
        for name, value in manifest.items()
        if name not in ("report_id", "study_id", "patient_id", "cohort")
    }


def _is_word(*legal: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in legal


def _is_count(most: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_kappa(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and math.isfinite(value) and -1 <= value <= 1)  # type: ignore[operator,arg-type]


def _is_batch(value: object) -> bool:
    if value is None:
        return True
    return (
        isinstance(value, str)
        and value[:1] == "b"
        and value[1:].isascii()
        and value[1:].isdigit()
        and len(value) <= 5
    )


# Kept entries of `verification`, as drafts and review write them: which values are legal, and in words.
_KEPT: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "status": (_is_word("draft", "verified"), "draft or verified"),
    "stage": (_is_count(_LAST_STAGE), f"an integer from 0 to {_LAST_STAGE}"),
    "verdict": (_is_word(*get_args(Verdict)), ", ".join(get_args(Verdict))),
    "readers": (_is_count(_MOST_READERS), f"the number of readers, an integer up to {_MOST_READERS}"),
    "adjudicated": (lambda value: isinstance(value, bool), "true or false"),
    "kappa_batch": (_is_batch, f"null or the name of a batch: {_BATCH}"),
    "batch_decision": (_is_word("pass", "small"), "pass or small"),
    "kappa": (_is_kappa, "null or a number from -1 to 1"),
    "probes": (_is_count(_MOST_READERS), "the number of models that probed it"),
    "blind_excess": (_is_kappa, "a number from -1 to 1"),
    "drafted_by": (_is_word("both", "rules", "model", "mask"), "both, rules, model or mask"),
}


def _verification(row: GivenQuestion, where: str) -> Record:
    """Return the kept entries; a value is not quoted in an error, for it may name somebody."""
    kept: Record = {}
    for name, value in row.question.verification.items():
        if name not in _KEPT:
            continue
        is_legal, legal = _KEPT[name]
        if not is_legal(value):
            raise InputError(
                f"{where}: verification.{name} is {type(value).__name__} of another form than review writes; "
                f"expected {legal}; correct it or leave it out"
            )
        kept[name] = round(value, 4) if isinstance(value, float) else value
    return kept
