"""The case viewer: served with its frames and scripts built per request, and frozen as files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.show.local_server import LocalServer, Reply, Request, Site, number_of, png_reply, text_reply
from cardiolens.show.page.case_viewer.cases import index_of, question_cases
from cardiolens.show.page.case_viewer.item_sources import NOT_ASKED, Sources, open_sources
from cardiolens.show.page.case_viewer.pictures import (
    FRAMES,
    MASKED_SLICES,
    MASKS,
    SLICES,
    FramesByStudy,
    Picture,
    collect_frames,
    encoded,
    over,
    overlay_of,
    parse_name,
    tiled,
    write_pictures,
)
from cardiolens.show.page.case_viewer.study_layout import (
    BLOCK,
    NOT_KNOWN,
    EvidenceIndex,
    columns_of,
    evidence_index,
    lanes,
    shown_letters,
    shown_under,
    study_layout,
)
from cardiolens.show.page.embed import to_json
from cardiolens.show.page.page_data import Header
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.storage.places import Run
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.cohort import read_cohort
from cardiolens.study.overlay import Overlay
from cardiolens.study.shards import read_frames, read_volumes, shaped

_VOLUMES_KEPT = 8  # in memory: a large cine has 100 MB
_reading = Lock()  # a volume that several pictures need is read once
MOST_WORDS = 200  # characters of a search
_AS_IT_IS = "!'()*~"  # by the page's encodeURIComponent
_MOST_ARMS = 2  # side by side
MOST_ANSWERS = 10_000  # of a portable viewer; a run with no more is not sampled
SEED = 2026
_SCRIPTS = ("format.js", "words.js", "filters.js", "stage.js", "study.js", "case.js", "viewer.js")


@dataclass(frozen=True)
class Viewer:
    """Content that may be read: the viewer's page, scripts with cases, and frames of the run's studies.

    `script` returns the script at a path, with the words that are searched; None where there is none.
    """

    index: str
    script: Callable[[str, str], str | None]
    store: Path
    folder: Path  # of the studies, for their masks
    studies: tuple[str, ...]

    def read(self, request: Request) -> Reply | None:
        """What stands at an address; None where nothing may be read."""
        parts = list(request.parts)
        if parts in ([""], ["index.html"]):
            return text_reply("html", self.index)
        if parts[:1] in ([FRAMES], [MASKS], [SLICES], [MASKED_SLICES]):
            return png_reply(self._picture(parts))
        script = self.script("/".join(parts), request.query.get("words", ""))
        return None if script is None else text_reply("js", script)

    def _picture(self, parts: list[str]) -> bytes | None:
        """One frame, or a block of phases of a slice."""
        is_block = parts[0] in (SLICES, MASKED_SLICES)
        place = parse_name(parts, 2 if is_block else 1)
        if place is None or place[0] >= len(self.studies):
            return None
        number, volume_id, numbers = place
        masks = self.folder if parts[0] in (MASKS, MASKED_SLICES) else None
        try:
            with _reading:
                volume = _volume(self.store, self.studies[number], volume_id)
                overlay = _overlay(self.store, masks, self.studies[number], volume_id) if masks else None
        except InputError:
            return None
        indices = volume.block(*numbers) if is_block else volume.frame(*numbers)
        images = [
            volume.images[idx] if overlay is None else over(volume.images[idx], overlay, idx)
            for idx in indices
        ]
        if not images:
            return None
        return encoded(tiled(images, columns_of(volume.n_phases)) if is_block else images[0], fast=True)


@dataclass(frozen=True, slots=True)
class _Volume:
    images: tuple[Picture, ...]  # by canonical index
    n_phases: int

    def frame(self, idx: int) -> range:
        return range(idx, idx + 1) if idx < len(self.images) else range(0)

    def block(self, rank: int, number: int) -> range:
        """Indices of a block of phases of a slice."""
        first, end = rank * self.n_phases, (rank + 1) * self.n_phases
        return range(first + number * BLOCK, min(first + (number + 1) * BLOCK, end, len(self.images)))


@lru_cache(maxsize=_VOLUMES_KEPT)
def _volume(store: Path, study: str, volume_id: str) -> _Volume:
    """All frames of one volume."""
    volumes = _volumes(store)
    own = volumes.filter(
        pc.and_(pc.equal(volumes["study_id"], study), pc.equal(volumes["volume_id"], volume_id))
    )
    if not own.num_rows:
        raise InputError(f"{study} has no volume {volume_id}")
    n_phases, n_slices = own["n_phases"][0].as_py(), own["n_slices"][0].as_py()
    frames = read_frames(store, own, {volume_id: range(n_slices * n_phases)})
    images = (shaped(row["pixels"], row["height"], row["width"], row["channels"]) for row in frames)
    return _Volume(tuple(images), n_phases)


@lru_cache(maxsize=_VOLUMES_KEPT)
def _overlay(store: Path, masks: Path, study: str, volume_id: str) -> Overlay | None:
    return overlay_of(masks, _volumes(store), study, volume_id)


@lru_cache(maxsize=1)
def _volumes(store: Path) -> pa.Table:
    return read_volumes(store)


def viewer_server(viewer: Viewer, port: int = 0) -> LocalServer:
    """Make a server that is not yet running; port 0 takes a free port."""
    return LocalServer(Site(viewer.read, inline=True), port)


class Scripts:
    """Scripts by path.

    `endings/ARM.js`, `shown/ARM.js`, `cases/QUESTION/ARM-ARM.js`, `said/ARM.js` with words to find; of whole
    studies `studies/STUDY.js`, and `sent/QUESTION/ARM.js` with what each selector sent at each budget.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._endings = lru_cache(maxsize=1024)(sources.endings)
        self._shown = lru_cache(maxsize=1024)(self._shown_under)
        self._layout = lru_cache(maxsize=64)(self._study_layout)

    def __call__(self, path: str, words: str = "") -> str | None:
        """Return the script at a path, None if unknown; it reports a table that cannot be read."""
        address = f"{path}?words={quote(words, safe=_AS_IT_IS)}" if words else path
        try:
            content = self.content(path, words)
        except InputError as error:
            return f"cardiolens.refuse({to_json(address)},{to_json(str(error))});\n"
        return None if content is None else script_of(address, content)

    def content(self, path: str, words: str = "") -> object | None:
        """What the script at a path holds; InputError where a table of the run cannot be read."""
        name, _, kind = path.rpartition(".")
        parts = name.split("/") if kind == "js" else []
        match parts:
            case ["endings", arm] if self._arms(arm):
                return self._endings(self._arms(arm)[0])
            case ["cases", question, arms] if self._arms(arms) and self._question(question):
                keys = [(int(question), arm) for arm in self._arms(arms)]
                ((_, cases),) = question_cases(self._sources, keys, self._evidence, private=True)
                return cases
            case ["said", arm] if self._arms(arm) and 0 < len(words) <= MOST_WORDS:
                return self._sources.saying(self._arms(arm)[0], words)
            case _:
                return self._of_studies(parts)

    def _of_studies(self, parts: list[str]) -> object | None:
        """What was shown or left out of studies."""
        match parts:
            case ["shown", arm] if self._arms(arm):
                return self._shown(self._arms(arm)[0])
            case ["studies", study] if 0 <= number_of(study) < len(self._sources.studies):
                return self._layout(int(study))
            case ["sent", question, arm] if self._arms(arm) and self._question(question):
                return lanes(self._sources, int(question), self._arms(arm)[0])
            case _:
                return None

    def _shown_under(self, arm: int) -> str:
        return shown_under(self._sources, arm, self._evidence)

    def _study_layout(self, study: int) -> dict[str, Any]:
        folder = self._sources.header.specs[0].dataset.studies
        return study_layout(self._volumes, folder, self._sources.studies[study], self._anatomy)

    @cached_property
    def _evidence(self) -> EvidenceIndex:
        return evidence_index(self._sources)

    @cached_property
    def _anatomy(self) -> Anatomy:
        cohort = read_cohort(self._sources.header.specs[0].store)
        return heart() if cohort is None else cohort.organ

    @cached_property
    def _volumes(self) -> pa.Table:
        return read_volumes(self._sources.header.specs[0].store)

    def _arms(self, words: str) -> list[int]:
        """Places of arms, e.g. of `3-17`; none where one of them does not exist."""
        arms = [number_of(word) for word in words.split("-", _MOST_ARMS)]
        all_exist = len(arms) <= _MOST_ARMS and all(0 <= arm < len(self._sources.arms) for arm in arms)
        return arms if all_exist else []

    def _question(self, word: str) -> bool:
        return 0 <= number_of(word) < len(self._sources.study)


