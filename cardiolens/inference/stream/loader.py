"""Load the missing requests of a study with their rendered frames, and hand them to a replica."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.inference.engine.ask import Ask
from cardiolens.inference.models.token_counts import Rendering, frame_key
from cardiolens.inference.plan.few_shot import has_examples, read_example_frames
from cardiolens.inference.plan.frame_views import BLANK, blank_digest
from cardiolens.inference.plan.missing import StudyWork
from cardiolens.protocol.dialogue.chain import FrameRef
from cardiolens.protocol.tasks.legal import constraint_of
from cardiolens.runtime import stopping
from cardiolens.storage import tables
from cardiolens.storage.schemas import REQUESTS
from cardiolens.study.shards import FrameParts, StoredFrame, VolumePlace, places_of, shaped

PICTURE = pa.struct(  # one rendered frame
    [
        ("key", pa.string()),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("channels", pa.int32()),
        ("pixels", pa.large_binary()),  # uint8, row by row
    ]
)
OF_REQUEST = (
    *("request_key", "arm_id", "qa_id", "system", "prompt", "answer_format", "answer_type", "option_keys"),
    *("exclusive", "max_tokens", "stage"),
)  # columns of REQUESTS that a replica needs
ASK = pa.struct(
    [
        *map(REQUESTS.field, OF_REQUEST),
        ("frame_keys", pa.list_(pa.string())),  # in the order of the marks in the prompt
        ("attempt", pa.int32()),
    ]
)
STUDY_ASKS = pa.schema(  # missing requests of one study, and every frame they show, once
    [
        ("study_id", pa.string()),
        ("part", pa.string()),  # of `requests`, beside which the chains are
        ("asks", pa.list_(ASK)),
        ("pictures", pa.list_(PICTURE)),
    ]
)
PROGRESS = pa.schema(
    [
        ("study_id", pa.string()),
        ("seat", pa.string()),  # <Ray node>:<GPUs of the node that the replica sees>
        ("counters", pa.map_(pa.string(), pa.int64())),  # of the replica, since its last row
    ]
)
Row = dict[str, Any]
"""A row of STUDY_ASKS, of its lists, or of a table, by column."""


def counters_of(progress: pa.Table) -> Counter[str]:
    """Sum rows of PROGRESS by counter."""
    counters: Counter[str] = Counter()
    for counted in progress["counters"].to_pylist():
        counters.update(dict(counted))
    return counters


def stage_counter(stage: int) -> str:
    """Return the counter name of the requests of a chain stage; the first stage is 0."""
    return f"stage_{stage}"


def ask_of(row: Row, *, names_question: bool = False) -> Ask:
    """Return the request of a row of ASK; with `names_question`, with its arm and question."""
    option_keys, exclusive = tuple(row["option_keys"]), tuple(row["exclusive"] or ())
    return Ask(
        request_key=row["request_key"],
        system=row["system"],
        text=row["prompt"],
        frame_keys=tuple(row["frame_keys"]),
        answer_type=row["answer_type"],
        option_keys=option_keys,
        max_tokens=row["max_tokens"],
        constraint=constraint_of(row["answer_format"], row["answer_type"], option_keys, exclusive),
        attempt=row["attempt"],
        arm_id=row["arm_id"] if names_question else None,
        qa_id=row["qa_id"] if names_question else None,
    )


TABLE_BYTES = 4 << 20  # of frames, from which on a table takes no further study
_COLUMNS = (*OF_REQUEST, "frames_study_id", "frames", "flags")


class _ShownFrame(NamedTuple):
    """A frame that a request shows."""

    study_id: str
    volume_id: str
    idx: int
    blank: bool


@dataclass(frozen=True)
class StudyLoader:
    """Callable for Ray Data: a block of WORK rows in, STUDY_ASKS tables of one row per study out.

    Each frame of a study is read and rendered once, even if many requests show it. Small studies share
    a table. A table is passed on once its frames reach `TABLE_BYTES`, so that those of a whole block need not
    be in memory; the driver is asked before each whether the run stops.
    """

    store: Path
    volumes: pa.Table  # rows of the table `volumes`
    rendering: Rendering

    def __call__(self, block: pa.Table) -> Iterator[pa.Table]:
        parts = groupby(block.to_pylist(), key=itemgetter("part"))
        studies = (study for part, works in parts for study in self._studies(Path(part), list(works)))
        for together in _together(studies):
            if stopping.driver_stopping():  # nothing more will be asked
                yield STUDY_ASKS.empty_table()
                return
            yield pa.Table.from_pylist(together, schema=STUDY_ASKS)

    def volume(self, study_id: str, volume_id: str) -> dict[int, Row]:
        """Read and render all frames of a volume, by idx; for readers that ask for frames later."""
        volumes = self._volumes_of({study_id})
        volume = next(place for place in volumes[study_id] if place["volume_id"] == volume_id)
        indices = range(volume["n_slices"] * volume["n_phases"])
        shown = [_ShownFrame(study_id, volume_id, idx, blank=False) for idx in indices]
        pictures = self._pictures(shown, volumes, FrameParts(self.store))
        return {frame.idx: picture for frame, picture in pictures.items()}

    def _studies(self, part: Path, works: Sequence[StudyWork]) -> Iterator[Row]:
        """Yield the studies with requests in one part, which is read once."""
        rows = [row for work in works for row in work["rows"]]
        requests = tables.read_part(part, REQUESTS, _COLUMNS).take(pa.array(rows, pa.int32())).to_pylist()
        any_examples = any(has_examples(request["flags"]) for request in requests)
        examples = read_example_frames(part) if any_examples else {}
        for request in requests:
            request["shown"] = _shown(request, examples.get(request["request_key"], ()))
        volumes = self._volumes_of({frame.study_id for request in requests for frame in request["shown"]})
        parts, remaining = FrameParts(self.store), iter(requests)
        for work in works:
            asks = [{**next(remaining), "attempt": attempt} for attempt in work["attempts"]]
            shown = chain.from_iterable(ask["shown"] for ask in asks)
            pictures = self._pictures(shown, volumes, parts)
            for ask in asks:
                ask["frame_keys"] = [pictures[frame]["key"] for frame in ask["shown"]]
            yield {
                "study_id": work["study_id"],
                "part": str(part),
                "asks": asks,
                "pictures": list(pictures.values()),
            }

    def _volumes_of(self, study_ids: Collection[str]) -> Mapping[str, list[VolumePlace]]:
        """Return where the volumes of some studies are stored, by study."""
        rows = self.volumes.filter(pc.is_in(self.volumes["study_id"], pa.array(study_ids, pa.string())))
        by_study: dict[str, list[VolumePlace]] = {}
        for place in places_of(rows):
            by_study.setdefault(place["study_id"], []).append(place)
        return by_study

    def _pictures(
        self, shown: Iterable[_ShownFrame], volumes: Mapping[str, list[VolumePlace]], parts: FrameParts
    ) -> dict[_ShownFrame, Row]:
        """Read and render the frames of a study, and those of examples, each once."""
        frames = sorted(set(shown))
        stored = {
            (study_id, row["volume_id"], row["idx"]): row
            for study_id, of_study in groupby(frames, key=itemgetter(0))
            for row in parts.frames(volumes.get(study_id, ()), _indices_of(of_study))
        }
        return {frame: self._picture(stored[frame[:3]], blank=frame.blank) for frame in frames}

    def _picture(self, frame: StoredFrame, *, blank: bool) -> Row:
        stored = shaped(frame["pixels"], frame["height"], frame["width"], frame["channels"])
        pixels = self.rendering.apply(np.zeros_like(stored) if blank else stored)
        height, width = pixels.shape[:2]
        digest = blank_digest(frame["digest"]) if blank else frame["digest"]
        return {
            "key": frame_key(digest, self.rendering.digest),
            "height": height,
            "width": width,
            "channels": frame["channels"],
            "pixels": pixels.tobytes(),
        }


def _shown(request: Row, of_examples: Sequence[tuple[str, FrameRef]]) -> list[_ShownFrame]:
    """Return the frames of a request in order: those of its examples, and its own."""
    own = [(request["frames_study_id"], FrameRef(**frame)) for frame in request["frames"]]
    blank = BLANK in request["flags"]
    return [_ShownFrame(study_id, *frame, blank) for study_id, frame in (*of_examples, *own)]


def _indices_of(frames: Iterable[_ShownFrame]) -> dict[str, list[int]]:
    """Return the indices of one study's frames by volume."""
    return {name: [frame.idx for frame in own] for name, own in groupby(frames, key=itemgetter(1))}


def _together(studies: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield runs of studies, each with `TABLE_BYTES` of frames or more; the last may have less."""
    run: list[Row] = []
    n_bytes = 0
    for study in studies:
        run.append(study)
        n_bytes += sum(len(picture["pixels"]) for picture in study["pictures"])
        if n_bytes >= TABLE_BYTES:
            yield run
            run, n_bytes = [], 0
    if run:
        yield run
