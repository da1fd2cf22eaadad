"""The portable case viewer: the served page and its scripts, frozen for some questions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cardiolens.base import disk
from cardiolens.show.page.case_viewer.cases import index_of, question_cases
from cardiolens.show.page.case_viewer.item_sources import NOT_ASKED, Sources, open_sources
from cardiolens.show.page.case_viewer.pictures import FramesByStudy, collect_frames, write_pictures
from cardiolens.show.page.case_viewer.study_layout import NOT_KNOWN, evidence_index, shown_letters
from cardiolens.show.page.embed import to_json
from cardiolens.show.page.page_data import Header
from cardiolens.show.page.page_rendering import asset, templates
from cardiolens.storage.places import Run

MOST_ANSWERS = 10_000  # of a portable viewer; a run with no more is not sampled
SEED = 2026
_SCRIPTS = ("format.js", "words.js", "filters.js", "stage.js", "study.js", "case.js", "viewer.js")


def write_viewer(run: Run, parts: Sequence[Run], header: Header, *, include_images: bool) -> Path:
    """Rewrite the viewer of a run and return the path of its page.

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
    return folder / "index.html"


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
