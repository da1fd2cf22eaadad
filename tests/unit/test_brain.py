"""Another organ is a protocol's folder: `examples/brain` runs from its generator to its page."""

import json
import runpy
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from page_run import write_record
from small_cohort import answer, judge, make_cohort, reader, requests_of, sweep_spec
from study_folders import published, write_nifti

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.dataset import PhantomSpec, Windows
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.ask import Ask, Engine, Pictures, Reply
from cardiolens.inference.plan.inputs import read_inputs
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.phantom.phantom_cohort import make_cohort as make_phantoms
from cardiolens.show.page.case_viewer.pictures import StudyPictures
from cardiolens.show.page.write import write_page
from cardiolens.storage import schemas, tables
from cardiolens.study.anatomy import anatomy_of
from cardiolens.study.cohort import current_cohort, read_cohort
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import read_study
from cardiolens.study.shards import read_volumes
from cardiolens.study.structure import structures

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "brain"
PROTOCOL = EXAMPLE / "protocol"
STUDIES = 16
MOST_LINES = 300
CHANCE = {"B02": 1 / 7, "B06": 1 / 4}  # of legal replies, one each; 1 / 2 of the others


@pytest.fixture(scope="module")
def brains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Studies, questions and a store, prepared without Ray."""
    root = tmp_path_factory.mktemp("brain") / "brains"
    runpy.run_path(str(EXAMPLE / "make_brains.py"))["make"](root, STUDIES)
    anatomy = anatomy_of(str(PROTOCOL))
    windows = anatomy.windows(Windows())
    folders = sorted((root / "studies").iterdir())
    outcomes = published(root / "store", folders, windows=windows, anatomy=anatomy)
    assert [(outcome.error, outcome.record.warnings) for outcome in outcomes] == [("", ())] * STUDIES
    return root


def spec_of(root: Path, *models: dict[str, Any], **changes: Any) -> SweepSpec:
    dataset = {"name": "brain", "studies": root / "studies", "questions": root / "questions.jsonl"}
    tree = {"dataset": dataset | {"protocol": str(PROTOCOL)}, "statistics": {"resamples": 20, "seed": 7}}
    return sweep_spec(root, *models, **(tree | changes))


def judged(planned: Plan) -> list[dict[str, Any]]:
    write_record(planned, judge(planned))
    rows = tables.read(planned.run.verdicts, schemas.VERDICTS).to_pylist()
    model_of = {arm.arm_id: arm.model.name for arm in planned.arms}
    return [row | {"model": model_of[row["arm_id"]]} for row in rows]


def test_the_example_is_short_and_its_package_is_ours_alone() -> None:
    files = [path for path in EXAMPLE.rglob("*") if path.suffix in {".py", ".yaml", ".jinja"}]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= MOST_LINES


def test_a_reader_of_the_truth_scores_100_and_guesses_are_chance(brains: Path) -> None:
    guesses = [reader("uniform", f"uniform{seed}", seed=seed) for seed in range(2)]
    planned = plan(spec_of(brains, reader("oracle"), *guesses, name="sweep"))
    answer(planned)
    rows = judged(planned)
    assert len({row["subtask"] for row in rows}) == 6
    assert all(row["status"] == "judged" for row in rows)
    assert all(row["correct"] for row in rows if row["model"] == "oracle")
    guessed = [row for row in rows if row["model"] != "oracle"]
    expected = np.array([CHANCE.get(row["subtask"], 1 / 2) for row in guessed])
    apart = sum(row["correct"] for row in guessed) - expected.sum()
    assert abs(apart) < 2.5 * np.sqrt((expected * (1 - expected)).sum())
    page = write_page(planned.run, [planned.run]).read_text("utf-8")
    assert "oracle" in page
    assert "brain-1" in page


def test_prompts_speak_of_brains(brains: Path) -> None:
    controls = ["none", "captions", "blind"]
    styles = [{"name": each, "style": each, "max_tokens": 64} for each in ("standard", "reasoning", "paper")]
    spec = spec_of(brains, reader("uniform"), name="words", prompt=styles, control=controls, caption="full")
    text = "\n".join(f"{row['system']}\n{row['prompt']}" for row in requests_of(plan(spec)))
    assert "a research test of brain MRI reading" in text
    assert "FLAIR, axial, slice 1 of 12 (inferior to superior), lower level" in text
    assert "T1-weighted after contrast, coronal, slice 4 of 12 (anterior to posterior)" in text
    assert not {word for word in ("cardi", "heart", "ventricular", "base to apex") if word in text.lower()}


class Looker(Engine):
    """A reader that looks: a lesion outshines tissue, and lies on one side of the axial frames."""

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        frames = [pictures(key) for key in ask.frame_keys]
        axial = np.array([frame for frame in frames if frame.shape[0] == 48])
        if "side of the patient" in ask.text:
            columns = np.nonzero((axial > 250).any(axis=(0, 1)))[0]
            is_second = columns.mean() > axial.shape[2] / 2
        else:
            is_second = np.median(axial[axial > 40]) < 170
        return Reply(text=f"ANSWER: {'B' if is_second else 'A'}", finish_reason="stop")


def test_who_looks_at_the_pixels_sees_findings_and_sides(brains: Path) -> None:
    model = reader("uniform", "looker") | {"long_side": 48}
    subtasks = ["B01", "B03", "B04", "B05"]
    planned = plan(spec_of(brains, model, name="looks", subtask=subtasks, budget=[16]))
    answer(planned, Looker())
    rows = judged(planned)
    assert {row["subtask"] for row in rows} == set(subtasks)
    assert [row["qa_id"] for row in rows if not row["correct"]] == []


def test_slices_count_from_below_whatever_the_file_does(brains: Path, tmp_path: Path) -> None:
    turned = changed_study(brains, tmp_path, spatial_order="superior_to_inferior")
    plain = read_study(brains / "studies" / "BR-0001", anatomy=anatomy_of(str(PROTOCOL)))
    first, second = (next(iter(displayed_volumes(study, Windows()))).frames for study in (plain, turned))
    assert np.array_equal(first, second[::-1])
    lowest, *_, highest = ((frame > 40).sum() for frame in first)
    assert lowest > 5 * highest, "a head is cut off below, and round above"


def changed_study(brains: Path, folder: Path, **changes: Any) -> Any:
    shutil.copytree(brains / "studies" / "BR-0001", folder / "study")
    path = folder / "study" / "study.json"
    manifest = json.loads(path.read_text())
    manifest["volumes"][0] |= changes
    path.write_text(json.dumps(manifest))
    return read_study(folder / "study", anatomy=anatomy_of(str(PROTOCOL)))


@contextmanager
def refused(*words: str) -> Iterator[None]:
    with pytest.raises(InputError) as caught:
        yield
    assert [word for word in words if word not in str(caught.value)] == []


def test_what_is_about_hearts_refuses_brains_by_name(brains: Path, tmp_path: Path) -> None:
    with refused("dataset.phantom", "brain MRI", "openprotocol-1"):
        make_phantoms(PhantomSpec(canonical=("PH-NORMAL",)), tmp_path / "phantoms", str(PROTOCOL))
    model = {"name": "reader_small", "engine": "vllm", "source": "packaged/reader_small"}
    with refused("model reader_small", "brain MRI"):
        read_inputs(spec_of(brains, model))
    with refused("unknown sequence 'flair'", "cine, lge, perfusion, t2", "anatomy.yaml"):
        read_study(brains / "studies" / "BR-0001")
    with refused("unknown sequence 'cine'", "flair, t1_contrast, diffusion"):
        changed_study(brains, tmp_path / "a", sequence="cine")
    with refused("spatial_order is 'anterior_to_posterior'", "inferior_to_superior, superior_to_inferior"):
        changed_study(brains, tmp_path / "b", spatial_order="anterior_to_posterior")


def test_a_store_of_hearts_is_not_asked_about_brains(brains: Path, tmp_path: Path) -> None:
    hearts = make_cohort(tmp_path / "hearts", 1)
    with refused("cardiac MRI", "brain MRI", "prepare again"):
        read_inputs(spec_of(brains, reader("uniform"), store=hearts / "store"))


def test_a_store_keeps_its_anatomy_and_is_made_anew_when_it_changes(brains: Path) -> None:
    cohort = read_cohort(brains / "store")
    assert cohort is not None
    anatomy = anatomy_of(str(PROTOCOL))
    assert cohort.organ == anatomy
    assert current_cohort(brains / "store", cohort.display, anatomy).studies
    renamed = anatomy.model_validate(anatomy.model_dump() | {"words": "MRI of the head"})
    assert not current_cohort(brains / "store", cohort.display, renamed).studies
    assert not current_cohort(brains / "store", cohort.display).studies
    known = structures(read_volumes(brains / "store"), anatomy)["BR-0000"].volumes
    assert [axis.words for volume in known.values() if (axis := volume.slice_axis)] == [
        *["inferior to superior"] * 3,
        "anterior to posterior",
    ]


def test_the_dataset_of_the_example_composes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    dataset = read_spec(["dataset=brain"]).dataset
    assert anatomy_of(dataset.protocol).words == "brain MRI"


def test_masks_of_brains_are_drawn_over_their_frames(brains: Path, tmp_path: Path) -> None:
    source = sorted((brains / "studies").iterdir())[0]
    folder = Path(shutil.copytree(source, tmp_path / source.name))
    record = json.loads((folder / "study.json").read_text())
    volume = record["volumes"][0]
    image = nibabel.load(folder / volume["path"])
    digest = write_nifti(folder / "mask.nii.gz", np.ones(image.shape, np.uint8), image.affine)
    volume["mask"] = {"path": "mask.nii.gz", "sha256": digest}
    (folder / "study.json").write_text(json.dumps(record))
    found = read_study(folder, anatomy=anatomy_of(str(PROTOCOL)))
    volume_id = found.manifest.volumes[0].volume_id
    pictures = StudyPictures(brains / "store", tmp_path, (found.study_id,))
    plain, masked = (pictures.at(f"{kind}/0/{volume_id}-0.png") for kind in ("frames", "masks"))
    assert plain is not None
    assert masked not in (None, plain)
