"""What a model behind HTTP may be configured as, what it is known by, and keys that no message repeats."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import without_credentials
from cardiolens.commands.command import Action, verb
from cardiolens.config.compose import read_spec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import arms
from cardiolens.inference.engine.http.transport import check_access
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["+model.served.http.api_key_env=" + KEY], "never the key itself"),
        (["+model.served.http.extra_body={user:somebody}"], "may not hold user"),
        (["model.served.revision=null"], "an http model needs revision"),
        (["model.served.http.base_url=http://127.0.0.1:80000/v1"], "must be http"),
        (["model.served.http.base_url=http://host:v1"], "must be http"),
        (["+model.served.replicas=2"], "raise max_num_seqs"),
        (["+model.served.adapter=ours"], "adapter is for engine: vllm, and served has engine: http"),
        (
            ["+model.served.options={top_p: 1}"],
            "options are of simulated readers and plug-ins; served has",
        ),
        (["model.served.engine=vllm"], "engine: http needs http"),
        (
            ["answer_format=choice", "model.served.http.dialect=openai"],
            "needs structured decoding",
        ),
        (["budget=[tokens:512]", "model.served.source=''"], "served declares no image_tokens"),
    ],
)
def test_what_cannot_be_used_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        sweep(*words)
    assert KEY not in str(refused.value)


def test_structured_decoding_and_budgets_in_tokens_go_with_what_is_declared() -> None:
    assert sweep("answer_format=choice").answer_format == "choice"
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


SECRET = "Tr0ub4dor-and-3"
BODY = "+model.served.http.extra_body="

WORDS = {
    "a password in an address": f"model.served.http.base_url='https://me:{SECRET}@host/v1'",
    "a password and a wrong scheme": f"model.served.http.base_url='ftp://me:{SECRET}@host/v1'",
    "a query": f"model.served.http.base_url='https://host/v1?token={SECRET}'",
    "a key in the path": f"model.served.http.base_url=https://host/{KEY}/v1",
    "a field": BODY + f"{{api_key:{SECRET}}}",
    "a field within fields": BODY + f"{{provider:{{auth:{{access_token:{SECRET}}}}}}}",
    "a field in a list": BODY + f"{{providers:[{{password:{SECRET}}}]}}",
    "a header": BODY + f"{{headers:{{X-Api-Key:{SECRET}}}}}",
    "a bearer": BODY + f"{{anything:'Bearer {SECRET}'}}",
    "a value of a key's form": BODY + f"{{anything:[{{more:{KEY}}}]}}",
    "an address in a field": BODY + f"{{callback:'https://me:{SECRET}@host/'}}",
    "a name": BODY + f"{{{KEY}:1}}",
    "a field that there is not": f"+model.served.http.api_key={SECRET}",
    "a word that is none": BODY + f"{{api_key: {SECRET}",
    "a key as the model's name": f"model.served.http.api_model=[{SECRET}]",
}


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
def test_a_secret_in_the_configuration_is_refused_and_not_repeated(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verb("", None, Action(SweepSpec, lambda spec: 0))(["model=[served]", word]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert SECRET not in said.err + said.out
    assert KEY not in said.err + said.out


def test_what_is_no_secret_may_stand_there() -> None:
    told = "{reasoning_effort:low,max_thinking_tokens:8,provider:{order:[a,b]},token_budget:9,eos_token:x}"
    assert sweep(BODY + told).model[0].served.extra_body["token_budget"] == 9


def test_the_key_itself_is_found_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", SECRET)
    named = "+model.served.http.api_key_env=SOME_KEY"
    for word in (BODY + f"{{anything:x{SECRET}x}}", f"model.served.http.base_url=http://127.0.0.1/{SECRET}"):
        with pytest.raises(InputError, match="holds the key of SOME_KEY") as refused:
            check_access(sweep(named, word))
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize("key", ["a b", "a\nHost: other", "k\x00y", "clé", "k\x1b[2J"])
def test_a_key_that_no_header_can_hold_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"SOME_KEY": key}
    monkeypatch.setattr("cardiolens.inference.engine.http.transport.os.environ", environ)
    with pytest.raises(InputError, match="other characters that no key has") as refused:
        check_access(sweep("+model.served.http.api_key_env=SOME_KEY"))
    assert key not in str(refused.value)


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("see https://me:pw@host/x and http://host:80/y@z", "see https://host/x and http://host:80/y@z"),
        ("api_key=abcdef, api_key_env=OPENAI_API_KEY", "api_key=<key>, api_key_env=OPENAI_API_KEY"),
        ("'Authorization': 'Bearer abc'", "'Authorization': '<key>'"),
        ("key sk-0123456789 and risk-adjusted-outcomes", "key <key> and risk-adjusted-outcomes"),
        ("sk-learn-like hf_transfer_enabled", "sk-learn-like hf_transfer_enabled"),
        (f"hf_{'a1' * 17} eyJ{'a1' * 9}.{'b2' * 9}", "<key> <key>"),
    ],
)
def test_credentials_are_found_and_other_words_left(said: str, plain: str) -> None:
    assert without_credentials(said) == plain
