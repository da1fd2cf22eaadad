"""Parts of a plan: the requests of one model on whole studies, made by one process per core.

The number of questions per study alone decides which studies share a part. So every part can be made
anywhere and in any order, and the plan is the same byte for byte.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

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
from cardiolens.inference.plan.inputs import Inputs
from cardiolens.inference.plan.planned_study import PlannedQuestion, StudyFrames, write_examples
from cardiolens.inference.plan.planner import ModelPlanner
from cardiolens.inference.plan.request import RequestColumns
from cardiolens.protocol.dialogue.chain import offer_row, write_chains
from cardiolens.protocol.select.feature_store import read_features
from cardiolens.protocol.select.features import Sight
from cardiolens.runtime.processes import spread
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.frame_parts import read_digests
from cardiolens.study.structure import structures

PART_ROWS = 4_096
_WORTH = 60_000  # requests; starting a process takes about as long as planning 20,000


@dataclass(frozen=True, slots=True)
class Part:
    """A part to make."""

    model: str  # name
    number: int  # from 0
    study_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Work:
    """A part with the data of its own studies, so that no process holds the data of all studies."""

    part: Part
    questions: Mapping[str, Sequence[PlannedQuestion]]  # by study
    volumes: pa.Table  # of the part's studies, of their donors (control other_patient), of their examples


@dataclass(frozen=True, slots=True)
class PartTotals:
    """Counts over parts of one model; with `error` if the model cannot be planned."""

    status_counts: Counter[str] = field(default_factory=Counter)
    most_frames: int = 0  # the largest number of frames in one request
    error: ModelError | None = None

    def __add__(self, addend: "PartTotals") -> "PartTotals":
        return PartTotals(
            self.status_counts + addend.status_counts,
            max(self.most_frames, addend.most_frames),
            self.error or addend.error,
        )


def write_parts(
    spec: SweepSpec, inputs: Inputs, run: Run, arms: Sequence[Arm], identities: Mapping[str, Identity]
) -> Generator[tuple[str, PartTotals], None, None]:
    """Write the requests of models; yield each model's name and counts when its last part is written.

    Existing parts in the models' folders are kept. For a model that cannot be asked, the totals have an
    error and the counts are invalid; the other models are still written.
    """
    n_arms = Counter(arm.model.name for arm in arms)
    parts = [part for name in identities for part in _parts(name, n_arms[name], inputs.questions)]
    n_requests = sum(n_arms[name] for name in identities) * sum(map(len, inputs.questions.values()))
    of_model = PartTotals()
    maker = _Maker(spec, inputs.sights, run, arms, identities, anatomy=inputs.catalogue.anatomy)
    with closing(spread(maker, _work(parts, inputs), worth=n_requests >= _WORTH)) as parts_made:
        for at, (part, part_totals) in enumerate(zip(parts, parts_made, strict=True)):
            of_model += part_totals
            if at + 1 == len(parts) or parts[at + 1].model != part.model:
                yield part.model, of_model
                of_model = PartTotals()


def _parts(model: str, n_arms: int, questions: Mapping[str, Sequence[PlannedQuestion]]) -> Iterator[Part]:
    """Divide the studies, in order, into parts of at least PART_ROWS requests; the last may be smaller."""
    number, rows, study_ids = 0, 0, list[str]()
    for study_id, study_questions in questions.items():
        if not study_questions:
            continue
        study_ids.append(study_id)
        rows += len(study_questions) * n_arms
        if rows >= PART_ROWS:
            yield Part(model, number, tuple(study_ids))
            number, rows, study_ids = number + 1, 0, []
    if study_ids:
        yield Part(model, number, tuple(study_ids))


def _work(parts: Iterable[Part], inputs: Inputs) -> Iterator[_Work]:
    """Add to each part the questions and volumes of its studies."""
    rows: dict[str, list[int]] = {}
    for place, study_id in enumerate(inputs.volumes["study_id"].to_pylist()):
        rows.setdefault(study_id, []).append(place)
    for part in parts:
        questions = {study_id: inputs.questions[study_id] for study_id in part.study_ids}
        donors = {
            study_id
            for study_questions in questions.values()
            for question in study_questions
            for study_id in question.further_studies
        }
        places = [place for study_id in sorted({*part.study_ids, *donors}) for place in rows[study_id]]
        yield _Work(part, questions, inputs.volumes.take(places))


class _Maker:
    """Makes one part after another in a process, and keeps the planner of the last part's model."""

    def __init__(
        self,
        spec: SweepSpec,
        sights: Sequence[Sight],
        run: Run,
        arms: Sequence[Arm],
        identities: Mapping[str, Identity],
        *,
        anatomy: Anatomy,
    ) -> None:
        self._spec, self._sights, self._run = spec, sights, run
        self._arms, self._identities, self._anatomy = arms, identities, anatomy
        self._last: tuple[str, ModelPlanner | ModelError] | None = None

    def __call__(self, work: _Work) -> PartTotals:
        """Write one part and return its counts."""
        part = work.part
        if self._last is None or self._last[0] != part.model:
            self._last = part.model, self._make_planner(part.model)
        planner = self._last[1]
        if isinstance(planner, ModelError):
            return PartTotals(error=planner)
        columns = RequestColumns()
        frames_of = _Frames(self._spec.store, self._sights, work.volumes, self._anatomy)
        try:
            for study_id in part.study_ids:
                planner.add_study(columns, study_id, work.questions[study_id], frames_of)
        except ModelError as error:
            self._last = part.model, error
            return PartTotals(error=error)
        folder, name = self._run.requests(part.model), f"part-{part.number:05d}.parquet"
        offers = [*map(offer_row, columns.offers.values())]
        write_chains(folder / name, columns.stages, columns.choices, offers)
        write_examples(folder / name, columns.examples)
        tables.write_part(folder, columns.table(), schemas.REQUESTS, name)
        return PartTotals(columns.status_counts(), columns.most_frames)

    def _make_planner(self, name: str) -> ModelPlanner | ModelError:
        model_arms = [arm for arm in self._arms if arm.model.name == name]
        model, identity = model_arms[0].model, self._identities[name]
        try:
            return ModelPlanner(self._spec, model, identity, model_arms, _counter(model, identity))
        except ModelError as error:
            return error


class _Frames:
    """Opens the frames of a study of one part for a planner."""

    def __init__(self, store: Path, sights: Sequence[Sight], volumes: pa.Table, anatomy: Anatomy) -> None:
        self._store, self._sights, self._volumes, self._anatomy = store, sights, volumes, anatomy
        self._known = structures(volumes, anatomy)

    def __call__(self, study_id: str) -> StudyFrames:
        rows = self._volumes.filter(pc.equal(self._volumes["study_id"], study_id))
        features = {
            sight.encoder: read_features(self._store, rows, sight, self._anatomy) for sight in self._sights
        }
        return StudyFrames(self._known[study_id], read_digests(self._store, rows), features)


def _counter(model: ModelSpec, identity: Identity) -> TokenCounter | None:
    """Return the token counter of a model's prompts; None if nothing can count them."""
    if identity.folder is not None:
        with fault_of(model.name):
            chat = Chat.of(model, identity.folder)
        return BlamingCounter(model.name, chat)
    if model.estimates_tokens:
        assert model.image_tokens is not None
        return EstimatedTokens(model.image_tokens)
    return None
