"""Documents and tables of a run that were cut, changed by a bit, or given other values: named, no traceback.

The verbs that read a run are tried on it. Each may answer or refuse; it may not fail in another way.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.compare import compare
from cardiolens.commands.view import served_of
from cardiolens.config.compose import composed_sweep
from cardiolens.config.sweep import parse
from cardiolens.curation.report_judge.report_errors import run_reports
from cardiolens.phantom.roster import catalogue
from cardiolens.show.export.table_export import export
from cardiolens.show.page.write import write_page
from cardiolens.storage import documents
from cardiolens.storage.places import Run
from cardiolens.workflow.slurm.run_status import status
from cardiolens.workflow.steps.conclude import counters, write_manifest
from cardiolens.workflow.steps.judge_run import judge, judge_together

VERBS: dict[str, Callable[[Run, Run], object]] = {
    "compare": lambda run, other: compare(run, other, 2.0),
    "export": lambda run, _: export(run, patient_ids=False),
    "report": lambda run, _: write_page(run, [run], include_images=False),
    "status": lambda run, _: status(run),
    "view": lambda run, _: [served_of([run]).script(path, "") for path in ("endings/0.js", "cases/1/0.js")],
    "judge": lambda run, _: judge(run),
    "judge of": lambda run, _: run_reports(run, catalogue()),
    "judge together": lambda run, other: judge_together([run, other]),
}
OTHERS = [None, True, -1, 10**30, 1.5, "", "x", "../../x", "\x1b[2J", [], [[]], {}, {"x": {}}, [None], ["x"]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and two finished runs on it."""
    root = make_cohort(tmp_path_factory.mktemp("finished") / "place", 2)
    for budget in ([8], [4, 8]):
        spec = sweep_spec(root, reader("uniform"), budget=budget, subtask=["C01", "C03", "L01", "R-LGE"])
        planned, judged = swept(spec)
        documents.write_configuration(planned.run, planned.spec)
        counted = counters(planned, {}, judged.replies.counts)
        outcome = {"seconds": {"plan": 0.1}, "placement": {"waves": []}, "failed": {"gone": "no memory"}}
        outcome["questions_digest"] = judged.replies.questions_digest
        write_manifest(planned, {**counted, **outcome})
        (planned.run.root / "slurm").mkdir()
        (planned.run.root / "groups").mkdir()
        (planned.run.root / "groups" / "uniform.json").write_text('{"model": "uniform", "attempts": []}')
        (planned.run.root / "groups" / "other.json").write_text("{}")
    return root


def runs_of(root: Path) -> list[Run]:
    return [Run(path) for path in sorted((root / "outputs").iterdir()) if (path / "manifest.json").exists()]


def copied(finished: Path, folder: Path) -> list[Run]:
    shutil.copytree(finished, folder)
    for run in runs_of(folder):
        run.configuration.write_text(run.configuration.read_text().replace(str(finished), str(folder)))
    return runs_of(folder)


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value within a tree."""
    yield path
    for name, value in (
        tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    ):
        yield from places(value, (*path, name))


def changed(tree: Any, path: tuple[Any, ...], value: object) -> Any:
    if not path:
        return value
    kept = tree.copy()
    kept[path[0]] = changed(tree[path[0]], path[1:], value)
    return kept


def try_verbs(finished: Path, folder: Path, damage: Callable[[Run], None], verbs: list[str]) -> None:
    run, other = copied(finished, folder)
    damage(run)
    for name in verbs:
        with suppress(InputError, RunError):
            VERBS[name](run, other)


@pytest.mark.parametrize("verb", VERBS)
def test_a_run_that_nobody_touched_is_answered(verb: str, finished: Path, tmp_path: Path) -> None:
    VERBS[verb](*copied(finished, tmp_path / "place"))


JSON = ["manifest.json", "analyses.json", "configuration.json", "groups/uniform.json"]


def with_value(name: str, at: int, value: object) -> Callable[[Run], None]:
    def damage(run: Run) -> None:
        path = run.root / name
        tree = json.loads(path.read_text())
        every = list(places(tree))
        path.write_text(json.dumps(changed(tree, every[at % len(every)], value)))

    return damage


FUZZ = settings(max_examples=12, suppress_health_check=list(HealthCheck))


@FUZZ
@given(
    st.tuples(st.sampled_from(JSON), st.integers(0, 10**4), st.sampled_from(OTHERS)),
    st.sampled_from(list(VERBS)),
)
def test_a_document_with_another_value_is_answered_or_named(
    finished: Path, tmp_path_factory: pytest.TempPathFactory, damage: tuple[str, int, object], verb: str
) -> None:
    folder = tmp_path_factory.mktemp("tampered") / "place"
    try_verbs(finished, folder, with_value(*damage), [verb])
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "words", [["+experiment=demo"], ["+experiment=controls", "cluster=slurm", "model=[tiny,served]"]]
)
def test_a_configuration_with_any_other_value_is_read_or_named(words: list[str]) -> None:
    tree = composed_sweep(words)
    for path in places(tree):
        for value in OTHERS:
            with suppress(InputError):
                parse(changed(tree, path, value))


def files_of(run: Run) -> list[Path]:
    store = run.root.parent.parent / "store"
    found = [path for root in (run.root, store) for path in root.rglob("*") if path.is_file()]
    return sorted(path for path in found if path.suffix in (".json", ".parquet"))


def cut_or_flipped(seed: int) -> Callable[[Run], None]:
    def damage(run: Run) -> None:
        draw = random.Random(seed)
        path = draw.choice(files_of(run))
        whole = bytearray(path.read_bytes())
        if draw.random() < 0.5:
            whole = whole[: draw.randrange(len(whole))]
        else:
            for _ in range(draw.choice([1, 1, 8])):
                whole[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(whole)

    return damage


@FUZZ
@given(st.integers(0, 10**6), st.sampled_from(list(VERBS)))
def test_a_file_that_was_cut_or_changed_by_bits_is_answered_or_named(
    finished: Path, tmp_path_factory: pytest.TempPathFactory, seed: int, verb: str
) -> None:
    folder = tmp_path_factory.mktemp("tampered") / "place"
    try_verbs(finished, folder, cut_or_flipped(seed), [verb])
    shutil.rmtree(folder)
