"""On a machine with a GPU and without internet: tiny models with weights drawn at random, the whole sweep.

    python -m pytest tests/gpu          some ten starts of an engine

On a GPU the first test passed, once; the others were not run. The same statements were run on CPU.
"""

import sys
from pathlib import Path

import pytest

from cardiolens.inference.models.identity import installed_engine
from cardiolens.protocol.tasks.legal import constraint_of
from cardiolens.storage import schemas, tables
from tests.families.build import build
from tests.ray.conftest import Place
from tests.ray.processes import printed_by

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
ASKED = [
    "name=gpu",
    "model=[tiny]",
    "selector=[clinical]",
    "budget=[8]",
    "answer_format=choice",
    "limit=1",
    "tracker=none",
    "model.tiny.max_tokens.report=16",
]
EAGER = "+model.tiny.engine_options.enforce_eager=true"  # compiling takes most of a start
FAMILY = [
    "+model.tiny.engine_options.load_format=dummy",
    "+model.tiny.weight_gib=0.1",
    "model.tiny.max_model_len=16384",
    "model.tiny.long_side=112",
]

LITTLE = "+model.tiny.engine_options.gpu_memory_utilization=0.002"  # 0.3 GiB of 141


def check(place: Place) -> None:
    """Every request has a legal reply to as many tokens as were planned; no frame is encoded twice."""
    asked = tables.read(place.run / "requests" / "tiny", schemas.REQUESTS).to_pylist()
    planned = {row["request_key"]: row for row in asked if row["status"] == "planned"}
    answered = place.completions().to_pylist()
    assert {row["request_key"] for row in answered} == planned.keys() != set()
    for row in answered:
        request = planned[row["request_key"]]
        assert row["status"] == "ok", row
        assert row["prompt_tokens"] == request["predicted_tokens"], row
        form = request["answer_format"], request["answer_type"]
        legal = constraint_of(*form, tuple(request["option_keys"]), tuple(request["exclusive"])).legal
        assert not legal or row["text"] in legal, row
    manifest = place.manifest()
    distinct = {tuple(frame.items()) for row in planned.values() for frame in row["frames"]}
    assert 0 < manifest["frames"]["encoded"] <= 1.1 * len(distinct)
    assert manifest["models"]["tiny"]["device"] == installed_engine()[0]


@pytest.mark.parametrize("family", ["tiny", "qwen_2_5_vl", "qwen_3_vl_moe"])
def test_a_sweep_is_answered_as_planned(family: str, gpus: int, place: Place, tmp_path: Path) -> None:
    words = ASKED
    if family != "tiny":  # the tiny model alone is compiled, as models are by default
        build(family, tmp_path / "model")
        words = [*ASKED, *FAMILY, EAGER, f"model.tiny.source={tmp_path / 'model'}"]
    place.sweep(*words)
    check(place)


def test_tensor_parallel_changes_no_key(gpus: int, place: Place) -> None:
    if gpus < 2:
        pytest.skip("needs two GPUs")
    place.sweep(*ASKED, EAGER)
    before = place.completions().num_rows
    place.sweep(*ASKED, EAGER, "+model.tiny.tensor_parallel=2", "subtask=[]", "budget=[16]", "name=parallel")
    assert len(list((place.root / "store" / "completions").iterdir())) == 1
    after = place.completions()
    assert after.num_rows > before
    assert set(after["status"].to_pylist()) == {"ok"}


def test_an_engine_that_died_or_was_closed_starts_again_and_replies_alike(gpus: int, tmp_path: Path) -> None:
    build("idefics3", tmp_path / "model")
    command = [sys.executable, "-m", "tests.gpu.restart", str(tmp_path / "model")]
    assert "3 equal replies" in printed_by(command, ROOT)


def test_a_lack_of_memory_is_named_with_its_remedy(gpus: int, place: Place) -> None:
    printed = place.sweep(*ASKED, EAGER, LITTLE, expect=1)
    assert "memory" in printed.lower()
    assert "gpu_memory_utilization" in printed
    assert "Traceback" not in printed