def write_viewer(run: Run, parts: Sequence[Run], header: Header, *, include_images: bool) -> None:
    """Rewrite the viewer of a run.

    Frames and report texts are written only with `include_images`, because the folder may be passed on.
    """
    folder = run.viewer
    sources, letters, words = sampled(open_sources(run, parts, header))
    keys = [(int(question), int(arm)) for question, arm in np.argwhere(letters != ord(NOT_ASKED))]
    shown = np.full(letters.shape, ord(NOT_KNOWN), np.uint8)
    evidence = evidence_index(sources)
    for (question, arm), letter in shown_letters(sources, keys, evidence).items():
        shown[question, arm] = ord(letter)
    disk.remove_tree(folder)
    for name, columns in (("endings", letters), ("shown", shown)):
        for arm in range(columns.shape[1]):
            _write(folder, f"{name}/{arm}.js", columns[:, arm].tobytes().decode())
    frames = FramesByStudy()
    for question, cases in question_cases(sources, keys, evidence, private=include_images):
        collect_frames(cases, frames)
        _write(folder, f"cases/{question}.js", cases)
    if include_images:
        write_pictures(folder, header.specs[0].store, sources.studies, frames)
    page = render_viewer(header, index_of(sources), words, images=include_images)
    disk.write_text(folder / "index.html", page)


