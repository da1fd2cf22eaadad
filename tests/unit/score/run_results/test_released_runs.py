"""A run of a release says of which; runs of different releases or versions have no common ranking."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from page_run import finished, small_spec
from small_cohort import reader

from cardiolens.base.errors import InputError
from cardiolens.commands.compare import compare
from cardiolens.config.dataset import ReleaseSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.score.run_results.merging import check_alike
from cardiolens.score.run_results.run_comparison import compare_runs, configuration_changes
from cardiolens.show.export.dataset_export import write_dataset
from cardiolens.show.export.inspect_logs import write_inspect_logs
from cardiolens.show.export.table_export import export
from cardiolens.show.page.write import write_page
from cardiolens.storage import documents
from cardiolens.storage.places import Run, deciding, run_of
from cardiolens.workflow.sweep_checks import check_release

FIRST, SECOND = "a" * 64, "b" * 64


@pytest.fixture(scope="module")
def runs(root: Path) -> dict[str, Run]:
    """The same arms on the same questions: of no release, of one, of it again, and of its next version."""
    plain = spec_of(root, "none", None)
    return {
        "none": finished(plain),
        "first": finished(spec_of(root, "first", release_of(root))),
        "again": finished(spec_of(root, "again", release_of(root))),
        "next": finished(spec_of(root, "next", release_of(root, number="1.1", digest=SECOND))),
    }


def release_of(root: Path, number: str = "1.0", digest: str = FIRST) -> ReleaseSpec:
    questions = sha256((root / "questions.jsonl").read_bytes()).hexdigest()
    return ReleaseSpec(name="ourcmr", number=number, sha256=digest, questions_sha256=questions)


def spec_of(root: Path, name: str, release: ReleaseSpec | None) -> SweepSpec:
    changes = {"subtask": ["C02", "C10"], "control": ["none"], "model": [reader("noisy", error=0.3)]}
    spec = small_spec(root, name, **changes)
    return spec.model_copy(update={"dataset": spec.dataset.model_copy(update={"release": release})})


def test_manifest_page_and_exports_name_the_release(runs: dict[str, Run]) -> None:
    run = runs["first"]
    manifest = documents.read_manifest(run)
    assert manifest["release"]["sha256"] == FIRST
    release = documents.read_configuration(run).dataset.release
    assert release is not None
    told = f"ourcmr 1.0, release.json with SHA-256 {FIRST}"
    assert str(release) == told
    write_page(run, [run])
    assert told in run.page.read_text()
    assert told in (write_dataset(run, patient_ids=False) / "README.md").read_text()
    for log in write_inspect_logs(run, patient_ids=False).iterdir():
        assert json.loads(log.read_text())["eval"]["metadata"]["release"] == told
    assert (export(run, patient_ids=False) / "tables.tex").read_text().startswith(f"% Of {told}.")


def test_a_run_of_no_release_is_as_it_was(runs: dict[str, Run], root: Path) -> None:
    run = runs["none"]
    assert "release" not in documents.read_manifest(run)
    assert deciding(documents.read_configuration(run))["dataset"]["release"] is None
    write_page(run, [run])
    assert "release.json" not in run.page.read_text()
    assert (export(run, patient_ids=False) / "tables.tex").read_text().startswith(r"\begin{table}")


@pytest.mark.parametrize(("one", "other"), [("first", "next"), ("next", "first"), ("none", "first")])
def test_runs_of_different_releases_are_not_ranked(runs: dict[str, Run], one: str, other: str) -> None:
    pair = runs[one], runs[other]
    digests = [{"first": FIRST, "next": SECOND, "none": "no release"}[name] for name in (one, other)]
    specs = [documents.read_configuration(run) for run in pair]
    manifests = [documents.read_manifest(run) for run in pair]
    for attempt in (lambda: compare(*pair, margin=2), lambda: check_alike(pair, specs, manifests)):
        with pytest.raises(InputError, match="ranked within one version of one release") as refused:
            attempt()
        assert [digest in str(refused.value) for digest in digests] == [True, True]


def test_runs_of_one_version_are_compared(runs: dict[str, Run]) -> None:
    assert compare_runs(runs["first"], runs["again"])
    assert f"dataset.release.sha256: '{FIRST}' to '{SECOND}'" in list(
        configuration_changes(runs["first"], runs["next"])
    )


def test_versions_have_runs_of_their_own_and_share_their_answers(runs: dict[str, Run], root: Path) -> None:
    specs = [spec_of(root, "same", release_of(root, digest=digest)) for digest in (FIRST, SECOND)]
    assert run_of(specs[0]) != run_of(specs[1])
    keys = [
        {model["model_key"] for model in documents.read_manifest(run)["models"].values()}
        for run in runs.values()
    ]
    assert keys[0] == keys[1] == keys[2] == keys[3]


def test_questions_that_are_not_those_of_the_release_are_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "studies").mkdir()
    questions = tmp_path / "questions.jsonl"
    questions.write_bytes((root / "questions.jsonl").read_bytes())
    spec = spec_of(root, "check", release_of(root))
    here = {"questions": questions, "studies": tmp_path / "studies"}
    good = spec.model_copy(update={"dataset": spec.dataset.model_copy(update=here)})
    check_release(good)
    check_release(spec_of(root, "check", None))
    elsewhere = good.dataset.model_copy(update={"studies": tmp_path / "others"})
    with pytest.raises(InputError, match=r"dataset\.studies=.*are not the studies of ourcmr 1\.0"):
        check_release(good.model_copy(update={"dataset": elsewhere}))
    check_release(
        good.model_copy(update={"dataset": elsewhere.model_copy(update={"allow": ("absent_studies",)})})
    )
    questions.write_bytes(questions.read_bytes()[:-1] + b" \n")
    with pytest.raises(
        InputError, match=r"questions\.jsonl: is not the file of ourcmr 1\.0.*get the release anew"
    ):
        check_release(good)
    questions.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        check_release(good)
