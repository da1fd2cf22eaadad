"""The heart's requests and verdicts are what they were: digests of a small plan, and of what is judged of it.

Completions of every store are found by these keys: a change here asks everything anew. Change the digests
only together with what `docs/protocol/README.md` says of it.
"""

import pytest
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.base.digest import digest_of
from cardiolens.inference.plan.plan import Plan
from cardiolens.score.run_results.scoring import RunResults
from cardiolens.storage import schemas, tables

REQUESTS = "9f0590484bedecc8ca9dd51273d19a33"
VERDICTS = "4df494c867bc1d260f08faad9ac0fcb7"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, RunResults]:
    root = make_cohort(tmp_path_factory.mktemp("digest"), 1)
    return swept(
        sweep_spec(
            root,
            reader("uniform"),
            reader("noisy", error=0.4),
            selector=[
                {"name": "clinical", "kind": "clinical"},
                {"name": "random", "kind": "random", "seeds": [2026]},
                {"name": "uniform", "kind": "uniform", "pool": "sequence"},
                {"name": "self", "kind": "self"},
            ],
            prompt=[
                {"name": "standard", "style": "standard", "max_tokens": 64},
                {"name": "reasoning", "style": "reasoning", "max_tokens": 512},
            ],
            control=["none", "shuffled_options"],
            subtask=["C02", "C10", "L02", "P01", "T01", "D01", "R-LGE"],
        )
    )


@pytest.mark.full
def test_requests_are_what_they_were(judged: tuple[Plan, RunResults]) -> None:
    keys = [
        [row["arm_id"], row["qa_id"], row["status"], row["request_key"]]
        for name in sorted(judged[0].identities)
        for row in tables.read(judged[0].run.requests(name), schemas.REQUESTS).to_pylist()
    ]
    assert digest_of(keys) == REQUESTS


def test_verdicts_are_what_they_were(judged: tuple[Plan, RunResults]) -> None:
    rows = tables.read(judged[0].run.verdicts, schemas.VERDICTS).to_pylist()
    assert digest_of(sorted(rows, key=digest_of)) == VERDICTS
