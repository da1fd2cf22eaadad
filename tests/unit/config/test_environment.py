"""Environment variables in a configuration: only those that the words name, and no value written."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from cardiolens.base import sanitize
from cardiolens.base.errors import InputError
from cardiolens.commands.command import run_verb
from cardiolens.config.arms import arms
from cardiolens.config.compose import read_ingest_spec, read_spec, spec_of_document
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import identify
from cardiolens.storage import documents
from cardiolens.storage.places import run_of
from cardiolens.workflow.steps.run_manifest import _shown

SECRET = "wJalrXUtnFEMI-K7MDENG"
URL = f"https://gateway-{SECRET.lower()}.example/v1/"
ENTRY = """# @package model
theirs:
  engine: http
  revision: {revision}
  max_model_len: 4096
  image_tokens: 64
  http:
    base_url: {base_url}
    api_model: m
    extra_body: {extra_body}
"""
GOOD = {"revision": "r", "base_url": "http://127.0.0.1:1/v1", "extra_body": "{}"}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("GATEWAY", URL)
    monkeypatch.delenv("ABSENT", raising=False)
    kept = dict(sanitize._HIDDEN)
    yield
    sanitize._HIDDEN.clear()
    sanitize._HIDDEN.update(kept)


def write_model(**fields: str) -> None:
    """A model file of somebody else, in the user's own `conf/`."""
    folder = Path("conf/model")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "theirs.yaml").write_text(ENTRY.format(**(GOOD | fields)))


def spec(*words: str) -> SweepSpec:
    return read_spec(["model=[theirs]", *words])


TRIES = {
    "the address": {"base_url": "http://127.0.0.1/${oc.env:AWS_SECRET_ACCESS_KEY}"},
    "a field of the body": {"extra_body": "{more: {deep: ['${oc.env:AWS_SECRET_ACCESS_KEY}']}}"},
    "the revision": {"revision": "${oc.env:AWS_SECRET_ACCESS_KEY}"},
    "a default": {"revision": "${oc.env:AWS_SECRET_ACCESS_KEY,none}"},
    "spaces": {"revision": "'${ oc.env : AWS_SECRET_ACCESS_KEY }'"},
    "decoded": {"revision": "${oc.decode:${oc.env:AWS_SECRET_ACCESS_KEY}}"},
    "a text that becomes code": {"revision": "'${oc.decode:\"\\${oc.env:AWS_SECRET_ACCESS_KEY}\"}'"},
    "created": {"extra_body": '{a: "${oc.create:\'{b: \\"${oc.env:AWS_SECRET_ACCESS_KEY}\\"}\'}"}'},
    "by way of another field": {
        "revision": "${model.theirs.http.extra_body.a}",
        "extra_body": "{a: '${oc.env:AWS_SECRET_ACCESS_KEY}'}",
    },
    "a name that is put together": {"revision": "${oc.env:AWS_SECRET_${name}}"},
    "a name that another variable holds": {"revision": "${oc.env:${oc.env:AWS_SECRET_ACCESS_KEY}}"},
    "a key that another variable holds": {"revision": "${${oc.env:AWS_SECRET_ACCESS_KEY}}"},
}


