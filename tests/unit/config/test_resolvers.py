"""A configuration refers to its own options, and reads no environment, file or code."""

from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_ingest_spec, read_spec

SECRET = "wJalrXUtnFEMI-K7MDENG"
TRIES = {
    "a variable": "${oc.env:AWS_SECRET_ACCESS_KEY}",
    "a default": "${oc.env:AWS_SECRET_ACCESS_KEY,none}",
    "spaces": "'${ oc.env : AWS_SECRET_ACCESS_KEY }'",
    "decoded": "${oc.decode:${oc.env:AWS_SECRET_ACCESS_KEY}}",
    "a text that becomes code": "'${oc.decode:\"\\${oc.env:AWS_SECRET_ACCESS_KEY}\"}'",
    "behind an escaped backslash": "'\\\\${oc.env:AWS_SECRET_ACCESS_KEY}'",
    "a name that is put together": "${oc.env:AWS_SECRET_${name}}",
    "a resolver that is put together": "${oc.${name}:AWS_SECRET_ACCESS_KEY}",
    "a key that a variable holds": "${${oc.env:AWS_SECRET_ACCESS_KEY}}",
    "a field of a body": "{more: {deep: ['${oc.env:AWS_SECRET_ACCESS_KEY}']}}",
    "Hydra's own": "${hydra:runtime.cwd}",
}


@pytest.mark.parametrize("value", TRIES.values(), ids=TRIES)
def test_no_file_uses_a_resolver(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "model" / "theirs.yaml").write_text(
        "# @package model\ntheirs:\n  engine: http\n  revision: r\n  image_tokens: 64\n  http:\n"
        f"    base_url: http://127.0.0.1:1/v1\n    api_model: m\n    extra_body:\n      a: {value}\n"
    )
    with pytest.raises(InputError, match=r"model\.theirs\.http\.extra_body\.a.*let the shell") as refused:
        read_spec(["model=[theirs]"])
    assert SECRET not in str(refused.value)


def test_no_word_uses_one_either() -> None:
    for word in ("+model.tiny.revision", "store", "name"):
        with pytest.raises(InputError, match="reads no environment"):
            read_spec([f"{word}=${{oc.env:HOME}}"])
    with pytest.raises(InputError, match="reads no environment"):
        read_ingest_spec(["source=${oc.env:HOME}", "out=x"])


def test_an_option_may_refer_to_another() -> None:
    spec = read_spec(["dataset=medthinkvqa", "dataset.source=/x", "model=[uniform]"])
    assert str(spec.dataset.questions) == "stores/medthinkvqa_test/medthinkvqa.jsonl"
