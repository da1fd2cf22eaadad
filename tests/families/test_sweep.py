"""Tiny models of the families with random weights, through the whole sweep with real vLLM on CPU."""

import os
from pathlib import Path

import pyarrow.compute as pc
import pytest

from cardiolens.storage import schemas, tables
from tests.families.build import BUILDERS, build
from tests.families.families import FAMILIES
from tests.families.processing import PROCESSED
from tests.ray.conftest import Place, place, prepared  # noqa: F401

pytestmark = [pytest.mark.ray, pytest.mark.slow]

WORDS = [
    "name=family",
    "model=[tiny]",
    "selector=[clinical]",
    "budget=[3]",
    "subtask=[C10,L01]",
    "limit=1",
    "tracker=none",
    "+model.tiny.load_format=dummy",
    "+model.tiny.weight_gib=0.1",
    "model.tiny.max_model_len=16384",
    "model.tiny.max_num_seqs=2",
    "model.tiny.max_tokens.standard=4",
]


@pytest.mark.parametrize("family", [name for name in PROCESSED if name in BUILDERS])
def test_a_tiny_model_answers_every_request(family: str, place: Place, tmp_path: Path):  # noqa: F811
    build(family, tmp_path / "model")
    options = ",".join(f"{name}: {str(value).lower()}" for name, value in FAMILIES[family].options.items())
    words = [*WORDS, f"model.tiny.source={tmp_path / 'model'}", f"+model.tiny.template_options={{{options}}}"]
    if family == "idefics3":  # the embedded model has no more positions
        words.append("model.tiny.max_model_len=8192")
    place.sweep(*words, PYTHONPATH=os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")]))
    answered = place.completions()
    requests = tables.read(place.run / "requests" / "tiny", schemas.REQUESTS)
    assert answered.num_rows == pc.count_distinct(requests["request_key"]).as_py() > 0
    assert set(answered["status"].to_pylist()) == {"ok"}
    predicted = dict(
        zip(*(requests[name].to_pylist() for name in ("request_key", "predicted_tokens")), strict=True)
    )
    counted = dict(
        zip(*(answered[name].to_pylist() for name in ("request_key", "prompt_tokens")), strict=True)
    )
    assert counted == {key: predicted[key] for key in counted}
