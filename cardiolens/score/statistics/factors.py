"""Factors of arms, and the pairs of arms that differ in exactly one factor."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

FACTORS = ("model", "selector", "budget", "prompt", "control", "wording")


@dataclass(frozen=True, slots=True)
class ArmFactors:
    """The factor levels of one arm."""

    arm_id: str
    model: str
    selector: str  # with its seed, e.g. random@2026
    budget: str
    prompt: str
    control: str = "none"
    wording: str = "0"  # number of the questions' wording
    simulated: bool = False  # a simulated reader: it enters no test, rank or sentence about models
    shots: int = 0  # solved examples before each question; a part of what the prompt's name stands for
    cine: str = "frames"  # or video: how phases of a slice are shown; a part of the prompt's name, too

    @property
    def protocol(self) -> str:
        """The selection protocol without its seed."""
        return self.selector.partition("@")[0]


ArmPair = tuple[str, str]  # arm, versus arm: the difference is the first minus the second


def families(arms: Iterable[ArmFactors]) -> dict[str, list[ArmPair]]:
    """Pairs of arms that differ in exactly one factor, one family for each factor and setting of the others.

    A family is named `factor | the others`, e.g. `selector | tiny, 16, standard, none`. A difference reads
    other prompt minus standard, no control minus control, larger minus smaller budget, else by name.
    """
    pairs: dict[str, list[ArmPair]] = {}
    ordered = sorted(arms, key=lambda arm: arm.arm_id)
    for first, second in combinations(ordered, 2):
        mine, theirs = asdict(first), asdict(second)
        differing = [factor for factor in FACTORS if mine[factor] != theirs[factor]]
        if len(differing) == 1:
            (factor,) = differing
            rest = ", ".join(mine[name] for name in FACTORS if name not in (factor, "wording"))
            rest += f", wording {mine['wording']}" if factor != "wording" and mine["wording"] != "0" else ""
            pairs.setdefault(f"{factor} | {rest}", []).append(_directed(first, second, factor))
    return pairs


def control_pairs(arms: Sequence[ArmFactors], control: str) -> set[ArmPair]:
    """Pair each arm without control with the same arm under a control."""
    controlled = {
        replace(arm, arm_id="", control="none"): arm.arm_id for arm in arms if arm.control == control
    }
    uncontrolled = {arm.arm_id: replace(arm, arm_id="") for arm in arms if arm.control == "none"}
    return {(arm_id, controlled[arm]) for arm_id, arm in uncontrolled.items() if arm in controlled}


def _directed(first: ArmFactors, second: ArmFactors, factor: str) -> ArmPair:
    pair = sorted((first, second), key=lambda arm: _rank(arm, factor))
    return pair[1].arm_id, pair[0].arm_id


def _rank(arm: ArmFactors, factor: str) -> tuple[bool, float, str]:
    value = str(getattr(arm, factor))
    baseline = (factor == "prompt" and value == "standard") or (factor == "control" and value != "none")
    return not baseline, float(value) if value.isdecimal() else 0.0, value


def factors_of(arms: Sequence[ArmFactors]) -> dict[str, ArmFactors]:
    """Index arms by id."""
    return {arm.arm_id: arm for arm in arms}
