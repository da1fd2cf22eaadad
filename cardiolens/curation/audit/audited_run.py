"""What an audit needs of a run: its judged choices, and their replies as a person sees them."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.curation.audit.audit_desk import ReplyView
from cardiolens.curation.audit.audit_sample import Sampled
from cardiolens.protocol.dialogue.samples import SAMPLED
from cardiolens.show.notebook.run import FinishedRun

_VERDICT = ("arm_id", "qa_id", "request_key", "status", "parse_status", "rule", "parsed", "gold", "correct")


def judged_choices(run: FinishedRun) -> list[dict[str, Any]]:
    """The judged replies to choice questions, each with its model.

    Replies of several samples are left out: what is judged of them is a vote.
    """
    verdicts = run.verdicts
    is_choice = pc.and_(pc.equal(verdicts["channel"], "answer"), pc.equal(verdicts["status"], "judged"))
    completions = run.completions
    sampled = completions.filter(pc.equal(completions["finish_reason"], SAMPLED))["request_key"]
    model_of = _models(run)
    rows = verdicts.filter(is_choice).select(_VERDICT).to_pylist()
    samples = set(sampled.to_pylist())
    rows_of_models = [
        row | {"model": model_of[row["arm_id"]]} for row in rows if row["request_key"] not in samples
    ]
    if not rows_of_models:
        raise InputError(f"{run.folder}: holds no judged reply to a choice question; nothing can be misread")
    return rows_of_models


def _models(run: FinishedRun) -> dict[str, str]:
    """The model of each arm."""
    from cardiolens.config.arms import arms

    return {arm.arm_id: arm.model.name for arm in arms(run.configuration)}


def shown_replies(run: FinishedRun, replies: Iterable[Sampled]) -> Mapping[tuple[str, str], ReplyView]:
    """The replies of a sample with their questions and displayed options."""
    places = {(entry.arm_id, entry.qa_id) for entry in replies}
    questions = {row["qa_id"]: row for row in run.questions.to_pylist()}
    requests = run.requests
    is_sampled = pc.is_in(requests["qa_id"], value_set=pc.unique(_strings(qa_id for _, qa_id in places)))
    columns = ["arm_id", "qa_id", "request_key", "option_keys"]
    rows = requests.filter(is_sampled).select(columns).to_pylist()
    texts = {row["request_key"]: row for row in run.completions.to_pylist()}
    view = {}
    for row in rows:
        place = (row["arm_id"], row["qa_id"])
        if place in places and row["request_key"] in texts:
            view[place] = _view(questions[row["qa_id"]], row["option_keys"], texts[row["request_key"]])
    absent = places - view.keys()
    if absent:
        raise InputError(
            f"{run.folder}: {len(absent)} sampled replies are not in its store; put the store back"
        )
    return view


def _strings(values: Iterable[str]) -> Any:
    import pyarrow as pa

    return pa.array(list(values), pa.string())


def _view(
    question: Mapping[str, Any], displayed: list[str] | None, completion: Mapping[str, Any]
) -> ReplyView:
    texts = {option["key"]: option["text"] for option in question["options"]}
    return ReplyView(
        question=question["question"],
        options=tuple((key, texts[key]) for key in displayed or texts),
        several=question["answer_type"] == "multi",
        reply=completion["text"] or "",
        cut=completion["finish_reason"] == "length",
    )
