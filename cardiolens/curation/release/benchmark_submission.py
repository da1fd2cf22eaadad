"""The submission of a run on a release with withheld answers: every reply to such a question, as it was."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import __version__
from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.digest import sha256_of
from cardiolens.base.errors import InputError
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.conf_names import INDEX, read_index
from cardiolens.protocol.dialogue.chain import read_chains, walk
from cardiolens.protocol.dialogue.samples import SAMPLED, samples_of
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.questions import given_questions
from cardiolens.score.run_results.aligned_replies import align_completions
from cardiolens.score.run_results.stored_replies import check_stored
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.storage import schemas
from cardiolens.storage.documents import read_configuration, read_manifest
from cardiolens.storage.places import Run
from cardiolens.storage.run_place import open_run

SCHEMA = "submission-1"
MOST_TEXT = 1 << 17  # characters of a completion, of which several samples are one
MOST_REPLY = 1 << 15  # characters of one reply: four for each of 8,192 tokens
_REPLY = ("status", "finish_reason", "text")
Record = dict[str, Any]


class Submit(Spec):
    """Words of a submission."""

    submit: GivenPath  # the folder of the run
    store: GivenPath | None = None  # where the store of the run is now
    out: GivenPath  # the file to be written


def submit(words: Submit) -> int:
    """Write the replies of a run to the questions with withheld answers, and return 0.

    The first line names release and arms, each other line is a reply. InputError if the run asked no such
    question, or the release has changed since.
    """
    run = open_run("submit", words.submit, words.store)
    spec, manifest = read_configuration(run), read_manifest(run)
    store = check_stored(run)
    release = _release(words.submit, spec.dataset.questions, manifest["questions_sha256"])
    asked = given_questions(spec.dataset.questions, load_catalogue(spec.dataset.protocol))
    qa_ids = pa.array([row.question.qa_id for row in asked if row.question.withheld], pa.string())
    if not len(qa_ids):
        raise InputError(f"submit={words.submit}: the answers of all its questions are known; see its page")
    head = {
        "schema": SCHEMA,
        "release": release,
        "catalogue_sha256": manifest["catalogue_sha256"],
        "made_by": f"cardiolens {__version__}",
        "arms": manifest["arms"],
    }
    count = 0
    with disk.atomic(words.out) as temporary, disk.open_text(temporary) as file:
        file.write(json.dumps(head, ensure_ascii=False) + "\n")
        for model, facts in manifest["models"].items():
            for row in _replies(run, model, store.completions(facts["model_key"]), qa_ids):
                if is_too_long(row["text"], row["finish_reason"]):
                    raise InputError(
                        f"submit={words.submit}: the reply of {row['arm_id']} to {row['qa_id']} has more "
                        f"than {MOST_REPLY:,} characters, which is not scored; ask with fewer max_tokens"
                    )
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
    missing = len(manifest["arms"]) * len(qa_ids) - count
    say(f"submission: {words.out}: {count} replies of {len(manifest['arms'])} arms")
    if missing:
        say(f"{missing} questions have no reply under an arm; each counts as wrong where it is scored")
    return 0


def is_too_long(text: str, finish_reason: str | None) -> bool:
    """Whether a completion, or a reply of several in it, is longer than what is read."""
    samples = samples_of(text) if finish_reason == SAMPLED else ()
    replies = [sample.text for sample in samples] or [text]
    return len(text) > MOST_TEXT or any(len(reply) > MOST_REPLY for reply in replies)


def _release(run: Path, questions: Path, asked: str) -> Record:
    """Return name, number and digest of the release whose questions a run asked; `asked` is their digest."""
    folder = questions.parent
    try:
        facts = read_index(folder)
        digest, now = sha256_of(folder / INDEX), sha256_of(questions)
        name, number = str(facts["name"]), str(facts["number"])
        listed = facts["files"][questions.name]["sha256"]
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(
            f"submit={run}: {folder} holds no release; give a run of dataset=<release>, and put the release "
            "back where it was"
        ) from None
    if not listed == now == asked:
        raise InputError(
            f"submit={run}: {questions} is not what the run asked, or not what was released; put the release "
            "back as it was (cardiolens release verify=<folder>), and run the sweep again"
        )
    return {"name": name, "number": number, "sha256": digest}


def _replies(run: Run, model: str, completions: Path, qa_ids: pa.Array) -> Iterator[Record]:
    """Yield the final replies of one model to some questions."""
    requests = run.requests(model)
    keys = pa.array(
        sorted({step.request_key for step in walk(read_chains(requests), completions)}), pa.string()
    )
    for asked, replies in align_completions(requests, completions, keys).blocks():
        final = finals(replies)
        own = asked.filter(
            pc.and_(pc.equal(asked["status"], schemas.PLANNED), pc.is_in(asked["qa_id"], value_set=qa_ids))
        )
        place = pc.index_in(own["request_key"], value_set=final["request_key"].combine_chunks())
        replied = pc.is_valid(place)
        rows = own.filter(replied).select(["arm_id", "qa_id", "option_keys"])
        said = final.select(_REPLY).take(place.filter(replied))
        for name in _REPLY:
            rows = rows.append_column(name, said[name])
        for row in rows.to_pylist():
            yield row | {"text": row["text"] or "", "option_keys": row["option_keys"] or []}
