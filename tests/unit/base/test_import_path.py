"""No module of the working folder runs in a command of ours, nor in the processes that it starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(sys.executable).with_name("cardiolens")
SHADOWS = [
    *("yaml", "numpy", "pydantic", "hydra", "omegaconf", "ray", "vllm", "json", "pydicom", "torch"),
    *("pathlib", "ipaddress", "urllib", "fnmatch", "logging", "dataclasses"),
]
VERBS = {
    "": (),
    "release": ("verify=.",),
    "sweep": ("mode=plan", "budget=[0]"),
    "ingest": ("source=missing", "out=out"),
    "review": ("add", "reader=r1"),
}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with modules that write their names to `ran` when they are imported."""
    folder = tmp_path / "release"
    folder.mkdir()
    for name in SHADOWS:
        text = f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + chr(10))\nraise SystemExit(0)\n"
        (folder / f"{name}.py").write_text(text)
    return folder


def run(*words: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with this checkout as if it were installed."""
    ours = ("CARDIOLENS", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment = kept | {"PYTHONPATH": str(ROOT)} | more
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_imports_nothing_from_the_working_folder(hostile: Path, verb: str) -> None:
    done = run("-m", f"cardiolens.{verb}".rstrip("."), *VERBS[verb], folder=hostile)
    assert not (hostile.parent / "ran").exists()
    assert "Traceback" not in done.stderr
    assert done.returncode == (2 if verb else 0), done.stderr


def test_switches_of_python_before_the_module_change_nothing(hostile: Path) -> None:
    run("-W", "ignore", "-uBm", "cardiolens.release", "verify=.", folder=hostile)
    assert not (hostile.parent / "ran").exists()


def test_processes_of_a_command_drop_the_folder_too(hostile: Path) -> None:
    """A worker of Ray is told the folder of its driver, and puts it first."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import cardiolens; print(sys.argv[1] in sys.path)"
    done = run("-c", code, str(hostile), folder=ROOT, CARDIOLENS_WORKING_FOLDER=str(hostile))
    assert done.stdout.split() == ["False"]


@pytest.mark.skipif(not SCRIPT.is_file(), reason="the package is not installed")
def test_the_installed_command_runs_no_package_of_its_own_name(hostile: Path) -> None:
    """`python -m cardiolens.release` would: Python finds the folder's package before any of our code."""
    (hostile / "cardiolens").mkdir()
    for name in ("cardiolens/__init__.py", "cardiolens/release.py", "functools.py", "runpy.py"):
        (hostile / name).write_text((hostile / "yaml.py").read_text())
    done = run(str(SCRIPT), "release", "verify=.", folder=hostile)
    assert not (hostile.parent / "ran").exists()
    assert done.returncode == 2
    assert done.stderr.startswith("error: verify=.: is no release")


@pytest.mark.ray
def test_workers_of_ray_import_nothing_from_the_working_folder(hostile: Path) -> None:
    """A worker imports NumPy, pandas and pyarrow before any module of ours."""
    for name in ("pandas", "pyarrow", "PIL", "scipy", "functools"):
        (hostile / f"{name}.py").write_text((hostile / "numpy.py").read_text().replace("numpy", name))
    code = (
        "import sys; sys.argv[0] = 'cardiolens'; import cardiolens, ray; "
        "from cardiolens.config.cluster import ClusterSpec; "
        "from cardiolens.runtime.connect import ray_cluster\n"
        "with ray_cluster(ClusterSpec()):\n    print(len(ray.data.range(4).map(lambda row: row).take_all()))"
    )
    done = run("-P", "-c", code, folder=hostile)
    assert done.stdout.split() == ["4"], done.stderr
    assert not (hostile.parent / "ran").exists()


def test_the_path_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "analysis.py").write_text("import cardiolens\nimport helper\nprint(helper.VALUE)\n")
    (tmp_path / "helper.py").write_text("VALUE = 7\n")
    assert run("analysis.py", folder=tmp_path).stdout.split() == ["7"]


def test_a_folder_that_the_user_names_in_pythonpath_stays(tmp_path: Path) -> None:
    code = "import sys; sys.argv[0] = 'cardiolens'; import cardiolens; print(sys.argv[1] in sys.path)"
    named = f"{ROOT}{os.pathsep}{tmp_path}"
    done = run("-c", code, str(tmp_path), folder=tmp_path, PYTHONPATH=named)
    assert done.stdout.split() == ["True"]
