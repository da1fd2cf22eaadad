"""Studies of some views, and how often a selection shows each of them."""

from collections import Counter

from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select.selection import Selection
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.structure import StudyStructure, VolumeStructure

SUBTASKS = load_catalogue("openprotocol-1").subtasks
CLINICAL = SelectorSpec(name="clinical", kind="clinical")
RANDOM = SelectorSpec(name="random", kind="random", seeds=(2026,))
SEQUENCES = {"cine": "cine", "lge": "lge", "perf": "perfusion", "t2": "t2"}
SHAPES = {
    **{"cine_sax": (10, 25), "cine_4ch": (3, 25), "cine_3ch": (1, 25), "cine_2ch": (1, 25)},
    **{"lge_sax": (10, 1), "lge_4ch": (2, 1), "lge_2ch": (1, 1)},
    **{"perf_sax": (3, 50), "t2_sax": (5, 1), "t2_4ch": (1, 1)},
}


def study(*views: str, levels_known: bool = True) -> StudyStructure:
    """A study of these views; end-systole is at 0.37 of the cycle."""
    volumes = {}
    for view in views:
        code, _, short = view.partition("_")
        n_slices, n_phases = SHAPES[view]
        es = round(0.37 * n_phases) % n_phases
        volumes[view] = VolumeStructure(
            view, SEQUENCES[code], short, n_slices, n_phases, 0, es, (), levels_known, t_on=8, t_peak=15
        )
    return StudyStructure("PH-0001", volumes)


def views(selection: Selection) -> Counter[str]:
    """The number of frames of each view."""
    return Counter(frame.volume_id for frame in selection.frames)
