"""Load the missing requests of a study with their rendered frames, and hand them to a replica."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.inference.engine.ask import Ask, Pictures
from cardiolens.inference.models.token_counts import Rendering, frame_key
from cardiolens.inference.plan.few_shot import has_examples, read_example_frames
from cardiolens.inference.plan.frame_views import BLANK, blank_digest
from cardiolens.inference.plan.missing import StudyWork
from cardiolens.protocol.dialogue.chain import FrameRef
from cardiolens.protocol.tasks.legal import constraint_of
from cardiolens.runtime import stopping
from cardiolens.storage import tables
from cardiolens.storage.schemas import REQUESTS
from cardiolens.study.shards import FrameParts, StoredFrame, VolumePlace, WantedFrames, places_of, shaped

PICTURE = pa.struct(
    [
        ("key", pa.string()),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("channels", pa.int32()),
        ("pixels", pa.large_binary()),
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
STUDY_ASKS = pa.schema(
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
AskRow = Mapping[str, Any]
"""A row of ASK."""


class PictureRow(TypedDict):
    """A row of PICTURE: one rendered frame, uint8, row by row."""

    key: str
    height: int
    width: int
    channels: int
    pixels: bytes


class StudyAsks(TypedDict):
    """A row of STUDY_ASKS: missing requests of one study, and every frame they show, once."""

    study_id: str
    part: str
    asks: Sequence[AskRow]
    pictures: Sequence[PictureRow]


CompletionRow = dict[str, Any]
"""A row of the `completions` table, without `written_at`, which the writer adds."""


def counters_of(progress: pa.Table) -> Counter[str]:
    """Sum rows of PROGRESS by counter."""
    counters: Counter[str] = Counter()
    for counted in progress["counters"].to_pylist():
        counters.update(dict(counted))
    return counters


def stage_counter(stage: int) -> str:
    """Return the counter name of the requests of a chain stage; the first stage is 0."""
    return f"stage_{stage}"


def studies_of(block: pa.Table) -> list[StudyAsks]:
    """Return the rows of a STUDY_ASKS table."""
    studies: list[StudyAsks] = block.to_pylist()
    return studies


def ask_of(row: AskRow, *, names_question: bool = False) -> Ask:
    """Return the request of a row as an engine sees it; with `names_question`, with its arm and question."""
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


def pictures_of(rows: Sequence[PictureRow]) -> Pictures:
    """Return a function from frame key to pixels."""
    by_key = {row["key"]: row for row in rows}
    return lambda key: pixels_of(by_key[key])


def pixels_of(row: PictureRow) -> np.ndarray:
    """Return the pixels of a frame, without copying."""
    return shaped(row["pixels"], row["height"], row["width"], row["channels"])


TABLE_BYTES = 4 << 20  # of frames, from which on a table takes no further study
_COLUMNS = (*OF_REQUEST, "frames_study_id", "frames", "flags")


class _ShownFrame(NamedTuple):
    """A frame that a request shows."""

    study_id: str
    volume_id: str
    idx: int
    blank: bool


class _Study(NamedTuple):
    """The missing requests of one study as rows of ASK, and the frames that each shows."""

    work: StudyWork
    asks: Sequence[dict[str, Any]]
    shown: Sequence[Sequence[_ShownFrame]]

    def frames_of(self) -> Mapping[str, Mapping[str, set[int]]]:
        """Indices to read by study and volume, the study's own and those of examples."""
        frames: dict[str, dict[str, set[int]]] = {}
        for frame in chain.from_iterable(self.shown):
            frames.setdefault(frame.study_id, {}).setdefault(frame.volume_id, set()).add(frame.idx)
        return frames


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
        studies = (study for part, works in parts for study in self._studies(part, list(works)))
        for together in _together(studies):
            if stopping.driver_stopping():  # nothing more will be asked
                yield STUDY_ASKS.empty_table()
                return
            yield pa.Table.from_pylist(together, schema=STUDY_ASKS)

    def volume(self, study_id: str, volume_id: str) -> dict[int, PictureRow]:
        """Read and render all frames of a volume, by idx; for readers that ask for frames later."""
        places = self._volumes_of({study_id})[study_id]
        volume = next(place for place in places if place["volume_id"] == volume_id)
        indices = range(volume["n_slices"] * volume["n_phases"])
        stored = next(FrameParts(self.store).frames([WantedFrames([volume], {volume_id: indices})]))
        return {row["idx"]: self._picture(row, blank=False) for row in stored}

    def _studies(self, part: str, works: Sequence[StudyWork]) -> Iterator[StudyAsks]:
        """Yield the studies with requests in one part, which is read once."""
        studies = list(_read(Path(part), works))
        frames_of = [study.frames_of() for study in studies]
        volumes = self._volumes_of(set().union(*frames_of))
        wanted_frames = [
            WantedFrames(volumes.get(study_id, ()), frames)
            for own in frames_of
            for study_id, frames in own.items()
        ]
        stored = FrameParts(self.store).frames(wanted_frames)
        for study, own in zip(studies, frames_of, strict=True):
            pictures = self._pictures(study, chain.from_iterable(next(stored) for _ in own))
            for ask, shown in zip(study.asks, study.shown, strict=True):
                ask["frame_keys"] = [pictures[frame]["key"] for frame in shown]
            yield {
                "study_id": study.work["study_id"],
                "part": part,
                "asks": study.asks,
                "pictures": list(pictures.values()),
            }

    def _volumes_of(self, study_ids: Collection[str]) -> Mapping[str, list[VolumePlace]]:
        """Return where the volumes of some studies are stored, by study."""
        rows = self.volumes.filter(pc.is_in(self.volumes["study_id"], pa.array(study_ids, pa.string())))
        by_study: dict[str, list[VolumePlace]] = {}
        for place in places_of(rows):
            by_study.setdefault(place["study_id"], []).append(place)
        return by_study

    def _pictures(self, study: _Study, frames: Iterable[StoredFrame]) -> dict[_ShownFrame, PictureRow]:
        stored = {(row["study_id"], row["volume_id"], row["idx"]): row for row in frames}
        return {
            frame: self._picture(stored[frame[:3]], blank=frame.blank)
            for frame in sorted(set(chain.from_iterable(study.shown)))
        }

    def _picture(self, frame: StoredFrame, *, blank: bool) -> PictureRow:
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


