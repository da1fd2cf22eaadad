"""Captions are true of the pixels of their frames, from the NIfTI file to the picture that an engine gets.

The pixels of each frame are a code of its volume, slice and phase, so one slice or phase off, a swapped frame
or a caption that is one too far shows here, whoever chose the frames.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from small_cohort import questions_of, reader, sweep_spec, swept
from study_folders import study, volume

from cardiolens.config.dataset import Windows
from cardiolens.inference.engine.ask import Ask, Engine, Pictures, Reply
from cardiolens.protocol.tasks.questions import write_questions
from cardiolens.study.cohort import Cohort, write_cohort
from cardiolens.study.group import prepare_group

VIEWS = {  # slices, phases
    "cine_sax": (5, 7),
    "cine_4ch": (1, 7),
    "lge_sax": (6, 1),
    "lge_4ch": (1, 1),
    "perf_sax": (3, 9),
    "t2_sax": (4, 1),
}
CODE = {
    ("cine", "short axis"): "cine_sax",
    ("cine", "four-chamber long axis"): "cine_4ch",
    ("late gadolinium enhancement", "short axis"): "lge_sax",
    ("late gadolinium enhancement", "four-chamber long axis"): "lge_4ch",
    ("first-pass perfusion", "short axis"): "perf_sax",
    ("T2-weighted", "short axis"): "t2_sax",
}
SIDE = 16
CAPTION = re.compile(
    r"^Frame (\d+): ([^,]+), (.+?)"
    r"(?:, slice (\d+) of (\d+) \(base to apex\))?(?:, (?:phase|time) (\d+) of (\d+))?$",
    re.MULTILINE,
)
SELECTORS = [
    {"name": "clinical", "kind": "clinical"},
    {"name": "random", "kind": "random", "seeds": [1]},
    {"name": "stratified", "kind": "stratified", "seeds": [1]},
    {"name": "uniform", "kind": "uniform"},
]


def pixels(view: str, place: int, phase: int) -> np.ndarray:
    """A frame that no other frame of a study has: noise of its own."""
    number = [*VIEWS].index(view) * 10_000 + place * 100 + phase
    return np.random.default_rng(number).integers(0, 256, (SIDE, SIDE))


def stored(view: str, order: str, *, apex_first: bool) -> np.ndarray:
    slices, phases = VIEWS[view]
    cells = [(s, p) for s in range(slices) for p in range(phases)]
    if order == "phase_major":
        cells.sort(key=lambda cell: cell[::-1])
    turned = [(slices - 1 - s if apex_first else s, p) for s, p in cells]
    return np.stack([pixels(view, *cell) for cell in turned], axis=2).astype(np.int16)


@pytest.fixture(params=[("slice_major", False), ("phase_major", True)], ids=str)
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    order, apex_first = request.param
    folder = tmp_path / "in" / "PH-0001"
    volumes = [
        volume(
            folder,
            stored(view, order, apex_first=apex_first and slices > 1),
            view,
            layout={"order": order, "n_slices": slices, "n_phases": phases},
            spatial_order=("apex_to_base" if apex_first else "base_to_apex") if slices > 1 else "unknown",
            display_transform={"transpose": False, "flip_rows": False, "flip_cols": False},
            window=[0, 255],
            confirmed=["layout", "display"],
        )
        for view, (slices, phases) in VIEWS.items()
    ]
    store = tmp_path / "store"
    made = prepare_group(
        store,
        "part-0.parquet",
        [study(folder, *volumes, patient_id="PH-0001")],
        Windows(pct=(1, 99)),
    )
    assert not [outcome.error for outcome in made if outcome.error]
    records = {outcome.name: outcome.record for outcome in made if outcome.record}
    write_cohort(store, Cohort(window_pct=(1, 99), studies=records, failed={}))
    write_questions(tmp_path / "questions.jsonl", questions_of("PH-0001"))
    return tmp_path


class Looks(Engine):
    """Reader that keeps what it is told of each frame, and what it sees."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, np.ndarray]] = []

    async def answer(self, ask: Ask, shown: Pictures) -> Reply:
        told = [found[0] for found in CAPTION.finditer(ask.text)]
        assert [int(line.split()[1].rstrip(":")) for line in told] == [*range(1, len(ask.frame_keys) + 1)]
        self.seen += zip(told, map(shown, ask.frame_keys), strict=True)
        return Reply(text="ANSWER: A", finish_reason="stop", prompt_tokens=1, output_tokens=1)


@pytest.mark.full
def test_captions_are_true_of_the_pixels(root: Path) -> None:
    looks = Looks()
    model = reader("uniform") | {"long_side": SIDE}
    swept(sweep_spec(root, model, selector=SELECTORS, budget=[3, 8, 32], caption="view"), looks)
    places = set()
    for line, picture in looks.seen:
        _, sequence, view, rank, of, phase, of_phases = CAPTION.match(line).groups()  # type: ignore[union-attr]
        name = CODE[sequence, view.strip()]
        slices, phases = VIEWS[name]
        assert int(of or 1) == slices, line
        assert int(of_phases or 1) == phases, line
        place = (name, int(rank or 1) - 1, int(phase or 1) - 1)
        assert np.array_equal(picture, pixels(*place)), line
        places.add(place)
    assert {name for name, _, _ in places} == set(VIEWS)
    assert len(places) > 60
