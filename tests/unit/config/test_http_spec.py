"""What a model behind HTTP may be configured as, and what it is known by."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.arms import arms
from cardiolens.config.compose import read_spec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import identify
from cardiolens.storage.places import run_of

SERVED = {"base_url": "http://127.0.0.1:8000/v1", "api_model": "some-model"}
KEY = "sk-proj-0123456789abcdef"


def model(**http: Any) -> ModelSpec:
    return ModelSpec.model_validate(
        {"name": "m", "engine": "http", "revision": "2026-01", "http": SERVED | http}
    )


def sweep(*words: str) -> SweepSpec:
    return read_spec(["model=[served]", *words])


def test_the_shipped_example_is_legal() -> None:
    (served,) = sweep().model
    assert served.served.host == "127.0.0.1"
    assert not served.simulated
    assert served.answers_from == "images"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("+model.served.http.api_key_env=" + KEY, "never the key itself"),
        ("+model.served.http.extra_body={user:somebody}", "may not hold user"),
        ("model.served.revision=null", "an http model needs revision"),
        ("+model.served.replicas=2", "raise max_num_seqs"),
        ("model.served.engine=vllm", "engine: http needs http"),
    ],
)
def test_what_cannot_be_used_is_refused(word: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        sweep(word)
    assert KEY not in str(refused.value)


def test_structured_decoding_must_be_declared() -> None:
    with pytest.raises(InputError, match="needs structured decoding, which served is not known to have"):
        sweep("answer_format=choice", "model.served.http.dialect=openai")
    assert sweep("answer_format=choice").answer_format == "choice"


def test_a_budget_in_tokens_needs_known_image_tokens() -> None:
    with pytest.raises(InputError, match="served declares no image_tokens"):
        sweep("budget=[tokens:512]", "model.served.source=''")
    assert sweep("budget=[tokens:512]", "model.served.source=''", "+model.served.image_tokens=256")


def test_where_a_model_is_served_changes_nothing_of_what_is_asked(tmp_path: Path) -> None:
    elsewhere = sweep(
        "model.served.http.base_url=https://api.example.org/v1",
        "+model.served.http.max_tokens_total=1",
    )
    assert run_of(elsewhere) == run_of(sweep())
    assert [arm.arm_id for arm in arms(elsewhere)] == [arm.arm_id for arm in arms(sweep())]
    keys = {identify(model(**http), tmp_path).model_key for http in ({}, {"base_url": "https://other/v1"})}
    assert len(keys) == 1


@pytest.mark.parametrize(
    "other",
    [{"api_model": "another"}, {"extra_body": {"reasoning_effort": "low"}}, {"dialect": "reasoning"}],
)
def test_what_decides_the_answer_is_part_of_the_key(other: dict[str, Any], tmp_path: Path) -> None:
    identity = identify(model(**other), tmp_path)
    assert identity.model_key != identify(model(), tmp_path).model_key
    assert identity.facts["pinned"] is False


def test_answers_are_shared_only_where_sampling_can_be_sent() -> None:
    assert model().determined
    assert not model(dialect="reasoning").determined


def test_a_changed_default_gives_another_arm_id() -> None:
    class Later(ModelSpec):
        long_side: int = 336

    (arm, *_) = arms(sweep())
    tree = arm.model.model_dump(exclude={"long_side"})
    same, later = ModelSpec(**tree, long_side=arm.model.long_side), Later(**tree)
    assert replace(arm, model=same).arm_id == arm.arm_id != replace(arm, model=later).arm_id
