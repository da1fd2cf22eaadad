"""Captions of the phantom do not tell its answers; T2 lesions are cut."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest

from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom import codes, roster
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.parameters import LesionShape, Parameters
from cardiolens.phantom.planes import planes, sizes, views
from cardiolens.phantom.render import end_systole, phases, render
from cardiolens.phantom.signal import appearance
from cardiolens.phantom.truth_labels import GuardBandError, truth
from cardiolens.protocol.prompts.frames import captions
from cardiolens.protocol.tasks.instantiate import answer, answerable_subtasks
from cardiolens.protocol.tasks.truth import findings
from cardiolens.study.structure import VolumeStructure

pytestmark = pytest.mark.full

SEED, FOLDS, MARGIN = 2026, 10, 2.0
SIZE = sizes()["default"]


@pytest.fixture(scope="module")
def large():
    return [roster.study(SEED, name) for name in roster.roster(PhantomSpec(n_sampled=200))]


def told(made):
    """All that captions can say of a study: those of every frame of every view."""
    heart, lines = Heart(made.parameters), []
    for view in views().values():
        shape = len(planes(view, made.parameters, SIZE)), phases(view, SIZE)
        systole = end_systole(heart, shape[1]) if view.sequence == "cine" else 0
        volume = VolumeStructure(view.code, view.sequence, view.view, *shape, 0, systole)
        lines.append(captions(volume, "full"))
    return tuple(lines)


def answers_of(large):
    """Captions and answer of every patient that is asked, by subtask."""
    found = defaultdict(list)
    for made in large:
        known, said = findings(made.truth), told(made)
        for subtask in answerable_subtasks(roster.catalogue(), known, roster.SEQUENCES):
            if subtask.answer_type != "report":
                found[subtask.id].append((said, answer(subtask, known)))
    return found


def best_rule(items):
    """Percent right by the commonest answer that other folds have to the same captions, and constantly."""
    right = 0
    for fold in range(FOLDS):
        others = [item for number, item in enumerate(items) if number % FOLDS != fold]
        of_caption = defaultdict(Counter)
        for said, key in others:
            of_caption[said][key] += 1
        usual = Counter(key for _, key in others)
        for said, key in items[fold::FOLDS]:
            right += (of_caption.get(said) or usual).most_common(1)[0][0] == key
    constant = Counter(key for _, key in items).most_common(1)[0][1]
    return 100 * right / len(items), 100 * constant / len(items)


def test_no_rule_on_captions_beats_the_constant_answer(large):
    found = answers_of(large)
    assert len(found) == 34
    scores = {name: best_rule(items) for name, items in found.items()}
    beaten = {name: pair for name, pair in scores.items() if pair[0] > pair[1] + MARGIN}
    assert beaten == {}


def test_every_segment_of_a_t2_lesion_is_in_a_mask():
    """Masks of T2 slices as rendered, not the rule by which the sampler refuses."""
    names = [*("PH-ICM-LAD", "PH-ICM-RCA", "PH-INFLAM"), *(f"PH-{number:04d}" for number in range(1, 61))]
    shown = 0
    for made in (roster.study(SEED, name) for name in names):
        if not made.truth.oedema:
            continue
        seen = set()
        for code in ("t2_sax", "t2_4ch"):
            look = appearance("easy", made.seed, SIZE.spacing_mm)
            rendered = render(
                Heart(made.parameters), views()[code], SIZE, look=look, seed=made.seed, masks=True
            )
            numbers, pixels = np.unique(rendered.masks, return_counts=True)
            seen |= {int(n) - codes.LESION for n, count in zip(numbers, pixels, strict=True) if count >= 3}
        assert seen >= {segment for lesion in made.truth.oedema for segment in lesion.segments}, made.study_id
        shown += 1
    assert shown >= 10


@pytest.mark.parametrize(
    ("segments", "island_mm", "seen"),
    [((4, 10, 15), 12.0, True), ((13, 14, 16), 3.0, False)],
)
def test_a_t2_lesion_that_no_slice_cuts_is_refused(segments, island_mm, seen):
    lesion = LesionShape(segments, (0.0, 1.0), pattern="patchy", island_mm=island_mm)
    heart = Heart(replace(Parameters(), oedema=(lesion,)))
    if seen:
        assert truth(heart, "normal", None).oedema
        return
    with pytest.raises(GuardBandError, match="no T2 slice cuts the lesion in segments") as error:
        truth(heart, "normal", None)
    assert error.value.name == "oedema_seen"
