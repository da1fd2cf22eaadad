"""Convert what a dataset gives to shards in parallel; unchanged studies are not read again."""

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import PlainFormatter
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.benchmarks.benchmark import Source, read_benchmark
from cardiolens.benchmarks.case_group import prepare_cases, state_of_case
from cardiolens.config.cluster import ClusterSpec
from cardiolens.config.dataset import DatasetSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.phantom.phantom_cohort import add_questions, check_options, make_cohort
from cardiolens.protocol.prompts.case_prompts import told_path
from cardiolens.protocol.select.feature_store import missing_parts, write_features
from cardiolens.runtime.connect import ray_cluster
from cardiolens.study.anatomy import Anatomy, anatomy_of
from cardiolens.study.cohort import Cohort, StudyRecord, current_cohort, state_of, write_cohort
from cardiolens.study.group import prepare_group
from cardiolens.study.manifest import Study, read_study, shown_name
from cardiolens.study.same_pixels import check_same_pixels, same_pixels
from cardiolens.study.shards import read_volumes
from cardiolens.workflow.steps.preparation import Prepared, StudySource, Task, outcomes_of

PART_PIXELS = 192 << 20  # of a part; about 128 MiB compressed
PART_IMAGES = 192  # of a part of cases; about 100 MiB compressed
OWN_CLUSTER = ClusterSpec()
STUDIES_EXPECTED = (
    "expected a folder of study folders with a study.json each; correct dataset.studies; of DICOM files, "
    "python -m cardiolens.ingest source=... out=... makes such folders"
)

log = logging.getLogger(__name__)


def prepare(dataset: DatasetSpec, store: Path, cluster: ClusterSpec = OWN_CLUSTER) -> Prepared:
    """Bring the shards of a store up to date with a dataset, and the questions that are made of its cases.

    A study that fails is logged and left out. InputError if there are no studies, or none is usable; RunError
    if the store cannot be written.
    """
    started, anatomy = time.monotonic(), anatomy_of(dataset.protocol)
    _check_names(dataset.windows, anatomy)
    if "absent_studies" in dataset.allow:
        return _as_found(dataset, store)
    source, current = _source_of(dataset, store), _current(dataset, store)
    prepared = Prepared(source.unchanged(current, store), dict(source.failed))
    touched = source.states.keys() - prepared.records.keys()
    if touched:
        with ray_cluster(cluster):
            prepared.take(outcomes_of(source.tasks(touched)))
    if not prepared.records:
        name, error = next(iter(prepared.failed.items()))
        raise InputError(f"{name}: {error}")
    cohort = _cohort(source, current, prepared.records, prepared.failed)
    if cohort != current:
        write_cohort(store, cohort.model_copy(update={"same_pixels": None}))  # looked for by `finish`
    source.finish()
    prepared.seconds = time.monotonic() - started
    for name, error in sorted(prepared.failed.items()):
        log.error("%s: %s", name, error)
    log.info("%s", prepared)
    return prepared


def is_prepared(spec: SweepSpec) -> bool:
    """Return whether preparing has nothing to do; InputError for what it refuses of all studies."""
    dataset, store = spec.dataset, spec.store
    if "absent_studies" in dataset.allow:
        return bool(_as_found(dataset, store).records)
    if dataset.phantom is not None:
        check_options(dataset.phantom, dataset.studies.parent)
    files = [] if dataset.source is None else [dataset.questions, told_path(dataset.questions)]
    if not dataset.studies.exists() or not all(path.is_file() for path in files):
        return False
    source, current = _source_of(dataset, store), _current(dataset, store)
    records = source.unchanged(current, store)
    unusable = {name for name, state in current.tried.items() if source.states.get(name) == state}
    failed = {**source.failed, **{name: current.failed[name] for name in unusable}}
    untried = source.states.keys() - records.keys() - unusable
    if untried or _cohort(source, current, records, failed) != current:
        return False
    if dataset.source is None:
        if current.studies and current.same_pixels is None:
            return False
        check_same_pixels(current.same_pixels or (), allowed="same_pixels" in dataset.allow)
    return not (_looks_at_pixels(spec) and missing_parts(store, read_volumes(store)))


