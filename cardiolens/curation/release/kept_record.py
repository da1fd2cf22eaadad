"""What a release keeps of a question and of study.json, under their old ids; all else is left out."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import Spec
from cardiolens.curation.review.queue import Verdict
from cardiolens.protocol.tasks.questions import GivenQuestion
from cardiolens.study.manifest import MANIFEST_NAME, Study

Record = dict[str, Any]
# The canary is that of an earlier release; `parent` is of free form, and readers take the catalogue's.
_LEFT_OUT = frozenset({"evidence", "evidence_slices", "parent", "canary"})
_OLD_IDS = frozenset({"report_id", "study_id", "patient_id", "cohort"})
_Kappa = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, le=99)]


class _Gate(Spec):
    """The blind test of a model that drafted a question alone."""

    model_config = ConfigDict(strict=True)

    model: Annotated[str, Field(pattern=r"^[\w.-]{1,64}$")]
    reports: Annotated[int, Field(ge=0)]
    drafts: Annotated[int, Field(ge=0)]
    wrong: Annotated[int, Field(ge=0)]


class _Verification(Spec):
    """The kept entries of `verification`, as drafts and review write them; no free text among them."""

    model_config = ConfigDict(strict=True)

    status: Literal["draft", "verified"] | None = None
    stage: Annotated[int, Field(ge=0, le=9)] | None = None
    verdict: Verdict | None = None
    readers: _Count | None = None  # how many
    adjudicated: bool | None = None
    kappa_batch: Annotated[str, Field(pattern=r"^b\d{1,4}$")] | None = None
    batch_decision: Literal["pass", "small"] | None = None
    kappa: _Kappa | None = None
    probes: _Count | None = None  # models that probed it
    blind_excess: _Kappa | None = None
    drafted_by: Literal["both", "rules", "model", "mask"] | None = None
    gate: _Gate | None = None


def kept_question(row: GivenQuestion, file: str) -> Record:
    """Return a question's record without its evidence, parent and verifiers' names.

    InputError names the line and the entry of a verification that the review does not write; a value is not
    quoted, for it may name somebody.
    """
    record = {name: value for name, value in row.record.items() if name not in _LEFT_OUT}
    if "verification" not in record:
        return record
    legal = _Verification.model_fields
    entries = {name: value for name, value in row.question.verification.items() if name in legal}
    try:
        kept = _Verification.model_validate(entries).model_dump()
    except ValidationError as error:
        fault = error.errors()[0]
        raise InputError(
            f"{file} line {row.number}: verification.{fault['loc'][0]} is of another form than review writes "
            f"({fault['type']}); correct it or leave it out"
        ) from None
    values = {name: round(kept[name], 4) if isinstance(kept[name], float) else kept[name] for name in entries}
    return record | {"verification": values}


def kept_manifest(study: Study) -> Record:
    """Return the content of study.json without the ids of patient, report and cohorts."""
    manifest: Record = read_json(study.folder / MANIFEST_NAME)
    return {name: value for name, value in manifest.items() if name not in _OLD_IDS}
