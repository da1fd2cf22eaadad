"""Load the missing requests of a study with their rendered frames."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.inference.models.token_counts import Rendering, frame_key
from cardiolens.inference.plan.control import BLANK, blank_digest
from cardiolens.inference.plan.missing import StoredReply, StudyWork
from cardiolens.inference.plan.planned_study import FrameRef, ShownExample, has_examples, read_part_examples
from cardiolens.inference.plan.request import Request, read_requests
from cardiolens.inference.stream.messages import (
    STUDY_ASKS,
    AskRow,
    BackRow,
    PictureRow,
    StageRow,
    StudyAsks,
    table_of,
)
from cardiolens.protocol.dialogue.asking_back import Texts, option_texts
from cardiolens.protocol.dialogue.chain import (
    Chain,
    Samples,
    Stage,
    Steps,
    offer_row,
    read_part_chains,
    row_of,
)
from cardiolens.protocol.dialogue.frame_requests import Choice
from cardiolens.protocol.select.selection import Frame
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.runtime import stopping
from cardiolens.storage.places import Store
from cardiolens.study.frame_parts import FrameParts, VolumePlace, WantedFrames, places_of
from cardiolens.study.shards import StoredFrame, shaped

FramePlace = tuple[str, str, int, bool]  # study_id, volume_id, idx, whether the frame is shown black
Examples = Mapping[str, Sequence[ShownExample]]  # examples by request_key
TABLE_BYTES = 4 << 20  # of frames, from which on a table takes no further study


@dataclass(frozen=True)
class _StudyRequests:
    """Requests of one study, and the frames that they show, its own or of examples."""

    work: StudyWork
    requests: Sequence[Request]
    places_of_requests: Sequence[Sequence[FramePlace]]

    @cached_property
    def places(self) -> set[FramePlace]:
        return set().union(*self.places_of_requests)

    @cached_property
    def frames_of(self) -> Mapping[str, Mapping[str, set[int]]]:
        """Indices to read by study and volume."""
        frames: dict[str, dict[str, set[int]]] = {}
        for study_id, volume_id, idx, _ in self.places:
            frames.setdefault(study_id, {}).setdefault(volume_id, set()).add(idx)
        return frames


@dataclass(frozen=True)
class StudyLoader:
    """Callable for Ray Data: a block of WORK rows in, STUDY_ASKS tables of one row per study out.

    Each frame of a study is read and rendered once, even if many requests show it. Small studies come
    several in a table, before each of which the driver is asked whether the run stops. A table is passed on
    once its frames reach `TABLE_BYTES`, so that those of a whole block need not be in memory.
    """

    store: Path
    volumes: pa.Table  # rows of the table `volumes`
    rendering: Rendering
    tells_questions: bool  # True only for a reader of the truth or of a person's readings
    asking_back: frozenset[str] = frozenset()  # arms that ask back

    def __call__(self, block: pa.Table) -> Iterator[pa.Table]:
        parts = groupby(block.to_pylist(), key=itemgetter("part"))
        studies = (study for part, works in parts for study in self._studies(Path(part), list(works)))
        for together in _together(studies):
            if stopping.driver_stopping():  # nothing more will be asked
                yield STUDY_ASKS.empty_table()
                return
            yield table_of(together)

    def _studies(self, part: Path, works: Sequence[StudyWork]) -> Iterator[StudyAsks]:
        """Yield the studies whose requests are in one part, which is read once."""
        requests = read_requests(part, [row for work in works for row in work["rows"]])
        chains = read_part_chains(part) if any(request.stage for request in requests) else {}
        examples = (
            read_part_examples(part) if any(has_examples(request.flags) for request in requests) else {}
        )
        qa_ids = [request.qa_id for request in requests if self._asks_back(request)]
        texts = option_texts(Store(self.store).questions, pa.array(qa_ids)) if qa_ids else {}
        remaining = iter(requests)
        requests_of = [(work, list(islice(remaining, len(work["rows"])))) for work in works]
        studies = [
            _StudyRequests(work, asked, [_places(request, examples) for request in asked])
            for work, asked in requests_of
        ]
        volumes = self._volumes_of({study_id for study in studies for study_id in study.frames_of})
        shown_frames = [
            WantedFrames(volumes.get(study_id, ()), frames_of)
            for study in studies
            for study_id, frames_of in study.frames_of.items()
        ]
        with FrameParts(self.store) as parts:
            frames = parts.frames(shown_frames)
            for study in studies:
                stored = chain.from_iterable(next(frames) for _ in study.frames_of)
                yield self._study(study, chains, self._pictures(study.places, stored), texts)

    def _asks_back(self, request: Request) -> bool:
        return request.arm_id in self.asking_back and request.answer_type not in OPEN

    def _study(
        self,
        study: _StudyRequests,
        chains: Mapping[str, Chain],
        pictures: Mapping[FramePlace, PictureRow],
        texts: Mapping[str, Texts],
    ) -> StudyAsks:
        work = study.work
        replies = work["replies"] or [None] * len(work["rows"])
        backs = [
            _back(request, texts[request.qa_id], reply) if self._asks_back(request) else None
            for request, reply in zip(study.requests, replies, strict=True)
        ]
        asks = [
            self._ask(request, attempt, [pictures[place]["key"] for place in places], chains, back)
            for request, attempt, places, back in zip(
                study.requests, work["attempts"], study.places_of_requests, backs, strict=True
            )
        ]
        chain_plans = (chains.get(request.request_key) for request in study.requests)
        offers = {chain.offer.key: chain.offer for chain in chain_plans if isinstance(chain, Choice)}
        return {
            "study_id": study.work["study_id"],
            "asks": asks,
            "pictures": list(pictures.values()),
            "offers": [offer_row(offer) for offer in offers.values()],
        }

    def volume(self, study_id: str, volume_id: str) -> dict[int, PictureRow]:
        """Read and render all frames of a volume, by idx; for readers that ask for frames later."""
        places = self._volumes_of({study_id})[study_id]
        volume = next(place for place in places if place["volume_id"] == volume_id)
        indices = range(volume["n_slices"] * volume["n_phases"])
        with FrameParts(self.store) as parts:
            stored = next(parts.frames([WantedFrames([volume], {volume_id: indices})]))
        return {row["idx"]: self._picture(row, blank=False) for row in stored}

    def _volumes_of(self, study_ids: Collection[str]) -> Mapping[str, list[VolumePlace]]:
        """Return where the volumes of some studies are stored, by study."""
        rows = self.volumes.filter(pc.is_in(self.volumes["study_id"], pa.array(study_ids, pa.string())))
        by_study: dict[str, list[VolumePlace]] = {}
        for place in places_of(rows):
            by_study.setdefault(place["study_id"], []).append(place)
        return by_study

    def _pictures(
        self, places: Collection[FramePlace], frames: Iterable[StoredFrame]
    ) -> dict[FramePlace, PictureRow]:
        stored = {(row["study_id"], row["volume_id"], row["idx"]): row for row in frames}
        return {place: self._picture(stored[place[:3]], blank=place[3]) for place in sorted(places)}

    def _picture(self, frame: StoredFrame, *, blank: bool) -> PictureRow:
        stored = shaped(frame["pixels"], frame["height"], frame["width"], frame["channels"])
        pixels = self.rendering.apply(np.zeros_like(stored) if blank else stored)
        height, width = pixels.shape[:2]
        digest = blank_digest(frame["digest"]) if blank else frame["digest"]
        key = frame_key(digest, self.rendering.digest)
        return {
            "key": key,
            "height": height,
            "width": width,
            "channels": frame["channels"],
            "pixels": np.ascontiguousarray(pixels).data,
        }

    def _ask(
        self,
        request: Request,
        attempt: int,
        frame_keys: Sequence[str],
        chains: Mapping[str, Chain],
        back: BackRow | None,
    ) -> AskRow:
        chain = chains.get(request.request_key)
        return {
            "request_key": request.request_key,
            "system": request.system,
            "text": request.prompt,
            "frame_keys": frame_keys,
            "answer_type": request.answer_type,
            "option_keys": request.option_keys,
            "max_tokens": request.max_tokens,
            "constraint": request.constraint.text,
            "attempt": attempt,
            "arm_id": request.arm_id if self.tells_questions else None,
            "qa_id": request.qa_id if self.tells_questions else None,
            "stages": [_stage(stage) for stage in chain.stages]
            if isinstance(chain, Steps | Samples)
            else None,
            "choice": row_of(request.request_key, chain) if isinstance(chain, Choice) else None,
            "back": back,
        }


def _together(studies: Iterable[StudyAsks]) -> Iterator[list[StudyAsks]]:
    """Yield runs of studies, each with `TABLE_BYTES` of frames or more; the last may have less."""
    run: list[StudyAsks] = []
    held = 0
    for study in studies:
        run.append(study)
        held += sum(row["height"] * row["width"] * row["channels"] for row in study["pictures"])
        if held >= TABLE_BYTES:
            yield run
            run, held = [], 0
    if run:
        yield run


def _back(request: Request, texts: Texts, reply: StoredReply | None) -> BackRow:
    displayed = [texts[key] for key in request.option_keys]
    return {"texts": displayed, "exclusive": request.exclusive, "reply": reply}


def _stage(stage: Stage) -> StageRow:
    return {
        "prompt": stage.prompt,
        "max_tokens": stage.max_tokens,
        "key": stage.key,
        "seed": stage.seed,
        "temperature": stage.temperature,
    }


def _places(request: Request, examples: Examples) -> list[FramePlace]:
    """Return the frame places of a request in the order shown, those of its examples first."""
    blank = BLANK in request.flags
    shows_examples = has_examples(request.flags)
    before = examples.get(request.request_key, ()) if shows_examples else ()
    lists: list[tuple[str, Sequence[Frame | FrameRef]]] = [
        (example.study_id, example.frames) for example in before
    ]
    lists.append((request.frames_study_id or "", request.frames))
    return [(study, frame.volume_id, frame.idx, blank) for study, frames in lists for frame in frames]