def _check_names(windows: Mapping[str, object], anatomy: Anatomy) -> None:
    """Raise InputError for a window of a sequence or volume that cannot exist: it would have no effect."""
    legal = [name for sequence, kind in anatomy.sequences.items() for name in (sequence, *kind.volume_ids)]
    for name in windows:
        if name not in legal:
            raise InputError(
                f"dataset.windows names {name!r}; expected a sequence or a volume ({', '.join(legal)}); "
                "correct dataset.windows"
            )


def _looks_at_pixels(spec: SweepSpec) -> bool:
    return any(selector.looks_at_pixels for selector in spec.selector)


def _as_found(dataset: DatasetSpec, store: Path) -> Prepared:
    """Return the outcome of using a store as it is; InputError if it has no studies."""
    current = _current(dataset, store)
    if not current.studies:
        raise InputError(
            f"store={store}: has no studies prepared with these dataset.windows, and with "
            "dataset.allow=[absent_studies] none are prepared"
        )
    _check_same_pixels(store, dataset)
    return Prepared(dict(current.studies), dict(current.failed))


def prepare_features(store: Path, cluster: ClusterSpec = OWN_CLUSTER) -> None:
    """Compute the frame features that selectors lack."""
    if parts := missing_parts(store, read_volumes(store)):
        with ray_cluster(cluster):
            list(outcomes_of(partial(write_features, store.absolute(), part) for part in parts))


def _source_of(dataset: DatasetSpec, store: Path) -> StudySource:
    return _studies_of(dataset, store) if dataset.source is None else _cases_of(dataset, store)


def _studies_of(dataset: DatasetSpec, store: Path) -> StudySource:
    """Read the manifests of a folder of studies."""
    readable, failed = _read_studies(dataset)
    studies, anatomy = {study.study_id: study for study in readable}, anatomy_of(dataset.protocol)

    def task_of(part: str, names: Sequence[str]) -> Task:
        folders = [studies[name].folder.absolute() for name in names]
        windows = anatomy.windows(dataset.display)
        return partial(
            prepare_group, store.absolute(), part, folders, windows, roots=dataset.roots, anatomy=anatomy
        )

    return StudySource(
        states={name: state_of(study) for name, study in studies.items()},
        failed=failed,
        size_of=lambda name: studies[name].n_pixels,
        most=PART_PIXELS,
        task_of=task_of,
        finish=partial(_check_same_pixels, store, dataset),
    )


def _cases_of(dataset: DatasetSpec, store: Path) -> StudySource:
    """Read the cases of a split of downloaded data, which have questions, too; InputError without any."""
    if dataset.questions.absolute().parent != store.absolute():
        raise InputError(
            f"dataset.questions={dataset.questions}: the questions of {dataset.map} are made from its "
            f"data, in the store; leave dataset.questions out, or name a file in {store}"
        )
    assert dataset.source is not None, "only a dataset with a source has cases"
    assert dataset.map is not None, "a source has a map"
    source = Source.of(dataset.source.absolute(), dataset.split, dataset.map)
    data = read_benchmark(source, dataset.protocol)
    if not data.cases and not data.failed:
        raise InputError(f"{source.files[0]}: holds no case or question that is asked; download it anew")
    cases = {source.name_of(case.number): case for case in data.cases}

    def write_questions() -> None:
        data.write(dataset.questions, dataset.protocol)
        for reason, number in data.left_out.items():
            log.warning("%s: %d not asked: %s", dataset.name, number, reason)

    return StudySource(
        states={name: state_of_case(source, case) for name, case in cases.items()},
        failed=data.failed,
        size_of=lambda name: len(cases[name].images),
        most=PART_IMAGES,
        task_of=lambda part, names: partial(
            prepare_cases, store.absolute(), part, source, [cases[name] for name in names]
        ),
        finish=write_questions,
    )


