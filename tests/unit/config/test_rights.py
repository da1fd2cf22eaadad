"""Who may let code in and data out: the command line and the user's own `conf/`, and nobody else's."""

import os
import shutil
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.commands.command import run_verb
from cardiolens.config.compose import read_spec
from cardiolens.config.conf_names import packaged_conf
from cardiolens.config.rights import rights
from cardiolens.config.sweep import SweepSpec

CODE = "theirs:\n  engine: vllm\n  source: embedded\n  trust_remote_code: true\n"
OUT = (
    "theirs:\n  engine: http\n  revision: r\n  image_tokens: 64\n  http:\n"
    "    base_url: https://away.example/v1\n    api_model: m\n    allow_external: true\n"
)
LOADS = "theirs:\n  engine: vllm\n  source: embedded\n  engine_options: {worker_cls: theirs.Worker}\n"
LOGS = "theirs:\n  engine: vllm\n  source: embedded\n  engine_options: {log_config_file: x.json}\n"
RIGHTS = {
    "trust_remote_code": (CODE, "model.theirs.trust_remote_code", "true"),
    "allow_external": (OUT, "model.theirs.http.allow_external", "true"),
    "a class for the engine": (LOADS, "model.theirs.engine_options.worker_cls", "theirs.Worker"),
    "a logging configuration": (LOGS, "model.theirs.engine_options.log_config_file", "x.json"),
}


@pytest.fixture(params=RIGHTS.values(), ids=RIGHTS)
def right(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A model file with a right in `conf/` of the working folder: the option and its value."""
    monkeypatch.chdir(tmp_path)
    content, option, value = request.param
    write("model/theirs.yaml", f"# @package model\n{content}")
    return option, value


def write(name: str, text: str, folder: str = "conf") -> Path:
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def below_release(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder within a release."""
    (folder / "release.json").write_text("{}")
    (folder / "more").mkdir()
    monkeypatch.chdir(folder / "more")


def read(*words: str) -> SweepSpec:
    return read_spec(["model=[theirs]", *words])


def test_the_users_own_conf_gives_a_right(right: tuple[str, str]) -> None:
    assert [option for option, _ in rights(read())] == [right[0]]


def test_a_packaged_file_gives_a_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert dict(rights(read_spec(["model=[kimi_vl_a3b]"]))) == {"model.kimi_vl_a3b.trust_remote_code": True}


def refused_then_given(right: tuple[str, str], said: str, *words: str) -> None:
    option, value = right
    with pytest.raises(InputError, match=f"{option}: lets code in or data out, and .*{said}.*command line"):
        read(*words)
    assert [name for name, _ in rights(read(f"{option}={value}", *words))] == [option]


def test_a_folder_within_a_release_gives_none(
    right: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("release.json").write_text("{}")
    (tmp_path / "more").mkdir()
    Path("conf").rename("more/conf")
    monkeypatch.chdir(tmp_path / "more")
    refused_then_given(right, "release.json")


def test_the_conf_of_a_release_is_not_read_at_all(right: tuple[str, str]) -> None:
    Path("release.json").write_text("{}")
    with pytest.raises(InputError, match="theirs: unknown model"):
        read()


def test_a_link_into_a_release_gives_none(right: tuple[str, str], tmp_path: Path) -> None:
    theirs = tmp_path / "downloaded"
    theirs.mkdir()
    (theirs / "release.json").write_text("{}")
    Path("conf/model/theirs.yaml").rename(theirs / "theirs.yaml")
    Path("conf/model/theirs.yaml").symlink_to(theirs / "theirs.yaml")
    refused_then_given(right, "downloaded")


def test_a_file_of_another_account_gives_none(
    right: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Path("conf/model/theirs.yaml").resolve()
    monkeypatch.setattr(
        "cardiolens.config.rights._owner", lambda path: 4711 if path == theirs else os.getuid()
    )
    refused_then_given(right, "belongs to another account")


@pytest.mark.full
@pytest.mark.parametrize("word", ["--config-dir={}", "hydra.searchpath=[file://{}]"])
def test_a_folder_named_by_its_path_gives_none(
    right: tuple[str, str], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree("conf", "elsewhere")
    words = ["--config-name=sweep", word.format(tmp_path / "elsewhere"), "model=[theirs]"]
    assert run_verb(lambda _: 0, words) == 2
    assert (
        f"{right[0]}: lets code in or data out, and files of {tmp_path}/elsewhere" in capsys.readouterr().err
    )
    assert run_verb(lambda _: 0, [*words, "=".join(right)]) == 0


def test_a_model_file_is_not_named_by_its_path(right: tuple[str, str], tmp_path: Path) -> None:
    for path in (f"{tmp_path}/conf/model/theirs", f"{tmp_path}/conf/model/theirs.yaml", "../model/theirs"):
        with pytest.raises(InputError, match=r"holds no config\.json"):
            read_spec([f"model=['{path}']"])


def test_a_foreign_experiment_leads_no_trusted_model_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below_release(tmp_path, monkeypatch)
    write("experiment/x.yaml", "# @package _global_\nmodel: {kimi_vl_a3b: {source: evil/repository}}\n")
    with pytest.raises(InputError, match=r"model\.kimi_vl_a3b\.trust_remote_code: lets code in"):
        read_spec(["model=[kimi_vl_a3b]", "+experiment=x"])


OTHERS = {
    "tracker.mode": ["tracker=wandb", "tracker.mode=online"],
    "cluster.setup": ["cluster=slurm", "cluster.setup=['module load cuda','a \"b\" c']"],
    "cluster.python": ["cluster=slurm", "cluster.python=./run"],
    "cluster.sbatch": ["cluster=slurm", "cluster.sbatch=['--wrap=x']"],
    "cluster.address": ["cluster=ray", "cluster.address=10.0.0.1:6379"],
}


@pytest.mark.parametrize("words", OTHERS.values(), ids=OTHERS)
def test_a_file_of_a_release_gives_no_other_right(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice, given = words
    option, _, value = given.partition("=")
    package, _, name = option.partition(".")
    below_release(tmp_path, monkeypatch)
    write("experiment/x.yaml", f"# @package {package}\n{name}: {value}\n")
    with pytest.raises(InputError, match=f"{option}: lets code in or data out"):
        read_spec([choice, "+experiment=x"])
    assert dict(rights(read_spec([*words, "+experiment=x"])))[option]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("experiment/x.yaml", "# @package _global_\nhydra: {callbacks: {a: {_target_: os.abort}}}\n"),
        ("experiment/x.yaml", "# @package hydra.callbacks\na: {_target_: os.abort}\n"),
        ("experiment/x.yaml", "# @package _global_\ndefaults:\n  - override /hydra/launcher: theirs\n"),
        ("hydra/job_logging/default.yaml", "version: 1\nhandlers: {a: {(): os.abort}}\n"),
        ("sweep.yaml", "hydra: {launcher: {_target_: os.abort}}\n"),
    ],
)
def test_files_of_others_do_not_configure_hydra(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below_release(tmp_path, monkeypatch)
    write(name, text)
    with pytest.raises(InputError, match=r"configures Hydra.*release\.json"):
        read_spec(["model=[oracle]"])


def test_our_own_sweep_file_below_a_release_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below_release(tmp_path, monkeypatch)
    write("sweep.yaml", (packaged_conf() / "sweep.yaml").read_text())
    assert read_spec(["model=[oracle]"]).model[0].name == "oracle"
