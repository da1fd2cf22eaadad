"""Documents of a run besides its tables: configuration, declaration, manifest, log."""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from cardiolens.base import disk
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.sanitize import PlainFormatter
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import validated
from cardiolens.config.dataset import ReleaseSpec
from cardiolens.config.sweep import SweepSpec, parse
from cardiolens.config.sweep_factors import Primary
from cardiolens.storage.places import Run, located, record_place

_REMEDY = "another version of CardioLens wrote it, or it was changed: run the sweep again"


def release_of(manifest: Mapping[str, Any]) -> ReleaseSpec | None:
    """Return the release that a run asked; None if it asked other questions."""
    release = manifest.get("release")
    return None if release is None else ReleaseSpec.model_validate(release)


def check_one_release(runs: Sequence[Run], manifests: Sequence[Mapping[str, Any]]) -> None:
    """Raise InputError, with both digests, for runs of several releases or several versions of one."""
    first, *others = [release_of(manifest) or "no release" for manifest in manifests]
    for run, other in zip(runs[1:], others, strict=True):
        if other != first:
            raise InputError(
                f"{run.root}: asked {other}, but {runs[0].root} asked {first}; runs are ranked within one "
                "version of one release; run both on the same"
            )


def write_configuration(run: Run, spec: SweepSpec) -> None:
    """Write the resolved configuration, with every value that applied, and the folder that it was made in."""
    record_place(run)
    disk.write_text(run.configuration, spec.model_dump_json(indent=1) + "\n")


def declare(run: Run, spec: SweepSpec, n_answered: int | None = None) -> None:
    """Write the declared comparison before any model is asked; an existing one is not replaced.

    The comparison is part of the digest that names the run's folder, so another one is another run.
    `n_answered`: requests of the two models that the store has answers to already, if known. A declaration
    that found some, or does not know, is not tested alone.
    """
    if spec.primary is None or run.declaration.exists():
        return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    record = _comparison(spec.primary) | {"declared_at": now, "answered_before": n_answered}
    disk.write_text(run.declaration, json.dumps(record, indent=1) + "\n")


def read_declaration(run: Run, spec: SweepSpec) -> dict[str, Any] | None:
    """Read the declared comparison, None without one; InputError if it was changed since."""
    if spec.primary is None:
        return None
    declare(run, spec)  # with the present date, if no sweep planned the run
    record = _read_json(run, run.declaration)
    if not isinstance(record, dict) or not _comparison(spec.primary).items() <= record.items():
        raise InputError(f"{run.declaration}: is not the comparison that the run was started with; {_REMEDY}")
    return record


def answered_before(run: Run, spec: SweepSpec) -> int | None:
    """Answers of the compared models that were there when the comparison was declared; None if not known."""
    count = (read_declaration(run, spec) or {}).get("answered_before")
    return count if isinstance(count, int) and count >= 0 else None


def _comparison(primary: Primary) -> dict[str, Any]:
    """What is declared, as it was named."""
    return primary.model_dump(mode="json", exclude_none=True)


def read_configuration(run: Run) -> SweepSpec:
    """Read the resolved configuration of a run, with paths as they lead to its files from here."""
    return located(run, as_written(run))


def as_written(run: Run) -> SweepSpec:
    """Read the resolved configuration of a run, with paths as they were given, which name the run."""
    tree = _read_json(run, run.configuration)
    try:
        return parse(tree)
    except InputError as error:
        raise InputError(f"{run.configuration}: {error}; {_REMEDY}") from None


def _read_json(run: Run, path: Path) -> Any:
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{run.root}: is not the folder of a run ({error}); give run=outputs/<name>"
        ) from None


def cohort_digest(volumes: pa.Table) -> str:
    """Digest (32 hex digits) of the studies of a run: the sources and windows of their volumes."""
    names = ["study_id", "volume_id", "source_sha256", "window_low", "window_high"]
    return digest_of(
        volumes.select(names).sort_by([("study_id", "ascending"), ("volume_id", "ascending")]).to_pylist()
    )