def _read(part: Path, works: Sequence[StudyWork]) -> Iterator[_Study]:
    """Yield the requests of studies in one part."""
    rows = [row for work in works for row in work["rows"]]
    requests = tables.read_part(part, REQUESTS, _COLUMNS).take(pa.array(rows, pa.int32())).to_pylist()
    any_examples = any(has_examples(request["flags"]) for request in requests)
    examples = read_example_frames(part) if any_examples else {}
    remaining = iter(requests)
    for work in works:
        asks, shown = list[dict[str, Any]](), list[list[_ShownFrame]]()
        for attempt in work["attempts"]:
            request = next(remaining)
            own = [(request["frames_study_id"], FrameRef(**frame)) for frame in request["frames"]]
            frames = [*examples.get(request["request_key"], ()), *own]
            blank = BLANK in request["flags"]
            shown.append([_ShownFrame(study_id, *frame, blank) for study_id, frame in frames])
            asks.append({name: request[name] for name in OF_REQUEST} | {"attempt": attempt})
        yield _Study(work, asks, shown)


def _together(studies: Iterable[StudyAsks]) -> Iterator[list[StudyAsks]]:
    """Yield runs of studies, each with `TABLE_BYTES` of frames or more; the last may have less."""
    run: list[StudyAsks] = []
    n_bytes = 0
    for study in studies:
        run.append(study)
        n_bytes += sum(row["height"] * row["width"] * row["channels"] for row in study["pictures"])
        if n_bytes >= TABLE_BYTES:
            yield run
            run, n_bytes = [], 0
    if run:
        yield run
