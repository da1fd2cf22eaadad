"""Sweeps that cannot be: refused by name before anything is planned or loaded."""

from typing import Any

import pytest
from small_cohort import reader, sweep_spec

from cardiolens.base.errors import InputError
from cardiolens.inference.engine.readers import check_readers
from tests.unit.asked import served

STANDARD = {"name": "standard", "style": "standard", "max_tokens": 64}
VIDEO = STANDARD | {"name": "video", "cine": "video"}
TWO = STANDARD | {"name": "two", "shots": 2}
SAMPLES = STANDARD | {"name": "samples", "samples": 3}
SELF = {"name": "self", "kind": "self"}
VLLM = {"name": "m", "engine": "vllm", "source": "hub/m"}
LLAVA = {
    **{"architecture": "LlavaForConditionalGeneration", "field": "general", "licence": "x", "context": 1},
    **{"thinking": "never", "image_rule": "x", "verified": "none", "note": "x"},
}
PERSON = {"name": "one", "engine": "person", "source": "x"}
FAR = served(dialect="reasoning").model_dump() | {"name": "far"}
NESTED = {"name": "n", "kind": "clinical", "order": "nested"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": [VLLM | {"card": LLAVA}], "prompt": [STANDARD, VIDEO]}, "of LlavaFor.*videos are sent to"),
    ({"model": [served().model_dump()], "prompt": [STANDARD, VIDEO]}, "coded with loss .*engine: vllm"),
    ({"model": [VLLM], "prompt": [STANDARD | {"cine": "video"}]}, "headlines are asked with standard"),
    ({"model": [VLLM], "prompt": [VIDEO], "selector": [NESTED]}, "selector n parts the phases .*leave one"),
    ({"prompt": [STANDARD | {"shots": 2}]}, "shows .*headlines are asked with standard alone"),
    ({"prompt": [TWO], "selector": [SELF]}, "the reader chooses its frames"),
    ({"prompt": [SAMPLES | {"steps": "self"}]}, "samples 3 go with a single request"),
    (
        {"prompt": [SAMPLES], "selector": [SELF]},
        "asks for 3 samples, and .* the reader chooses its frames",
    ),
    ({"prompt": [SAMPLES], "model": [PERSON]}, "one is a person"),
    ({"prompt": [SAMPLES], "model": [FAR]}, "far has http.dialect: reasoning"),
    ({"selector": [SELF], "control": ["none", "blind"]}, "control blind does not show the chosen frames"),
    ({"selector": [SELF | {"order": "nested"}]}, "leave out order"),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED)
def test_a_sweep_that_cannot_be_is_refused(changes: dict[str, Any], said: str, tmp_path) -> None:
    with pytest.raises(InputError, match=said):
        check_readers(sweep_spec(tmp_path, **({"model": [reader("uniform")]} | changes)))
