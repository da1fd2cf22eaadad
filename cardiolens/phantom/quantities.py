"""Quantities of a modelled heart as answers: left ventricular volumes, and the phases of its cine."""

from cardiolens.phantom.draws import Draws
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.measure import lv_volume, smallest_lv_volume
from cardiolens.phantom.render import end_systole
from cardiolens.protocol.tasks.catalogue import Catalogue


def first_phase(seed: str, heart: Heart, phases: int) -> int:
    """Draw the phase of the cycle with which a cine begins.

    Neither end-diastole nor end-systole is its first or last phase: those are neighbours in the cycle, and
    their numbers far apart.
    """
    systole = end_systole(heart, phases)
    legal = [
        first
        for first in range(phases)
        if all(0 < (moment - first) % phases < phases - 1 for moment in (0, systole))
    ]
    return Draws(f"{seed}|first phase", 0).one_of(legal)


def quantity_findings(
    heart: Heart, tasks: Catalogue, phases: int, first: int = 0
) -> dict[str, tuple[str, ...]]:
    """Return the findings that are numbers; `first` is the phase of the cycle with which cines begin."""
    largest, smallest = lv_volume(heart, 0.0), smallest_lv_volume(heart)
    values = {
        "cine.lv_ejection_fraction": 100 * (largest - smallest) / largest,
        "cine.lv_edv": largest,
        "cine.lv_esv": smallest,
        "cine.ed_phase": (-first) % phases + 1,
        "cine.es_phase": (end_systole(heart, phases) - first) % phases + 1,
    }
    return {
        subtask.finding: (subtask.quantity.written(values[subtask.finding]),)
        for subtask in tasks.subtasks.values()
        if subtask.quantity is not None and subtask.finding in values
    }
