"""Writing of the portable case viewer: a page, and a script per study that the page loads on demand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cardiolens.base import disk
from cardiolens.show.page.case_viewer.cases import index_of, study_cases
from cardiolens.show.page.case_viewer.item_sources import CaseKey, Sources, open_sources
from cardiolens.show.page.case_viewer.pictures import FramesByStudy, collect_frames, write_pictures
from cardiolens.show.page.case_viewer.sample import sample_of
from cardiolens.show.page.case_viewer.sent_frames import evidence_index, shown_letters
from cardiolens.show.page.embed import to_json
from cardiolens.show.page.page_data import Header
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.storage.places import Run

_SCRIPTS = ("format.js", "words.js", "filters.js", "stage.js", "study.js", "case.js", "viewer.js")


def write_viewer(run: Run, parts: Sequence[Run], header: Header, *, include_images: bool) -> Path:
    """Rewrite the viewer of a run and return the path of its page.

    Frames and report texts are written only with `include_images`, because the folder may be passed on.
    """
    folder = run.viewer
    sources = open_sources(run, parts, header)
    letters = sources.every_ending()
    sample = sample_of(letters, sources.questions["subtask"].to_pylist(), header.arms)
    disk.remove_tree(folder)
    frames = FramesByStudy()
    for number, cases in study_cases(sources, sample.keys, private=include_images):
        collect_frames(cases, frames)
        path = f"cases/{number}.js"
        disk.write_text(folder / path, script_of(path, cases))
    if include_images:
        write_pictures(folder, header.specs[0].store, sources.studies, frames)
    index = portable_index(
        sources, sample.keys, letters, shown_letters(sources, sample.keys, evidence_index(sources))
    )
    page = render_viewer(header, index, sample.words, images=include_images, sampled=not sample.complete)
    disk.write_text(folder / "index.html", page)
    return folder / "index.html"


def portable_index(
    sources: Sources, keys: Sequence[CaseKey], letters: np.ndarray, shown_of: Mapping[CaseKey, str]
) -> dict[str, object]:
    """The list of cases, with the ending of each sampled arm, and where known whether evidence was shown."""
    endings: dict[int, dict[int, str]] = {}
    evidence: dict[int, dict[int, str]] = {}
    for question, arm in keys:
        endings.setdefault(question, {})[arm] = chr(letters[question, arm])
        if (question, arm) in shown_of:
            evidence.setdefault(question, {})[arm] = shown_of[question, arm]
    index = index_of(sources)
    questions = [
        [*index["questions"][at], endings[at], *([evidence[at]] if at in evidence else [])]
        for at in sorted(endings)
    ]
    return index | {"questions": questions}


def script_of(path: str, content: object) -> str:
    """Script that passes `content` to the viewer under its path."""
    return f"cardiolens.receive({to_json(path)},{to_json(content)});\n"


def render_viewer(
    header: Header,
    index: Mapping[str, object],
    words: str,
    *,
    images: bool,
    served: bool = False,
    sampled: bool = False,
) -> str:
    """Render the viewer's page; `words` say what it holds, `images` whether frames are there too."""
    run = {"name": header.name, "images": images, "served": served, "sampled": sampled}
    run |= {"simulated": sorted(header.simulated)}
    context = {
        "name": header.name,
        "words": words,
        "run": to_json(run),
        "index": to_json(index),
        "style": asset("page.css") + asset("viewer.css"),
        "scripts": [asset(name) for name in _SCRIPTS],
    }
    return templates().get_template("viewer.html").render(context)
