"""Parts of other packages: the example is installed and runs; a bad one fails with its name."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from small_cohort import reader, requests_of, stored, sweep_spec, swept

from cardiolens.base.errors import InputError
from cardiolens.config import plugins
from cardiolens.config.compose import read_spec
from cardiolens.config.plugins import PluginError, plugins_of
from cardiolens.config.sweep import SweepSpec, parse
from cardiolens.config.sweep_factors import arms
from cardiolens.curation.ingest.conventions import convention
from cardiolens.inference.engine.readers import check_readers, open_engine
from cardiolens.inference.plan.frame_views import check_plugins, open_control
from cardiolens.inference.plan.plan import plan
from cardiolens.protocol.select.pool_selectors import open_selector
from cardiolens.score.verdicts.text_metrics import open_text_metrics
from cardiolens.storage import schemas, tables

PATIENTS = 2

ROOT = Path(__file__).resolve().parents[2]
EDGES = ROOT / "examples" / "edges"
BRIGHTNESS = {"name": "brightness", "engine": "cardiolens-edges.brightness", "long_side": 8}
SUBTASKS = ["C02", "C10", "R-LGE"]


@contextmanager
def on_path(folder: Path) -> Iterator[Path]:
    """What lies in a folder is installed, within the block."""

    def forget() -> None:
        for cached in (plugins.installed, open_selector, open_control):
            cached.cache_clear()
        for name in [name for name, module in sys.modules.items() if _lies_in(module, folder)]:
            del sys.modules[name]

    sys.path.insert(0, str(folder))
    forget()
    try:
        yield folder
    finally:
        forget()
        sys.path.remove(str(folder))


def _lies_in(module: object, folder: Path) -> bool:
    return str(getattr(module, "__file__", None) or "").startswith(str(folder))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, built and installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    words = ["install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *words, str(EDGES)], check=True)
    return folder


@pytest.fixture
def edges(site: Path) -> Iterator[Path]:
    with on_path(site):
        yield site


def package(folder: Path, code: str, version: str = "1.0", **groups: str) -> Path:
    """A package as an installer leaves it: a module, and what its metadata say."""
    folder.mkdir(exist_ok=True)
    (folder / "bad_parts.py").write_text(code)
    metadata = folder / f"bad_parts-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: Bad_Parts\nVersion: {version}\n")
    lines = [f"[cardiolens.{group}]\n{entries}\n" for group, entries in groups.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


def spec_with(root: Path, **changes: Any) -> SweepSpec:
    return sweep_spec(root, reader("uniform"), subtask=SUBTASKS, **changes)


def ends(**options: Any) -> list[dict[str, Any]]:
    return [{"name": "ends", "kind": "cardiolens-edges.ends", "options": options}]


def test_its_configuration_names_it_with_the_version(edges: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EDGES)
    words = ["model=[brightness,halting]", "selector=[ends]", "control=[none,backwards]"]
    spec = read_spec([*words, "statistics.report_metrics=[cardiolens-edges.length]"])
    check_plugins(spec)
    check_readers(spec)
    assert plugins_of(spec) == (
        ("selectors", "cardiolens-edges.ends@0.1.0"),
        ("controls", "cardiolens-edges.backwards@0.1.0"),
        ("engines", "cardiolens-edges.brightness@0.1.0"),
        ("readers", "cardiolens-edges.halting@0.1.0"),
        ("report_metrics", "cardiolens-edges.length@0.1.0"),
    )
    assert [model.answers_from for model in spec.model] == ["images", "truth"]
    assert parse(spec.model_dump(mode="json")) == spec


def test_a_selector_and_a_control_run_and_a_metric_scores(edges: Path, root: Path) -> None:
    control = "cardiolens-edges.backwards@0.1.0"
    spec = spec_with(
        root,
        selector=ends(first=0.25),
        control=["none", control],
        budget=[4],
        statistics={"min_n": 1, "resamples": 200, "report_metrics": ["cardiolens-edges.length"]},
    )
    planned, results = swept(spec)
    rows = requests_of(planned)
    frames = {(row["arm_id"], row["qa_id"]): row["frames"] for row in rows}
    plain, backwards = (arm.arm_id for arm in planned.arms)
    for (arm_id, qa_id), shown in frames.items():
        assert len(shown) == 4
        if arm_id == plain:
            assert frames[backwards, qa_id] == shown[::-1]
    sax = [frame for frame in rows[0]["frames"] if frame["volume_id"] == rows[0]["frames"][0]["volume_id"]]
    assert sax[0]["idx"] == 0, "the first quarter of the budget"
    metrics = {row["metric"] for row in results.scores.to_pylist()}
    assert "cardiolens-edges:length" in metrics
    compared = [row for row in results.comparisons.to_pylist() if row["factor"] == "control"]
    assert {row["versus"] for row in compared} == {control}


def test_an_engine_reads_pixels_and_a_reader_knows(edges: Path, root: Path) -> None:
    spec = sweep_spec(root, BRIGHTNESS, subtask=["C02"])
    planned, _ = swept(spec, open_engine(spec.model[0]))
    key = planned.identities["brightness"]
    assert key.facts["plugin"] == "cardiolens-edges.brightness@0.1.0"
    replies = tables.read(stored(planned), schemas.COMPLETIONS).to_pylist()
    assert {row["status"] for row in replies} == {"ok"}
    halting = {"name": "halting", "engine": "reader:cardiolens-edges.halting", "options": {"share": 1.0}}
    planned, _ = swept(sweep_spec(root, halting, subtask=["C02"]))
    verdicts = tables.read(planned.run.verdicts, schemas.VERDICTS).to_pylist()
    assert len(verdicts) == 2
    assert all(row["correct"] for row in verdicts)


def test_its_layout_says_what_files_are_and_where_it_is_from(edges: Path) -> None:
    layout = convention("cardiolens-edges.ward")
    assert layout.name == "cardiolens_edges_ward"
    assert layout.sources[-1].startswith("plugin cardiolens-edges.ward@0.1.0, code ")
    with pytest.raises(InputError, match=r"layout=cardiolens-edges\.wart: .*cardiolens-edges\.ward"):
        convention("cardiolens-edges.wart")


def test_the_keys_hold_the_version_and_the_plan_the_code(site: Path, tmp_path: Path, root: Path) -> None:
    code = SELECTOR.format("return [(pool[0].volume_id, 0)]")
    ids, runs = set(), set()
    for version in ("1.0", "2.0"):
        folder = package(tmp_path / version, code, version, selectors="head = bad_parts:Part")
        with on_path(folder):
            spec = spec_with(root, selector=[{"name": "head", "kind": "bad-parts.head"}])
            (arm,) = arms(spec)
            ids.add(arm.arm_id)
            runs.add(plan(spec).run.root.name)
            before = plugins.code_of("selectors", spec.selector[0].kind)
            (folder / "bad_parts.py").write_text(code.replace(", 0)", ", 1)"))
            assert plugins.code_of("selectors", spec.selector[0].kind) != before
    assert len(ids) == len(runs) == 2
    old = spec.model_dump(mode="json")
    assert parse(old).selector[0].kind == "bad-parts.head@2.0", "a run is read where its parts are not"
    with pytest.raises(InputError, match="no installed package has this entry point"):
        plan(parse(old))
    with (
        on_path(tmp_path / "1.0"),
        pytest.raises(InputError, match=r"version 1\.0 of bad-parts is installed"),
    ):
        plan(parse(old))


SELECTOR = "class Part:\n    def select(self, pool, budget, *, seed, question):\n        {}\n"
CONTROL = """from dataclasses import replace
def changed(frames, question):
    {}
