"""The case viewer: served with its frames and scripts built per request, and frozen as files."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.show.local_server import LocalServer, Reply, Request, Site, number_of, png_reply, text_reply
from cardiolens.show.page.case_viewer.cases import index_of, question_cases
from cardiolens.show.page.case_viewer.item_sources import NOT_ASKED, Sources, open_sources
from cardiolens.show.page.case_viewer.pictures import FRAMES, StudyPictures
from cardiolens.show.page.case_viewer.study_layout import NOT_KNOWN, lanes, shown_under, study_layout
from cardiolens.show.page.embed import to_json
from cardiolens.show.page.page_data import Header
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.storage.places import Run

MOST_WORDS = 200  # characters of a search
_AS_IT_IS = "!'()*~"  # by the page's encodeURIComponent
_MOST_ARMS = 2  # side by side
MOST_ANSWERS = 10_000  # of a portable viewer; a run with no more is not sampled
SEED = 2026
_SCRIPTS = ("format.js", "words.js", "filters.js", "stage.js", "study.js", "case.js", "viewer.js")


class Viewer:
    """Content that may be read of a run: the viewer's page, scripts with cases, and pictures of its studies.

    Scripts are `endings/ARM.js`, `shown/ARM.js`, `cases/QUESTION/ARM-ARM.js`, and `said/ARM.js` with words to
    find; of whole studies `studies/STUDY.js`, and `sent/QUESTION/ARM.js` with what each selector sent at each
    budget. Nothing is written.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._arms, self._questions = range(len(sources.arms)), range(len(sources.study))
        self._pictures = pictures_of(sources)
        words = "All answers of the run, read from its tables as you open them."
        self.index = render_viewer(sources, words, images=True, served=True)

    def read(self, request: Request) -> Reply | None:
        """What stands at an address; None where nothing may be read."""
        path = "/".join(request.parts)
        if [*request.parts] in ([""], ["index.html"]):
            return text_reply("html", self.index)
        with suppress(InputError):
            if (picture := self._pictures.at(path)) is not None:
                return png_reply(picture)
        script = self.script(path, request.query.get("words", ""))
        return None if script is None else text_reply("js", script)

    def script(self, path: str, words: str = "") -> str | None:
        """Return the script at a path, None if unknown; it reports a table that cannot be read."""
        address = f"{path}?words={quote(words, safe=_AS_IT_IS)}" if words else path
        try:
            content = self.content(path, words)
        except InputError as error:
            return f"cardiolens.refuse({to_json(address)},{to_json(str(error))});\n"
        return None if content is None else _script_of(address, content)

    def content(self, path: str, words: str = "") -> object | None:
        """What the script at a path holds; InputError where a table of the run cannot be read."""
        kind, *parts = path.removesuffix(".js").split("/") if path.endswith(".js") else [""]
        sources = self._sources
        content: object | None = None
        match kind, [[number_of(place) for place in part.split("-")] for part in parts]:
            case "endings", [[arm]] if arm in self._arms:
                content = sources.endings(arm)
            case "shown", [[arm]] if arm in self._arms:
                content = shown_under(sources, arm)
            case "said", [[arm]] if arm in self._arms and 0 < len(words) <= MOST_WORDS:
                content = sources.saying(arm, words)
            case "cases", [[question], arms] if question in self._questions and len(arms) <= _MOST_ARMS:
                if all(arm in self._arms for arm in arms):
                    keys = [(question, arm) for arm in arms]
                    ((_, content),) = question_cases(sources, keys, private=True)
            case "sent", [[question], [arm]] if question in self._questions and arm in self._arms:
                content = lanes(sources, question, arm)
            case "studies", [[study]] if 0 <= study < len(sources.studies):
                content = study_layout(self._pictures, sources.studies[study])
        return content


def pictures_of(sources: Sources) -> StudyPictures:
    """The pictures of the studies of a run."""
    spec = sources.header.specs[0]
    return StudyPictures(spec.store, spec.dataset.studies, sources.studies, spec.dataset.roots)


def viewer_server(viewer: Viewer, port: int = 0) -> LocalServer:
    """Make a server that is not yet running; port 0 takes a free port."""
    return LocalServer(Site(viewer.read, inline=True), port)


def write_viewer(run: Run, parts: Sequence[Run], header: Header, *, include_images: bool) -> None:
    """Rewrite the viewer of a run.

    Frames and report texts are written only with `include_images`, because the folder may be passed on.
    """
    sources, letters, words = sampled(open_sources(run, parts, header))
    keys = [(int(question), int(arm)) for question, arm in np.argwhere(letters != ord(NOT_ASKED))]
    shown = np.full(letters.shape, ord(NOT_KNOWN), np.uint8)
    paths: set[str] = set()
    with disk.draft_folder(run.viewer) as folder:
        for question, content in question_cases(sources, keys, private=include_images):
            for arms in content["cases"].values():
                for arm, case in arms.items():
                    shown[question, arm] = ord(case["shown"])
                    if include_images and case["frames_of"] is not None:
                        places, stem = content["frames"][case["frames"]], f"{FRAMES}/{case['frames_of']}"
                        paths |= {f"{stem}/{volume_id}-{idx}.png" for volume_id, idx in places}
            _write(folder, f"cases/{question}.js", content)
        for name, columns in (("endings", letters), ("shown", shown)):
            for arm, column in enumerate(columns.T):
                _write(folder, f"{name}/{arm}.js", column.tobytes().decode())
        pictures = pictures_of(sources)
        for path in sorted(paths):
            if (picture := pictures.at(path, fast=False)) is not None:
                disk.write_draft(folder / path, picture)
        page = render_viewer(sources, words, images=include_images)
        disk.write_draft(folder / "index.html", page.encode())
        disk.remove_tree(run.viewer)


def _write(folder: Path, path: str, content: object) -> None:
    disk.write_draft(folder / path, _script_of(path, content).encode("utf-8", "surrogatepass"))


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


def _script_of(path: str, content: object) -> str:
    """Script that passes `content` to the viewer under its path."""
    return f"cardiolens.receive({to_json(path)},{to_json(content)});\n"


def render_viewer(sources: Sources, words: str, *, images: bool, served: bool = False) -> str:
    """Render the viewer's page; `words` say what it holds, `images` whether frames are there too."""
    header = sources.header
    run = {"name": header.name, "images": images, "served": served, "simulated": sorted(header.simulated)}
    context = {
        "name": header.name,
        "words": words,
        "run": to_json(run),
        "index": to_json(index_of(sources)),
        "style": asset("page.css") + asset("viewer.css"),
        "scripts": [asset(name) for name in _SCRIPTS],
    }
    return templates().get_template("viewer.html").render(context)
