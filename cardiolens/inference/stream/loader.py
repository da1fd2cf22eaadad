"""Load the missing requests of a study with their rendered frames."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, groupby, islice
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.inference.models.rendering import Rendering, frame_key
from cardiolens.inference.plan.control import BLANK, blank_digest
from cardiolens.inference.plan.missing import StudyWork
from cardiolens.inference.plan.request import FrameRef, Request, read_requests
from cardiolens.inference.plan.shown_examples import ShownExample, has_examples, read_part_examples
from cardiolens.inference.stream.messages import STUDY_ASKS, AskRow, PictureRow, StageRow, StudyAsks, table_of
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
from cardiolens.runtime import stopping
from cardiolens.runtime.staging import nearby
from cardiolens.study.shards import FrameParts, StoredFrame, shaped

FramePlace = tuple[str, str, int, bool]  # study_id, volume_id, idx, whether the frame is shown black
Examples = Mapping[str, Sequence[ShownExample]]  # examples by request_key
TABLE_BYTES = 4 << 20  # of frames, from which on a table takes no further study


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
        lenders = {example.study_id for own_examples in examples.values() for example in own_examples}
        remaining = iter(requests)
        volumes = self._volumes_of([*(work["study_id"] for work in works), *lenders])
        with FrameParts(nearby(self.store)) as parts:
            pictures_of = partial(self._pictures, volumes=volumes, parts=parts)
            for work in works:
                own = list(islice(remaining, len(work["rows"])))
                yield self._study(work, own, chains, examples, pictures_of)

    def _study(
        self,
        work: StudyWork,
        requests: Sequence[Request],
        chains: Mapping[str, Chain],
        examples: Examples,
        pictures_of: Callable[[str, set[FramePlace]], dict[FramePlace, PictureRow]],
    ) -> StudyAsks:
        places_of = {request.request_key: _places(request, examples) for request in requests}
        pictures: dict[FramePlace, PictureRow] = {}
        for study_id, places in groupby(sorted(set().union(*places_of.values())), itemgetter(0)):
            pictures |= pictures_of(study_id, set(places))
        asks = [
            self._ask(
                request,
                attempt,
                [pictures[place]["key"] for place in places_of[request.request_key]],
                chains.get(request.request_key),
            )
            for request, attempt in zip(requests, work["attempts"], strict=True)
        ]
        chain_plans = (chains.get(request.request_key) for request in requests)
        offers = {chain.offer.key: chain.offer for chain in chain_plans if isinstance(chain, Choice)}
        return {
            "study_id": work["study_id"],
            "asks": asks,
            "pictures": list(pictures.values()),
            "offers": [offer_row(offer) for offer in offers.values()],
        }

    def volume(self, study_id: str, volume_id: str) -> dict[int, PictureRow]:
        """Read and render all frames of a volume, by idx; for readers that ask for frames later."""
        volumes = self._volumes_of([study_id])
        rows = volumes[study_id].to_pylist()
        row = next(row for row in rows if row["volume_id"] == volume_id)
        places = {(study_id, volume_id, idx, False) for idx in range(row["n_slices"] * row["n_phases"])}
        with FrameParts(nearby(self.store)) as parts:
            pictures = self._pictures(study_id, places, volumes, parts)
        return {place[2]: picture for place, picture in pictures.items()}

    def _volumes_of(self, study_ids: Iterable[str]) -> Mapping[str, pa.Table]:
        """Return the rows of `volumes` of some studies, by study."""
        rows = self.volumes.filter(pc.is_in(self.volumes["study_id"], pa.array(study_ids, pa.string())))
        places_of: dict[str, list[int]] = {}
        for place, study_id in enumerate(rows["study_id"].to_pylist()):
            places_of.setdefault(study_id, []).append(place)
        rows = rows.take(pa.array(chain.from_iterable(places_of.values()), pa.int64()))
        starts = accumulate(map(len, places_of.values()), initial=0)
        # A slice costs nothing, and a filter for each of many small studies as much as a tenth of reading it.
        return {
            study_id: rows.slice(start, len(places))
            for (study_id, places), start in zip(places_of.items(), starts, strict=False)
        }

    def _pictures(
        self, study_id: str, places: set[FramePlace], volumes: Mapping[str, pa.Table], parts: FrameParts
    ) -> dict[FramePlace, PictureRow]:
        wanted_frames: dict[str, set[int]] = {}
        for _, volume_id, idx, _ in places:
            wanted_frames.setdefault(volume_id, set()).add(idx)
        frames = parts.frames(volumes.get(study_id, self.volumes.slice(0, 0)), wanted_frames)
        stored: dict[tuple[str, int], StoredFrame] = {
            (row["volume_id"], row["idx"]): row for row in frames.to_pylist()
        }
        return {place: self._picture(stored[place[1:3]], blank=place[3]) for place in sorted(places)}

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
        chain: Chain | None,
    ) -> AskRow:
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