class Part:
    def frames(self, frames, structure):
        return changed(frames, None)[0]
    def question(self, question, seed):
        return changed((None,), question)[1]
"""
METRIC = "class Part:\n    def score(self, pairs):\n        {}\n"
CHANGED = "return frames, question and replace(question, options={})"
FEWER = "question.options if question.answer_type == 'ordinal' else question.options[1:]"
BAD = [
    (SELECTOR, "return [('cine_sax', 999)]", "999.*expected at most 8 different frames of the pool"),
    (SELECTOR, "return [(pool[0].volume_id, n) for n in range(budget + 1)]", "chose .*at most 8 different"),
    (SELECTOR, "return None", "TypeError"),
    (SELECTOR, "raise SystemExit(3)", "SystemExit: 3"),
    (CONTROL, "return (), question", "shows .*expected 1 to 8 frames"),
    (
        CONTROL,
        "return [frames[0]._replace(slice=1, phase=1, idx=0)], question",
        "frames of the study",
    ),
    (CONTROL, "return frames, None", "TypeError"),
    (CONTROL, CHANGED.format("()"), "changes more of a question"),
    (CONTROL, CHANGED.format("question.options[::-1]"), "changes more of a question"),
    (CONTROL, CHANGED.format(FEWER), "changes more of a question"),
    (METRIC, "return []", "gives 0 values for 1 reports"),
    (METRIC, "return [float('nan')]", "gives nan, which is not within 0..1"),
]
NAMED = {  # group, and what a sweep says to have its part
    SELECTOR: ("selectors", {"selector": [{"name": "part", "kind": "bad-parts.part"}]}),
    CONTROL: ("controls", {"control": ["bad-parts.part"]}),
    METRIC: ("report_metrics", {"statistics": {"report_metrics": ["bad-parts.part"]}}),
}


@pytest.mark.parametrize(("form", "body", "said"), BAD)
def test_a_part_that_does_wrong_is_named(form: str, body: str, said: str, tmp_path: Path, root: Path) -> None:
    group, changes = NAMED[form]
    with on_path(package(tmp_path / "p", form.format(body), **{group: "part = bad_parts:Part"})):
        spec = spec_with(root, **changes)
        with pytest.raises(PluginError, match=rf"plugin bad-parts\.part@1\.0: .*{said}"):
            used(spec)


def used(spec: SweepSpec) -> None:
    """Plan, and score a report."""
    plan(spec)
    for metric in open_text_metrics(spec.statistics):
        metric([("a", "b")])


FACTORIES = {
    "raise ImportError('no torch')": "ImportError: no torch",
    "class Part: pass": "has no select",
    "def Part(): raise RuntimeError('late')": "RuntimeError: late",
}


@pytest.mark.parametrize("code", FACTORIES)
def test_a_part_that_cannot_be_made_is_refused_before_anything_runs(
    code: str, tmp_path: Path, root: Path
) -> None:
    with on_path(package(tmp_path / "p", f"{code}\n", selectors="part = bad_parts:Part")):
        spec = spec_with(root, **NAMED[SELECTOR][1])
        with pytest.raises(PluginError, match=rf"plugin bad-parts\.part@1\.0: .*{FACTORIES[code]}"):
            check_plugins(spec)


def test_options_that_a_part_does_not_take_are_named(edges: Path, root: Path) -> None:
    with pytest.raises(PluginError, match=r"ends@0\.1\.0: TypeError.*'last'"):
        check_plugins(spec_with(root, selector=ends(last=1)))
    halting = {"name": "halting", "engine": "reader:cardiolens-edges.halting", "options": {}}
    with pytest.raises(PluginError, match=r"missing 1 required .*'share'"):
        check_readers(sweep_spec(root, halting))
    with pytest.raises(InputError, match=r"options .* are for kinds of other packages.* built in"):
        spec_with(root, selector=[{"name": "c", "kind": "clinical", "options": {"first": 1}}])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selector": [{"name": "x", "kind": "cardiolens-edges.ens"}]}, "did you mean cardiolens-edges.ends"),
        ({"selector": [{"name": "x", "kind": "Edges.ends"}]}, "write package.name or package.name@version"),
        (
            {"control": ["cardiolens-edges.ends"]},
            "no installed package has this entry point",
        ),
        ({"model": [BRIGHTNESS | {"source": "y"}]}, "source 'y' is not read by an engine of another package"),
    ],
)
def test_a_wrong_word_is_answered_with_the_legal_ones(
    changes: dict[str, Any], message: str, edges: Path, root: Path
) -> None:
    with pytest.raises(InputError, match=message):
        spec_with(root, **changes)