FolderName = Annotated[str, Field(pattern=r"^[^/\\]+$")]  # the name of a folder
Number = Annotated[int | float, Field(allow_inf_nan=False)]
Counts = dict[str, Annotated[int, Field(ge=0, lt=2**63)]]


class _Model(BaseModel):
    model_key: FolderName
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)
    model_config = ConfigDict(extra="allow", protected_namespaces=())


class _Arm(BaseModel):
    arm_id: str
    model: str
    selector: str
    budget: int | str
    prompt: str
    control: str
    wording: int | str = 0
    shots: Annotated[int, Field(ge=0)] = 0  # in arms with examples alone
    cine: Literal["frames", "video"] = "frames"  # in arms with videos alone
    model_config = ConfigDict(extra="forbid")


class _Span(BaseModel):
    began: Number
    ended: Number


class _Deployment(BaseModel):
    model: str
    replicas: Number
    gpus_per_replica: Number
    span: _Span | None


class _Placement(BaseModel):
    waves: list[list[_Deployment]]


class _Numerics(BaseModel):
    engine: str | None
    device: str | None
    attention_backend: str | None
    tensor_parallel: int | None
    requests: Annotated[int, Field(ge=0)]


class _Requests(BaseModel):
    executed: Annotated[int, Field(ge=0)]
    reused: int


class _Stage(BaseModel):
    model: str
    stage: int
    asked: int
    unique: int
    executed: int
    refused: int
    failed: int


class _Manifest(BaseModel):
    """The fields of a manifest that CardioLens reads back; the others are for people."""

    schema_: Annotated[Literal["manifest-1"], Field(alias="schema")]
    protocol: str
    cardiolens: str
    git_commit: str | None
    packages: dict[str, str]
    dataset: str
    release: ReleaseSpec | None = None  # in runs of releases alone
    studies: int
    models: dict[FolderName, _Model]
    arms: list[_Arm]
    requests: _Requests
    stages: list[_Stage] = []
    frames: Counts
    tokens: Counts
    seconds: dict[str, Number]
    placement: _Placement | None = None
    numerics: dict[str, list[_Numerics]] = {}
    failed: dict[str, str] = {}
    questions_digest: str
    questions_sha256: str
    catalogue_sha256: str
    cohort_digest: str
    examples_kept: Annotated[int, Field(ge=0)] = 0  # patients who lend examples and are not asked


def read_manifest(run: Run) -> dict[str, Any]:
    """Read the manifest of a finished sweep."""
    manifest: dict[str, Any] = _read_json(run, run.manifest)
    validated(_Manifest, manifest, f"{run.manifest}: ", f"; {_REMEDY}")
    return manifest


class _Rate(BaseModel):
    """A share with its interval of 95 %."""

    value: float
    low: float
    high: float


class AuditedModel(BaseModel):
    """Rates of misread and missed replies of a model, and how far the share of right answers would move."""

    model: str
    replies: int
    audited: int
    misread: _Rate
    missed: _Rate
    shift: _Rate


class _Audit(BaseModel):
    models: list[AuditedModel]


def read_audit(run: Run) -> list[AuditedModel]:
    """Read the audit of a run's replies by model; empty without one, InputError if it is none."""
    if not run.audit.exists():
        return []
    remedy = f"; make it anew with python -m cardiolens.review report run={run.root}"
    return validated(_Audit, _read_json(run, run.audit), f"{run.audit}: ", remedy).models


def log_to(run: Run) -> None:
    """Send messages of warning and above to the terminal, and all messages to the run's log."""
    try:
        run.root.mkdir(parents=True, exist_ok=True)
        file_handler = logging.FileHandler(run.log)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(
            f"{run.root}: cannot be written ({reason}); free space or check permissions"
        ) from error
    root = logging.getLogger("cardiolens")
    root.setLevel(logging.INFO)
    root.handlers.clear()
    terminal_handler = logging.StreamHandler()
    terminal_handler.setLevel(logging.WARNING)
    terminal_handler.setFormatter(PlainFormatter("%(message)s"))
    file_handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(terminal_handler)
    root.addHandler(file_handler)
