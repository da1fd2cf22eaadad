"""Models, data set, tracker and cluster of a sweep, as its own checks see them."""

from collections.abc import Iterator
from functools import partial

from cardiolens.base.counted import counted
from cardiolens.base.errors import InputError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.arguments import check_engine_options
from cardiolens.inference.engine.http.access import check_access
from cardiolens.inference.engine.http.reach import reach
from cardiolens.inference.engine.readers import check_readers
from cardiolens.inference.models.chat import Chat
from cardiolens.inference.models.identity import Identity, identify
from cardiolens.inference.models.thinking import unseparated
from cardiolens.inference.plan.candidates import weights_lacking
from cardiolens.inference.plan.plugin_checks import check_plugins
from cardiolens.protocol.select.feature_source import check_encoders
from cardiolens.runtime.connect import ray_cluster
from cardiolens.score.verdicts.text_metrics import open_text_metrics
from cardiolens.show.tracker.wandb_runs import check_tracker
from cardiolens.storage.places import Store
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.doctor.check import Check, check_of
from cardiolens.workflow.slurm import commands
from cardiolens.workflow.steps.check_release import check_release
from cardiolens.workflow.steps.prepare_studies import is_prepared


def part_checks(spec: SweepSpec) -> Iterator[Check]:
    """Look at the parts of a sweep, the cheap ones first; nothing is loaded onto a GPU."""
    yield check_of("configuration", lambda: _configured(spec))
    for warning in unseparated(spec):
        yield Check("thinking", "note", warning)
    for model in spec.model:
        yield from _model_checks(spec, model)
    yield check_of(f"data set {spec.dataset.name}", lambda: _data_set(spec))
    yield check_of("tracker", lambda: _tracked(spec))
    cluster = spec.cluster
    if isinstance(cluster, SlurmSpec):
        yield check_of("SLURM", lambda: _partitions(cluster))
    else:
        yield check_of("Ray", lambda: _cluster(spec))


def _configured(spec: SweepSpec) -> str:
    check_release(spec)
    check_readers(spec)
    check_plugins(spec)
    check_access(spec)
    check_engine_options(spec)
    check_encoders(spec)
    open_text_metrics(spec.statistics)
    parts = {"model": spec.model, "selector": spec.selector, "budget": spec.budget}
    return ", ".join(counted(len(entries), name) for name, entries in parts.items())


def _model_checks(spec: SweepSpec, model: ModelSpec) -> Iterator[Check]:
    """Files with their digests, then one rendered prompt."""
    subject, identities = f"model {model.name}", list[Identity]()
    yield check_of(subject, lambda: _identified(spec, model, identities))
    if model.engine == "http":
        yield check_of(f"{subject}, server", partial(reach, model))
    for identity in identities:
        if identity.folder is not None and model.engine == "vllm":
            yield check_of(f"{subject}, chat template", partial(_rendered, model, identity))


def _identified(spec: SweepSpec, model: ModelSpec, identities: list[Identity]) -> str:
    """Identify a model by its files, and keep its identity if they suffice to run it."""
    identity = identify(model, Store(spec.store).models)
    if lacking := weights_lacking(model, identity.folder):
        raise InputError(lacking)
    identities.append(identity)
    return f"{identity.model_key}, {identity.folder or 'no files'}"


def _rendered(model: ModelSpec, identity: Identity) -> str:
    assert identity.folder is not None
    prompt = Chat.of(model, identity.folder).prompt("You read cardiac MRI.", "Which is it?\nA. Normal")
    return f"tokenizer and template load; a question without frames has {len(prompt)} characters"


def _data_set(spec: SweepSpec) -> str | Check:
    subject = f"data set {spec.dataset.name}"
    if not is_prepared(spec):
        text = f"not prepared yet: a sweep does it, or python -m cardiolens.prepare; store {spec.store}"
        return Check(subject, "note", text)
    cohort = read_cohort(spec.store)
    studies = 0 if cohort is None else len(cohort.studies)
    failed = 0 if cohort is None else len(cohort.failed)
    prepared = f"{counted(studies, 'study')} prepared"
    if failed:
        return Check(subject, "note", f"{prepared}, {failed} failed: status tells which")
    return f"{prepared} in {spec.store}"


def _tracked(spec: SweepSpec) -> str:
    check_tracker(spec.tracker)
    return f"{spec.tracker.kind}, {spec.tracker.mode}"


def _partitions(cluster: SlurmSpec) -> str:
    commands.check_partition(cluster.partition)
    commands.check_partition(cluster.cpu_partition)
    named = ", ".join(f"{name} ({nodes} nodes)" for name, nodes in commands.partitions().items())
    return f"partitions {named}; python -m cardiolens.submit ... mode=plan shows the jobs"


def _cluster(spec: SweepSpec) -> str:
    """Start Ray, or connect to the cluster that is named, with its token."""
    import ray

    with ray_cluster(spec.cluster):
        resources = ray.cluster_resources()
    where = "on this machine" if spec.cluster.address is None else f"at {spec.cluster.address}"
    return f"{where}, {resources.get('CPU', 0):g} CPUs, {resources.get('GPU', 0):g} GPUs"
