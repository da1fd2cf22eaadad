"""Run text-only requests through the inference stream: plan them, store the completions, read them back.

The key of a request is the digest of the whole request, as in a sweep, so requests that the store already
answers are not sent again.
"""

from collections.abc import Sequence
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.http.transport import check_access
from cardiolens.inference.engine.readers import check_readers
from cardiolens.inference.engine.startup import check_engine_options
from cardiolens.inference.models.identity import Identity, identify
from cardiolens.inference.models.token_counts import fault_of
from cardiolens.inference.placement.footprint import nodes_of_ray
from cardiolens.inference.plan.candidates import place_sweep
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import PART_ROWS, Plan
from cardiolens.inference.plan.request import Request, hash_model, hash_of, request_key, table_of
from cardiolens.inference.stream.execution import execute
from cardiolens.protocol.prompts.question import TextRequest
from cardiolens.protocol.tasks.legal import constraint_of
from cardiolens.runtime import stopping
from cardiolens.runtime.connect import ray_cluster
from cardiolens.show.terminal import bars
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Store, run_of
from cardiolens.storage.schemas import PLANNED

_MAX_TOKENS = 3072  # of a reply, where the model declares none for reports


def asking_spec(studies: Path, out: Path, protocol: str, words: Sequence[str]) -> SweepSpec:
    """Return the sweep of the one model in `words` over texts; its store and runs lie in `out`."""
    places = {
        "dataset.studies": str(studies),
        "dataset.questions": str(out.parent / "questions.jsonl"),
        "dataset.protocol": protocol,
        "store": str(out / "store"),
        "outputs": str(out / "outputs"),
    }
    sweep = read_spec([*words, "name=questions", "tracker=none", "dataset=real"], places)
    if len(sweep.model) != 1:
        raise InputError(f"model: {len(sweep.model)} models are named; name the one that reads")
    if sweep.model[0].sampling.temperature:
        raise InputError(
            f"model.{sweep.model[0].name}.sampling.temperature: texts are read at temperature 0; leave it out"
        )
    check_readers(sweep)
    check_access(sweep)
    check_engine_options(sweep)
    return sweep


def ask(sweep: SweepSpec, requests: Sequence[TextRequest]) -> list[str | None]:
    """Ask the model of a sweep, equal requests once; return each reply, None if missing or truncated."""
    distinct = {(request.system, request.prompt, request.schema): request for request in requests}
    planned = plan_texts(sweep, list(distinct.values()))
    execute_plan(planned)
    return replies_of(planned, requests)


def execute_plan(planned: Plan) -> None:
    """Run the requests that the store does not answer yet."""
    remaining = {name: missing_of(planned, name) for name in planned.identities}
    if any(work.left for work in remaining.values()):
        documents.log_to(planned.run)
        with ray_cluster(planned.spec.cluster):
            placement = place_sweep(planned, remaining, nodes_of_ray(planned.spec.cluster))
            with stopping.graceful(), bars.progress_display() as terminal:
                execute(planned, placement, remaining, (terminal,))
        stopping.raise_if_stopping()


def plan_texts(sweep: SweepSpec, texts: Sequence[TextRequest]) -> Plan:
    """Write a plan of requests to disk, part by part."""
    (model,) = sweep.model
    store, run = Store(sweep.store), run_of(sweep)
    with fault_of(model.name):
        identity = identify(model, store.models)
    for part in tables.parts(run.requests(model.name)):
        disk.remove(part)
    for number, start in enumerate(range(0, len(texts), PART_ROWS)):
        rows = table_of([_request(model, identity, text) for text in texts[start : start + PART_ROWS]])
        tables.write_part(run.requests(model.name), rows, schemas.REQUESTS, f"part-{number:08d}.parquet")
    return Plan(
        spec=sweep,
        run=run,
        store=store,
        arms=(),
        identities={model.name: identity},
        study_ids=(),
        volumes=schemas.VOLUMES.empty_table(),
        questions_sha256="",
        protocol="",
        catalogue_sha256="",
        status_counts={PLANNED: len(texts)},
        most_frames={model.name: 0},
        seconds=0.0,
        failed={},
    )


def replies_of(planned: Plan, texts: Sequence[TextRequest]) -> list[str | None]:
    """Return the reply to each request, or None if it is missing or truncated."""
    (model,), (identity,) = planned.spec.model, planned.identities.values()
    columns = ("request_key", "text", "finish_reason", "status")
    rows = tables.read(planned.store.completions(identity.model_key), schemas.COMPLETIONS, columns)
    replies = {
        row["request_key"]: row["text"]
        for row in rows.to_pylist()
        if row["status"] == "ok" and row["finish_reason"] not in ("length", None)
    }
    return [replies.get(_request(model, identity, text).request_key) for text in texts]


def _request(model: ModelSpec, identity: Identity, text_request: TextRequest) -> Request:
    constraint = constraint_of("schema", "report", (text_request.schema,), ())
    max_tokens = model.max_tokens.get("report") or _MAX_TOKENS
    state = hash_of(text_request.system, "", after=hash_model(identity.model_key, model.sampling))
    return Request(
        arm_id="questions",
        qa_id=f"{text_request.text_id}:{text_request.name}",
        study_id=text_request.text_id,
        frames_study_id=None,
        subtask=text_request.name,
        frames=(),
        system=text_request.system,
        prompt=text_request.prompt,
        template="questions",
        answer_format="schema",
        answer_type="report",
        option_keys=(text_request.schema,),
        exclusive=(),
        max_tokens=max_tokens,
        stage=2,
        replicate=0,
        flags=(),
        status=PLANNED,
        predicted_tokens=None,
        request_key=request_key(state, text_request.prompt, constraint.text, str(max_tokens), "0"),
    )
