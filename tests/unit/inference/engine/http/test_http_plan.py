"""What is planned for a model whose processor is not at hand."""

from pathlib import Path
from typing import Any

import pytest

from cardiolens.inference.models.token_counts import EstimatedTokens
from cardiolens.inference.plan.plan import plan
from cardiolens.storage import schemas, tables
from cardiolens.storage.schemas import FRAME
from tests.unit.small_cohort import make_cohort, sweep_spec


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("cohort"), 1)


def requests(cohort: Path, budget: int | str = 8, **told: Any) -> list[dict[str, Any]]:
    http = {"base_url": "http://127.0.0.1/v1", "api_model": "some-model"}
    model = {"name": "m", "engine": "http", "revision": "r", "long_side": 8, "http": http} | told
    planned = plan(sweep_spec(cohort, model, subtask=["C10"], budget=[budget]))
    rows: list[dict[str, Any]] = tables.read(planned.run.requests("m"), schemas.REQUESTS).to_pylist()
    return rows


def test_an_estimate_is_of_declared_image_tokens_and_a_third_of_the_characters() -> None:
    tokens = EstimatedTokens(100)
    assert tokens.count("six chars"[:6], "nine text", ((8, 8),) * 3) == 2 + 3 + 300
    assert tokens.image_tokens((8, 8)) == 100


def test_estimated_prompts_are_flagged_and_those_too_long_overflow(cohort: Path) -> None:
    (row,) = requests(cohort, image_tokens=100)
    shown = row["prompt"].count(FRAME)
    text = len(row["system"]) + len(row["prompt"])
    assert row["status"] == "planned"
    assert row["flags"][-1] == "estimated_tokens"
    assert 0 <= row["predicted_tokens"] - (100 * shown + text / 3) < 4
    (row,) = requests(cohort, image_tokens=100, max_model_len=800)
    assert row["status"] == "overflow"


def test_without_declared_image_tokens_nothing_is_predicted(cohort: Path) -> None:
    (row,) = requests(cohort)
    assert (row["status"], row["predicted_tokens"]) == ("planned", None)
    assert "estimated_tokens" not in row["flags"]


def test_a_budget_in_tokens_shows_as_many_frames_as_are_declared_to_fit(cohort: Path) -> None:
    (row,) = requests(cohort, budget="tokens:450", image_tokens=100)
    assert len(row["frames"]) == 4