def _read_studies(dataset: DatasetSpec) -> tuple[list[Study], dict[str, str]]:
    """Return the studies with a valid study.json and an id of their own, and the errors of the others."""
    root = dataset.studies
    try:
        folders = sorted(path for path in root.iterdir() if _is_a_study(path))
    except OSError as error:
        raise InputError(f"{root}: cannot be read ({error.strerror}); {STUDIES_EXPECTED}") from None
    if not folders:
        raise InputError(f"{root}: holds no studies; {STUDIES_EXPECTED}")
    anatomy = anatomy_of(dataset.protocol)
    failed: dict[str, str] = {}
    by_id: dict[str, list[Study]] = {}
    for folder in folders:
        try:
            _check_link(folder, dataset)
            study = read_study(folder, dataset.roots, anatomy)
            by_id.setdefault(study.study_id, []).append(study)
        except InputError as error:
            failed[shown_name(folder)] = str(error)
    for study_id, sharing in by_id.items():
        names = [study.folder.name for study in sharing]
        for name in names if len(names) > 1 else ():
            failed[name] = (
                f"study.json: study_id {study_id!r} stands in the folders {', '.join(names)}; "
                "expected one folder a study_id; rename or remove one"
            )
    return [sharing[0] for sharing in by_id.values() if len(sharing) == 1], failed


def _is_a_study(path: Path) -> bool:
    """Return whether an entry is read as a study; a broken link is, so that its error is reported."""
    return not is_housekeeping(path.name) and (path.is_dir() or (path.is_symlink() and not path.exists()))


def _check_link(folder: Path, dataset: DatasetSpec) -> None:
    """Raise InputError for a study folder that links out of `dataset.studies`, unless links are allowed."""
    if not folder.exists():
        raise InputError("is a link that leads nowhere; expected a study folder; correct or remove it")
    target = folder.resolve()
    if any(target.is_relative_to(root.resolve()) for root in (dataset.studies, *dataset.roots)):
        return
    raise InputError(
        "is a link that leads out of dataset.studies; expected a folder within it, or within "
        "dataset.link_roots; name its folder there or copy it"
    )


def _current(dataset: DatasetSpec, store: Path) -> Cohort:
    """Return the store's cohort as far as the dataset's windows and anatomy hold for it."""
    anatomy = anatomy_of(dataset.protocol)
    return current_cohort(store, anatomy.windows(dataset.display), anatomy)


def _cohort(
    source: StudySource, current: Cohort, records: Mapping[str, StudyRecord], failed: Mapping[str, str]
) -> Cohort:
    """Return the current cohort with these studies, and the states of those that failed."""
    states = {name: source.states[name] for name in sorted(failed) if name in source.states}
    update = {"studies": dict(sorted(records.items())), "failed": dict(failed), "tried": states}
    return current.model_copy(update=update)


def _check_same_pixels(store: Path, dataset: DatasetSpec) -> None:
    """Look for images that stand in two studies, if any study changed; refuse them unless allowed."""
    cohort = _current(dataset, store)
    if cohort.studies and cohort.same_pixels is None:
        cohort = cohort.model_copy(update={"same_pixels": same_pixels(store, read_volumes(store))})
        write_cohort(store, cohort)
    check_same_pixels(cohort.same_pixels or (), allowed="same_pixels" in dataset.allow)


def prepare_dataset(spec: SweepSpec) -> int:
    """Prepare the dataset of a sweep; return 0 only if every study is prepared."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlainFormatter("%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    return 1 if prepare_sweep(spec).failed else 0


def prepare_sweep(spec: SweepSpec) -> Prepared:
    """Bring shards and features of a sweep up to date; generate a phantom dataset at first use."""
    _make_phantom(spec.dataset)
    prepared = prepare(spec.dataset, spec.store, spec.cluster)
    if _looks_at_pixels(spec):
        prepare_features(spec.store, spec.cluster)
    return prepared


def _make_phantom(dataset: DatasetSpec) -> None:
    """Generate a synthetic dataset that does not exist, or the questions of another protocol on it."""
    if dataset.phantom is None:
        return
    root, questions = dataset.studies.parent, dataset.questions.name
    if not dataset.studies.exists():
        say(f"making the phantom cohort {dataset.name} in {root}")
        make_cohort(dataset.phantom, root, dataset.protocol, questions=questions)
    check_options(dataset.phantom, root)
    if not dataset.questions.exists() and dataset.questions.parent == root:
        say(f"making the questions of {dataset.protocol} on the phantom cohort {dataset.name}")
        add_questions(dataset.phantom, root, dataset.protocol, questions)
