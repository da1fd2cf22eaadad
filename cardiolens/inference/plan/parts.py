"""Parts of a plan: the requests of one model on whole studies, made by one process per core.

The number of questions per study alone decides which studies share a part. So every part can be made
anywhere and in any order, and the plan is the same byte for byte.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.config.arms import Arm
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.chat import Chat
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.models.token_counts import (
    BlamingCounter,
    EstimatedTokens,
    ModelError,
    TokenCounter,
    fault_of,
)
from cardiolens.inference.plan.few_shot import write_examples
from cardiolens.inference.plan.frame_views import StudyFrames
from cardiolens.inference.plan.inputs import Inputs
from cardiolens.inference.plan.planner import ModelPlanner
from cardiolens.inference.plan.request import PlannedQuestion, RequestColumns
from cardiolens.protocol.dialogue.chain_tables import write_chains
from cardiolens.protocol.select.feature_store import read_features
from cardiolens.runtime.processes import spread
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.frame_parts import read_digests
from cardiolens.study.structure import structures

PART_ROWS = 4_096
_WORTH = 60_000  # requests; starting a process takes about as long as planning 20,000


class PlanTotals(NamedTuple):
    """Counts of the requests written for one model."""

    status_counts: Counter[str]
    most_frames: int  # the largest number of frames in one request


class _Part(NamedTuple):
    """A part to make, with the data of its own studies, so that no process holds the data of all studies."""

    model: str  # name
    number: int  # from 0
    questions: Mapping[str, Sequence[PlannedQuestion]]  # by study
    volumes: pa.Table  # of these studies, of their donors (control other_patient), of their examples


def write_parts(
    spec: SweepSpec, inputs: Inputs, run: Run, arms: Sequence[Arm], identities: Mapping[str, Identity]
) -> Generator[tuple[str, PlanTotals | ModelError], None, None]:
    """Write the requests of models; yield each model's name and counts when its last part is written.

    Existing parts in the models' folders are kept. A model that cannot be asked has an error in place of
    counts; the other models are still written.
    """
    arms_of = {name: [arm for arm in arms if arm.model.name == name] for name in identities}
    groups = [
        (name, number, study_ids)
        for name, own in arms_of.items()
        for number, study_ids in enumerate(_divided(len(own), inputs.questions))
    ]
    n_requests = sum(map(len, arms_of.values())) * sum(map(len, inputs.questions.values()))
    maker = _Maker(spec, run, arms_of, identities, inputs.catalogue.anatomy)
    with closing(spread(maker, _work(groups, inputs), worth=n_requests >= _WORTH)) as parts_made:
        parts_of_groups = zip(groups, parts_made, strict=True)
        for model, of_model in groupby(parts_of_groups, key=lambda pair: pair[0][0]):
            totals = [part for _, part in of_model]
            counts = [part for part in totals if isinstance(part, PlanTotals)]
            error = next((part for part in totals if isinstance(part, ModelError)), None)
            yield (
                model,
                error
                or PlanTotals(
                    sum((part.status_counts for part in counts), Counter()),
                    max((part.most_frames for part in counts), default=0),
                ),
            )


def _divided(n_arms: int, questions: Mapping[str, Sequence[PlannedQuestion]]) -> Iterator[list[str]]:
    """Divide the studies, in order, into parts of at least PART_ROWS requests; the last may be smaller."""
    rows, study_ids = 0, list[str]()
    for study_id, study_questions in questions.items():
        if not study_questions:
            continue
        study_ids.append(study_id)
        rows += len(study_questions) * n_arms
        if rows >= PART_ROWS:
            yield study_ids
            rows, study_ids = 0, []
    if study_ids:
        yield study_ids


def _work(groups: Iterable[tuple[str, int, Sequence[str]]], inputs: Inputs) -> Iterator[_Part]:
    """Add to each part the questions and volumes of its studies."""
    rows: dict[str, list[int]] = {}
    for row, study_id in enumerate(inputs.volumes["study_id"].to_pylist()):
        rows.setdefault(study_id, []).append(row)
    for model, number, study_ids in groups:
        questions = {study_id: inputs.questions[study_id] for study_id in study_ids}
        further = {
            study_id
            for group in questions.values()
            for question in group
            for study_id in question.further_studies
        }
        own_rows = [row for study_id in sorted({*study_ids, *further}) for row in rows[study_id]]
        yield _Part(model, number, questions, inputs.volumes.take(own_rows))


@dataclass
class _Maker:
    """Makes one part after another in a process, and keeps the token counters of models."""

    spec: SweepSpec
    run: Run
    arms_of: Mapping[str, Sequence[Arm]]  # by model name
    identities: Mapping[str, Identity]
    anatomy: Anatomy
    counter: TokenCounter | ModelError | None = None  # of the model of the last part
    counted: str = ""  # name of that model

    def __call__(self, part: _Part) -> PlanTotals | ModelError:
        """Write one part and return its counts."""
        arms, identity = self.arms_of[part.model], self.identities[part.model]
        columns = RequestColumns()
        opened = _StudyOpener(self.spec, part.volumes, self.anatomy)
        try:
            if self.counted != part.model:
                self.counted, self.counter = part.model, _counter(arms[0].model, identity.folder)
            if isinstance(self.counter, ModelError):
                raise self.counter
            planner = ModelPlanner(self.spec, arms[0].model, identity, arms, self.counter, frames_of=opened)
            for study_id, questions in part.questions.items():
                planner.add_study(columns, study_id, questions)
        except ModelError as error:
            self.counter = error
            return error
        folder, name = self.run.requests(part.model), f"part-{part.number:05d}.parquet"
        write_chains(folder / name, columns.chains)
        write_examples(folder / name, columns.examples)
        tables.write_part(folder, columns.table(), schemas.REQUESTS, name)
        return PlanTotals(columns.status_counts(), columns.most_frames)


class _StudyOpener:
    """Opens the frames of a study of one part for a planner."""

    def __init__(self, spec: SweepSpec, volumes: pa.Table, anatomy: Anatomy) -> None:
        self._store, self._volumes, self._anatomy = spec.store, volumes, anatomy
        self._looks = any(selector.looks_at_pixels for selector in spec.selector)
        self._known = structures(volumes, anatomy)

    def __call__(self, study_id: str) -> StudyFrames:
        rows = self._volumes.filter(pc.equal(self._volumes["study_id"], study_id))
        features = read_features(self._store, rows, self._anatomy) if self._looks else None
        return StudyFrames(self._known[study_id], read_digests(self._store, rows), features)


def _counter(model: ModelSpec, folder: Path | None) -> TokenCounter | ModelError | None:
    """Return the token counter of a model's prompts, or why it fails; None if nothing can count them."""
    if folder is not None:
        try:
            with fault_of(model.name):
                return BlamingCounter(model.name, Chat.of(model, folder))
        except ModelError as error:
            return error
    if model.estimates_tokens:
        assert model.image_tokens is not None
        return EstimatedTokens(model.image_tokens)
    return None