@pytest.mark.parametrize("fields", TRIES.values(), ids=TRIES)
@pytest.mark.parametrize("more", [(), ("--cfg=job", "--resolve")], ids=["plain", "through Hydra"])
def test_no_file_reads_the_environment(
    fields: dict[str, str], more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    write_model(**fields)
    # through Hydra, which prints the configuration instead of running the verb
    assert run_verb(lambda _: 0, ["model=[theirs]", *more]) == 2
    said = capsys.readouterr()
    assert SECRET not in said.err + said.out
    assert more or "model.theirs." in said.err
    assert "theirs.yaml" in said.err or "put together" in str(fields) or "AWS_SECRET_$" in str(fields)
    assert "allow_env=[" in said.err


def test_hydra_prints_the_text_of_an_allowed_variable(capsys: pytest.CaptureFixture[str]) -> None:
    write_model(revision="${oc.env:AWS_SECRET_ACCESS_KEY}")
    words = ["model=[theirs]", "allow_env=[AWS_SECRET_ACCESS_KEY]"]
    run_verb(lambda _: 0, [*words, "--cfg=job", "--resolve"])
    said = capsys.readouterr()
    assert "revision: ${oc.env:AWS_SECRET_ACCESS_KEY}" in said.out
    assert SECRET not in said.out + said.err
    seen: list[SweepSpec] = []
    assert run_verb(lambda spec: seen.append(spec) or 0, [*words, "--config-name=sweep"]) == 0
    assert seen[0].model[0].revision == SECRET
    assert not [*Path().glob("*.log")]  # Hydra sets up no logging: it would close handlers of this process


def test_no_word_reads_the_environment_either() -> None:
    for word in ("+model.tiny.revision", "store", "name"):
        with pytest.raises(InputError, match="environment variable AWS_SECRET_ACCESS_KEY") as refused:
            read_spec([f"{word}=${{oc.env:AWS_SECRET_ACCESS_KEY}}"])
        assert SECRET not in str(refused.value)
    with pytest.raises(InputError, match="environment variable AWS_SECRET_ACCESS_KEY"):
        read_ingest_spec(["source=${oc.env:AWS_SECRET_ACCESS_KEY}", "out=x"])


@pytest.mark.parametrize("resolver", ["hydra:runtime.cwd", "their_own:1"])
def test_other_resolvers_are_refused_by_their_names(resolver: str) -> None:
    OmegaConf.register_new_resolver("their_own", lambda _: SECRET, replace=True)
    try:
        write_model(revision=f"${{{resolver}}}")
        with pytest.raises(InputError, match=f"uses the resolver {resolver.partition(':')[0]}.*theirs.yaml"):
            spec()
    finally:
        OmegaConf.clear_resolver("their_own")


def test_resolvers_of_our_own_files_work_and_others_find_theirs_unchanged() -> None:
    made = read_spec(["dataset=medthinkvqa", "dataset.source=/x", "model=[uniform]"])
    assert str(made.dataset.questions) == "stores/medthinkvqa_test/medthinkvqa.jsonl"
    write_model(revision="${oc.decode:'r${now:%Y}'}", base_url="${oc.select:none,'http://127.0.0.1/v1'}")
    assert str(spec().model[0].revision).startswith("r2")
    assert OmegaConf.create({"a": "${oc.env:AWS_SECRET_ACCESS_KEY}"}).a == SECRET


ALLOWED = "allow_env=[AWS_SECRET_ACCESS_KEY,GATEWAY]"


def allowed_spec() -> SweepSpec:
    write_model(
        revision="r-${oc.env:AWS_SECRET_ACCESS_KEY}",
        base_url="${oc.env:GATEWAY}",
        extra_body="{a: {b: ['x ${oc.env:AWS_SECRET_ACCESS_KEY}']}, c: '${oc.env:ABSENT,low}'}",
    )
    return spec(ALLOWED.replace("]", ",ABSENT]"))


def test_an_allowed_variable_is_used_and_never_written() -> None:
    made = allowed_spec()
    (model,) = made.model
    assert model.revision == f"r-{SECRET}"
    assert model.served.base_url == URL.rstrip("/")
    assert model.served.extra_body == {"a": {"b": [f"x {SECRET}"]}, "c": "low"}
    documents.write_configuration(run_of(made), made)
    written = run_of(made).configuration.read_text()
    facts = json.dumps(_shown({"models": identify(model, Path("cache")).facts}))
    dumped = str(model.model_dump()) + str(model.served.model_dump(mode="json"))
    for text in (written, facts, dumped, model.served.address, model.served.shown_host):
        assert SECRET.lower() not in text.lower()
        assert "${oc.env:" in text
    assert json.loads(written)["model"][0]["http"]["extra_body"]["a"]["b"] == [
        "x ${oc.env:AWS_SECRET_ACCESS_KEY}"
    ]
    assert sanitize.without_credentials(f"asked at {URL} with {SECRET}") == (
        "asked at ${oc.env:GATEWAY} with ${oc.env:AWS_SECRET_ACCESS_KEY}"
    )


def test_a_worker_hides_the_values_that_its_driver_hides() -> None:
    stored = pickle.dumps(allowed_spec().model[0])
    sanitize._HIDDEN.clear()
    model = pickle.loads(stored)
    assert model.revision == f"r-{SECRET}"
    assert SECRET not in str(model.model_dump())
    assert sanitize.hidden_values()
    assert SECRET not in sanitize.without_hidden(f"the server at {model.served.host} said {SECRET}")


def test_a_job_of_the_run_has_the_values_again_and_a_reader_of_it_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = allowed_spec()
    run = run_of(made)
    documents.write_configuration(run, made)
    again = documents.as_written(run, with_environment=True)
    assert again.model_dump() == made.model_dump()
    assert identify(again.model[0], Path("c")).model_key == identify(made.model[0], Path("c")).model_key
    assert [arm.arm_id for arm in arms(again)] == [arm.arm_id for arm in arms(made)]
    assert run_of(again) == run
    read = documents.read_configuration(run)
    assert SECRET not in str(read) + repr(read.model[0].served.base_url)
    assert read.model_dump()["model"] == made.model_dump()["model"]
    assert documents.as_written(run).model_dump() == made.model_dump()
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(InputError, match="AWS_SECRET_ACCESS_KEY, which is not set"):
        documents.as_written(run, with_environment=True)


def test_a_run_of_somebody_else_takes_no_variable_that_it_does_not_say_it_takes() -> None:
    tree = json.loads(allowed_spec().model_dump_json())
    tree["allow_env"] = ["GATEWAY"]
    assert spec_of_document(tree).model[0].revision == "r-${oc.env:AWS_SECRET_ACCESS_KEY}"


@pytest.mark.parametrize(
    ("fields", "words", "said"),
    [
        ({}, ["allow_env=[GATEWAY]", "store='${oc.env:GATEWAY}'"], r'store: .*let the shell.*="\$GATEWAY"'),
        ({}, ["allow_env=[ABSENT]", "model.theirs.revision='${oc.env:ABSENT}'"], "ABSENT, which is not set"),
        ({}, ["allow_env=[sk-123456789abcdef]"], "no name of an environment variable"),
        ({"revision": "${oc.decode:${oc.env:GATEWAY}}"}, ["allow_env=[GATEWAY]"], "lets oc.decode parse"),
        ({"extra_body": "{a: '${oc.create:${oc.env:GATEWAY}}'}"}, ["allow_env=[GATEWAY]"], "lets oc.create"),
    ],
)
def test_what_an_allowed_variable_cannot_do(fields: dict[str, str], words: list[str], said: str) -> None:
    write_model(**fields)
    with pytest.raises(InputError, match=said) as refused:
        spec(*words)
    assert URL not in str(refused.value)


def test_a_number_from_a_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANY", "16384")
    write_model()
    with pytest.raises(InputError, match=r"model\.theirs\.max_model_len: takes no text"):
        spec("allow_env=[MANY]", "model.theirs.max_model_len='${oc.env:MANY}'")


@pytest.mark.parametrize("file", ["model/theirs.yaml", "experiment/theirs.yaml", "sweep.yaml"])
def test_a_file_allows_itself_nothing(file: str) -> None:
    write_model(revision="${oc.env:AWS_SECRET_ACCESS_KEY}")
    path = Path("conf") / file
    path.parent.mkdir(exist_ok=True)
    line = "allow_env: [AWS_SECRET_ACCESS_KEY]\n"
    if file == "model/theirs.yaml":
        path.write_text(
            "# @package _global_\n"
            + line
            + "model:\n"
            + ENTRY.format(**GOOD | {"revision": "${oc.env:AWS_SECRET_ACCESS_KEY}"})
            .partition("\n")[2]
            .replace("theirs:", "  theirs:")
            .replace("\n  ", "\n    ")
        )
    elif file == "sweep.yaml":
        text = (Path(__file__).parents[3] / "conf" / "sweep.yaml").read_text()
        path.write_text(text.replace("allow_env: []", line.strip()))
    else:
        path.write_text("# @package _global_\n" + line)
    words = ["+experiment=theirs"] if file.startswith("experiment") else []
    with pytest.raises(InputError, match="allow_env") as refused:
        spec(*words)
    assert SECRET not in str(refused.value)