def _write(folder: Path, path: str, content: object) -> None:
    disk.write_text(folder / path, script_of(path, content))


def sampled(sources: Sources) -> tuple[Sources, np.ndarray, str]:
    """The questions that a portable viewer holds, their endings by arm, and words on what was left out.

    With more than `MOST_ANSWERS` answers it holds as many questions of each subtask, drawn at random.
    """
    of_arms = (sources.endings(arm) for arm in range(len(sources.arms)))
    letters = np.stack([np.frombuffer(endings.encode(), np.uint8) for endings in of_arms], axis=1)
    n_answers = (letters != ord(NOT_ASKED)).sum(axis=1)
    total = int(n_answers.sum())
    if total <= MOST_ANSWERS:
        return sources, letters, f"All {total:,} answers are here."
    subtasks = np.array(sources.questions["subtask"].to_pylist())
    order = np.random.default_rng(SEED).permutation(len(subtasks))
    rank = np.zeros(len(subtasks), int)  # of a question among those of its subtask
    for subtask in np.unique(subtasks):
        own = order[subtasks[order] == subtask]
        rank[own] = np.arange(len(own))
    by_rank = order[np.argsort(rank[order], kind="stable")]
    n_held = max(1, int(np.searchsorted(np.cumsum(n_answers[by_rank]), MOST_ANSWERS, side="right")))
    ranks = np.sort(by_rank[:n_held])
    words = (
        f"A sample: {n_held:,} of {len(subtasks):,} questions are here, with all their answers "
        f"({int(n_answers[ranks].sum()):,} of {total:,}), drawn with seed {SEED}, of each subtask as many. "
        "Shares in it are not those of the run. All cases: python -m cardiolens.view"
    )
    return replace(sources, questions=sources.questions.take(ranks)), letters[ranks], words


def script_of(path: str, content: object) -> str:
    """Script that passes `content` to the viewer under its path."""
    return f"cardiolens.receive({to_json(path)},{to_json(content)});\n"


def render_viewer(
    header: Header, index: Mapping[str, object], words: str, *, images: bool, served: bool = False
) -> str:
    """Render the viewer's page; `words` say what it holds, `images` whether frames are there too."""
    run = {"name": header.name, "images": images, "served": served, "simulated": sorted(header.simulated)}
    context = {
        "name": header.name,
        "words": words,
        "run": to_json(run),
        "index": to_json(index),
        "style": asset("page.css") + asset("viewer.css"),
        "scripts": [asset(name) for name in _SCRIPTS],
    }
    return templates().get_template("viewer.html").render(context)
