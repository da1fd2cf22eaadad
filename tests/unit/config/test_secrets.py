"""Keys and passwords in a configuration: refused, and repeated by no message."""

import pytest

from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import without_credentials
from cardiolens.commands.command import run_verb
from cardiolens.inference.engine.http.transport import check_access
from tests.unit.config.test_http_spec import sweep

SECRET = "Tr0ub4dor-and-3"
KEY = "sk-proj-0123456789abcdef"
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
    assert run_verb(lambda spec: 0, ["model=[served]", word]) == 2
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
