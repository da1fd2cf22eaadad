"""Tiny models of the families with random weights, through the whole sweep with real vLLM on CPU."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cardiolens.storage import schemas, tables
from tests.families.build import BUILDERS, build
from tests.families.families import FAMILIES
from tests.families.processing import PROCESSED
from tests.families.test_videos import TAKERS
from tests.ray.conftest import Place, place, prepared  # noqa: F401

pytestmark = [pytest.mark.ray, pytest.mark.long]

WORDS = [
    "name=family",
    "model=[tiny]",
    "selector=[clinical]",
    "budget=[3]",
    "subtask=[C10,L01]",
    "limit=1",
    "tracker=none",
    "+model.tiny.engine_options.load_format=dummy",
    "+model.tiny.weight_gib=0.1",
    "model.tiny.max_model_len=16384",
    "model.tiny.max_num_seqs=2",
    "model.tiny.max_tokens.standard=4",
]


@pytest.mark.parametrize("family", [name for name in PROCESSED if name in BUILDERS])
def test_a_tiny_model_answers_every_request(family: str, place: Place, tmp_path: Path):  # noqa: F811
    # it has no more positions
    more = ["model.tiny.max_model_len=8192"] if family == "idefics3" else []
    _check_answers(place, _swept(family, place, tmp_path / "model", *more))


@pytest.mark.parametrize("family", [name for name in TAKERS if name in PROCESSED])
def test_a_tiny_model_answers_every_request_with_videos(family: str, place: Place, tmp_path: Path):  # noqa: F811
    words = [
        "prompt=[standard,video]",
        "budget=[6]",
        "~model.tiny.card",
        "model.tiny.long_side=448",  # smaller frames and videos are enlarged otherwise
    ]
    requests = _swept(family, place, tmp_path / "model", *words)
    _check_answers(place, requests)
    rows = requests.sort_by([("qa_id", "ascending"), ("arm_id", "ascending")]).to_pylist()
    standard, video = ([row for row in rows if name in row["arm_id"]] for name in ("-standard-", "-video-"))
    assert {row["subtask"] for row in video if "video:1" in row["flags"]} == {"C10"}
    for alone, filmed in zip(standard, video, strict=True):
        assert alone["frames"] == filmed["frames"]
        assert (alone["request_key"] == filmed["request_key"]) == (alone["subtask"] == "L01")
        assert alone["predicted_tokens"] > filmed["predicted_tokens"] or alone["subtask"] == "L01"


def _swept(family: str, place: Place, folder: Path, *more: str) -> pa.Table:  # noqa: F811
    """Sweep with a tiny model of a family, and return its requests."""
    build(family, folder)
    options = ",".join(f"{name}: {str(value).lower()}" for name, value in FAMILIES[family].options.items())
    words = [*WORDS, f"model.tiny.source={folder}", f"+model.tiny.template_options={{{options}}}", *more]
    place.sweep(*words, PYTHONPATH=os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")]))
    return tables.read(place.run / "requests" / "tiny", schemas.REQUESTS)


def _check_answers(place: Place, requests: pa.Table) -> None:  # noqa: F811
    """Every distinct request is answered, with as many prompt tokens as were predicted."""
    answered = place.completions()
    assert answered.num_rows == pc.count_distinct(requests["request_key"]).as_py() > 0
    assert set(answered["status"].to_pylist()) == {"ok"}
    predicted = dict(
        zip(*(requests[name].to_pylist() for name in ("request_key", "predicted_tokens")), strict=True)
    )
    counted = dict(
        zip(*(answered[name].to_pylist() for name in ("request_key", "prompt_tokens")), strict=True)
    )
    assert counted == {key: predicted[key] for key in counted}
