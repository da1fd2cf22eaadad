"""The wheel is all a user needs: built, installed into a folder, run in an empty directory."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A reader of the user's own, and one that hides a packaged reader of the same name.
OWN = "mine:\n  engine: constant\n  options: {answer: B}\n"
HIDING = "uniform:\n  engine: uniform\n  options: {seed: 7}\n"
SMALL = ["dataset.phantom.canonical=[PH-NORMAL]", "dataset.phantom.n_sampled=0", "budget=[8]", "tracker=none"]


def run(command: list[str], **options: object) -> str:
    """What a command prints; its output is shown where it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)])
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The environment of a process that imports cardiolens from the wheel."""
    site = tmp_path_factory.mktemp("site")
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--target",
            str(site),
            str(wheel),
        ]
    )
    return {**os.environ, "PYTHONPATH": str(site)}


@pytest.fixture
def empty(tmp_path):
    """An empty directory but for a `conf/` of the user's own."""
    models = tmp_path / "conf" / "model"
    models.mkdir(parents=True)
    (models / "mine.yaml").write_text(OWN)
    (models / "uniform.yaml").write_text(HIDING)
    return tmp_path


def sources() -> set[str]:
    """Every file that git knows, or would take, below the folders that ship, under its name in the wheel."""
    shipped = {
        "cardiolens/": "cardiolens/",
        "conf/": "cardiolens/conf/",
        "slurm/": "cardiolens/slurm/",
    }
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *shipped], cwd=ROOT)
    names = [name for name in listed.splitlines() if (ROOT / name).exists()]
    folders = [f"{name.partition('/')[0]}/" for name in names]
    return {shipped[top] + name.removeprefix(top) for top, name in zip(folders, names, strict=True)}


def test_wheel_holds_every_module_and_data_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == sources()


def test_a_wheel_says_what_it_was_built_of(wheel, installed, empty):
    number = wheel.name.split("-")[1]
    assert number == run([sys.executable, str(ROOT / "requirements" / "version.py")]).strip()
    said = run([sys.executable, "-m", "cardiolens", "--version"], cwd=empty, env=installed)
    assert said == f"cardiolens {number}\n"


def test_user_configuration_is_found_before_the_packaged_one(installed, empty):
    code = (
        "import cardiolens, sys; from cardiolens.config.compose import read_spec;"
        "print(cardiolens.__file__); [print(m.model_dump_json()) for m in read_spec(sys.argv[1:]).model]"
    )
    printed = run([sys.executable, "-c", code, "model=[uniform,oracle]"], cwd=empty, env=installed)
    place, uniform, oracle = printed.splitlines()
    assert Path(place).is_relative_to(installed["PYTHONPATH"])
    assert json.loads(uniform)["options"] == {"seed": 7}
    assert json.loads(oracle)["engine"] == "oracle"


@pytest.mark.ray
@pytest.mark.long
def test_sweep_runs_from_the_wheel_in_an_empty_directory(installed, empty):
    command = [sys.executable, "-m", "cardiolens.sweep", "+experiment=demo", "model=[oracle,mine]", *SMALL]
    printed = run(command, cwd=empty, env=installed)
    folder = empty / printed.splitlines()[-1].removeprefix("run: ")
    manifest = json.loads((folder / "manifest.json").read_text())
    requests = manifest["requests"]
    assert requests["executed"] == requests["unique"] > 0
    assert requests["error"] == 0
    assert {part.name for part in folder.joinpath("requests").iterdir()} == {"oracle", "mine"}
