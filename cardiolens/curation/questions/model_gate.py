"""Gate of a model: what it reads alone is drafted only after a blind test by `bench/hospitals.py`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.questions.model_reader import prompts_digest
from cardiolens.inference.models.identity import identify
from cardiolens.inference.models.token_counts import fault_of
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.storage.places import Store

SCHEMA = "model-gate-1"
MOST_WRONG = 0.03  # of the drafts that the model alone made of a blind set
FEWEST_DRAFTS = 100


Gate = dict[str, Any]
"""Of a model that passed: its name, reports, drafts of it alone, and wrong ones.

A question's verification, and so the card of a release, holds it.
"""


def gate_record(sweep: SweepSpec, catalogue: Catalogue, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the record of a blind test of the model of a sweep: reports, drafts and wrong ones."""
    (model,) = sweep.model
    return {"schema": SCHEMA, "model": model.name, **_key(sweep, catalogue), **counts}


def read_gate(path: Path, sweep: SweepSpec, catalogue: Catalogue) -> Gate:
    """Read the record of a blind test; InputError if it is of another model or prompt, or was not passed."""
    try:
        record: dict[str, Any] = read_json(path)
        gate: Gate = {"model": str(record["model"])}
        gate |= {name: int(record[name]) for name in ("reports", "drafts", "wrong")}
        found = {name: record[name] for name in _key(sweep, catalogue)}
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"gate={path}: is no record of bench/hospitals.py model=...; make one with it"
        ) from None
    for name, value in _key(sweep, catalogue).items():
        if found[name] != value:
            raise InputError(
                f"gate={path}: its {name} is {found[name]!r}, and that of this run {value!r}; test this "
                "model with bench/hospitals.py again, or leave gate out"
            )
    n_drafts, n_wrong = gate["drafts"], gate["wrong"]
    if n_drafts < FEWEST_DRAFTS or n_wrong > MOST_WRONG * n_drafts:
        raise InputError(
            f"gate={path}: {n_wrong} of {n_drafts} drafts are wrong; expected at most {MOST_WRONG:.0%} "
            f"of at least {FEWEST_DRAFTS}; leave gate out, and what the model reads alone is not drafted"
        )
    return gate


def _key(sweep: SweepSpec, catalogue: Catalogue) -> dict[str, str]:
    """Return what a test is of: the model with its files and sampling, and the words that it is asked in."""
    (model,) = sweep.model
    with fault_of(model.name):
        identity = identify(model, Store(sweep.store).models)
    return {"model_key": identity.model_key, "prompts": prompts_digest(catalogue)}
