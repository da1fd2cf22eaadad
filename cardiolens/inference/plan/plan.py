"""The plan of a sweep: its requests on disk and their counts, before any engine is touched.

Three steps: read the inputs of the sweep (`inputs`), find the models whose requests must be made because
something that decides them changed, and write these part by part (`parts`).
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from cardiolens.base import disk
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.arms import Arm, arms
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import Identity, identify
from cardiolens.inference.models.token_counts import ModelError, fault_of
from cardiolens.inference.plan.inputs import Inputs, read_inputs
from cardiolens.inference.plan.parts import PlanTotals, write_parts
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run, Store, run_of
from cardiolens.storage.schemas import OVERFLOW, PLANNED

log = logging.getLogger(__name__)

_NOTE = "plan.json"  # of a finished plan; without it a plan is unfinished


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep whose requests are written: its arms, models, questions and studies."""

    spec: SweepSpec
    run: Run
    store: Store
    arms: tuple[Arm, ...]
    identities: Mapping[str, Identity]  # by model name; only models that could be planned
    study_ids: tuple[str, ...]
    volumes: pa.Table  # of these studies
    questions_sha256: str
    protocol: str  # the protocol's name, even if a folder was configured
    catalogue_sha256: str
    status_counts: Mapping[str, int]
    most_frames: Mapping[str, int]  # the largest number of frames in one request, by model name
    seconds: float
    failed: Mapping[str, str]  # reason by model that could not be planned; empty without `keep_going`
    examples_kept: int = 0  # patients of the cohort `train`, who lend examples and are not asked

    @property
    def asked(self) -> int:
        return sum(self.status_counts.values())

    @property
    def overflow(self) -> int:
        return self.status_counts.get(OVERFLOW, 0)

    @property
    def planned(self) -> int:
        return self.status_counts.get(PLANNED, 0)

    @property
    def skipped(self) -> int:
        return self.asked - self.planned - self.overflow


def plan(spec: SweepSpec, models: Collection[str] | None = None) -> Plan:
    """Write the `requests` of a sweep; studies must have been prepared, engines are not touched.

    `models` restricts the plan to models of these names; None for all. ModelError if the files, template or
    processor of a model cannot be used; with `keep_going` the model is left out instead.
    """
    started = time.monotonic()
    inputs, run = read_inputs(spec), run_of(spec)
    _replace_changed(inputs.store.questions, inputs.question_table, schemas.QUESTIONS)
    if inputs.evidence.num_rows or inputs.store.evidence.exists():
        _replace_changed(inputs.store.evidence, inputs.evidence, schemas.EVIDENCE)
    sweep_arms = tuple(arm for arm in arms(spec) if models is None or arm.model.name in models)
    identities: dict[str, Identity] = {}
    failed: dict[str, str] = {}
    for name, model in {arm.model.name: arm.model for arm in sweep_arms}.items():
        with _left_out(spec, name, failed), fault_of(name):
            identities[name] = identify(model, inputs.store.models)
    totals_of = _requests(spec, inputs, run, sweep_arms, identities, failed=failed)
    if not totals_of:
        raise InputError(f"no model of this sweep can be planned: {next(iter(failed.values()))}")
    return Plan(
        spec=spec,
        run=run,
        store=inputs.store,
        arms=tuple(arm for arm in sweep_arms if arm.model.name in totals_of),
        identities={name: identities[name] for name in identities if name in totals_of},
        study_ids=inputs.study_ids,
        volumes=inputs.volumes,
        questions_sha256=inputs.questions_sha256,
        protocol=inputs.catalogue.protocol,
        catalogue_sha256=inputs.catalogue.sha256,
        status_counts=sum((totals.status_counts for totals in totals_of.values()), Counter()),
        most_frames={name: totals.most_frames for name, totals in totals_of.items()},
        seconds=time.monotonic() - started,
        failed=failed,
        examples_kept=inputs.examples_kept,
    )


def _requests(
    spec: SweepSpec,
    inputs: Inputs,
    run: Run,
    sweep_arms: Sequence[Arm],
    identities: Mapping[str, Identity],
    *,
    failed: dict[str, str],
) -> dict[str, PlanTotals]:
    """Return the counts of each model's requests; make the requests that its folder does not hold yet."""
    totals_of: dict[str, PlanTotals] = {}
    new: dict[str, Identity] = {}
    decided_by = {
        name: digest_of([inputs.fingerprint, identity.model_key]) for name, identity in identities.items()
    }
    for name, identity in identities.items():
        if known := _kept(run.requests(name), decided_by[name]):
            totals_of[name] = known
        else:
            new[name] = identity
            disk.remove_tree(run.requests(name))
    try:
        with closing(write_parts(spec, inputs, run, sweep_arms, new)) as models:
            for name, totals in models:
                with _left_out(spec, name, failed):
                    if isinstance(totals, ModelError):
                        raise totals
                    totals_of[name] = totals
                    _keep(run.requests(name), decided_by[name], totals)
    finally:
        for name in new.keys() - totals_of.keys():  # half a plan would be taken for a whole one
            disk.remove_tree(run.requests(name))
    return totals_of


@contextmanager
def _left_out(spec: SweepSpec, model: str, failed: dict[str, str]) -> Iterator[None]:
    """Record the ModelError of a block in `failed` and go on without the model, with `keep_going`."""
    try:
        yield
    except ModelError as error:
        if not spec.keep_going:
            raise
        if model in spec.compared:
            raise InputError(f"primary compares {model}, which cannot be asked: {error}") from error
        log.warning("model %s is left out: %s", model, error)
        failed[model] = str(error)


def _kept(folder: Path, fingerprint: str) -> PlanTotals | None:
    """Return the totals of the plan in a folder; None unless it is whole and made from these inputs."""
    try:
        note = read_json(folder / _NOTE)
        if (note["fingerprint"], note["parts"]) != (fingerprint, _sizes(folder)):
            return None
        return PlanTotals(Counter(note["status_counts"]), note["most_frames"])
    except (OSError, ValueError, LookupError, TypeError):  # no note, or a foreign file
        return None


def _keep(folder: Path, fingerprint: str, totals: PlanTotals) -> None:
    note = {"fingerprint": fingerprint, "parts": _sizes(folder), **totals._asdict()}
    disk.write_text(folder / _NOTE, json.dumps(note, indent=1) + "\n")


def _sizes(folder: Path) -> dict[str, int]:
    return {part.name: part.stat().st_size for part in tables.parts(folder)}


def _replace_changed(folder: Path, table: pa.Table, schema: pa.Schema) -> None:
    """Replace a table of the store that the judge and people read, if it changed."""
    old = tables.parts(folder)
    if len(old) != 1 or not tables.read_part(old[0], schema).equals(table):
        tables.replace(folder, table, schema)
