"""Sample parameters around a variant, rejecting draws with ambiguous measurements (10.3, 10.4)."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.phantom.archetypes import archetype_of, archetypes, canonical, modifiers, variant_parameters
from cardiolens.phantom.draws import Draws, study_seed
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.parameters import Parameters
from cardiolens.phantom.truth_labels import GuardBandError, truth
from cardiolens.protocol.tasks.truth import Truth
from cardiolens.protocol.tasks.twins import twin_of

MAX_TRIES = 400
_SPREAD = 0.06
_SCALED = (  # one random factor per name, shared by all segments of a map
    *("radius", "length", "wall", "wall_of", "bulge_of", "cap", "contraction", "mapse", "early_filling"),
    *("rv_width", "rv_contraction", "tapse", "rv_wall", "rv_bump", "la_radius", "ra_radius", "fluid", "bsa"),
)


@dataclass(frozen=True)
class Study:
    """The parameters and the truth of one study to render."""

    study_id: str
    seed: str
    archetype: str
    variant: str
    parameters: Parameters
    truth: Truth
    public: bool = False


def canonical_study(seed: int, name: str) -> Study:
    """Return a canonical study, exactly as the protocol lists it."""
    p = canonical(name)
    kind = archetype_of(name)
    try:
        truth = _truth(kind, p)
    except GuardBandError as error:
        raise InputError(f"phantom {name}: {error}; change its parameters") from None
    return Study(name, study_seed(seed, name), kind, name, p, truth, public=True)


def without_lesions(whole: Study) -> Study | None:
    """Return the same heart without lesions of its tissue, as the twin of its study; None if it has none.

    Geometry, motion, fluid, noise and distractors stay: parameters of tissue alone change, and the seed is
    the same.
    """
    healthy = replace(whole.parameters, lge=(), lge_low=(), oedema=(), t2_low=(), defect=None)
    if healthy == whole.parameters:
        return None
    name = twin_of(whole.study_id)
    return replace(whole, study_id=name, parameters=healthy, truth=_truth(whole.archetype, healthy))


def draw_study(
    study_id: str,
    seed: str,
    choose: Callable[[Draws], tuple[str, str]],
    *,
    is_wanted: Callable[[Truth], bool] = lambda _: True,
    tries: int = MAX_TRIES,
) -> Study:
    """Draw studies until one has unambiguous measurements and a requested truth.

    `choose` draws the class and the variant. After `tries` attempts, InputError names the guard bands that
    rejected most.
    """
    refused: Counter[str] = Counter()
    for attempt in range(tries):
        draw = Draws(seed, attempt)
        kind, variant = choose(draw)
        p = _parameters(kind, variant, draw)
        try:
            truth = _truth(kind, p)
        except GuardBandError as error:
            refused[error.name] += 1
            continue
        if is_wanted(truth):
            return Study(study_id, seed, kind, variant, p, truth)
    worst = ", ".join(f"{name} ({count} times)" for name, count in refused.most_common(3)) or "none"
    raise InputError(
        f"phantom {study_id}: no parameters passed in {tries} tries; most frequent guard bands: {worst}; "
        f"change the variants, the modifiers or the bands"
    )


def _truth(kind: str, p: Parameters) -> Truth:
    archetype = archetypes()[kind]
    return truth(Heart(p), archetype.etiology, archetype.subtype)


def _parameters(kind: str, variant: str, draw: Draws) -> Parameters:
    """Draw parameters uniformly within 6 % of a variant with randomly chosen modifiers."""
    changes = [
        modifier
        for modifier in modifiers().values()
        if draw.chance(modifier.share) and modifier.belongs_to(kind)
    ]
    around = variant_parameters(archetypes()[kind].variants[variant], changes)
    factors = {name: draw.between(1 - _SPREAD, 1 + _SPREAD) for name in _SCALED}
    changed: dict[str, Any] = {
        name: _scaled(getattr(around, name), factor) for name, factor in factors.items()
    }
    return replace(around, **changed)


def _scaled(value: Any, factor: float) -> float | dict[int, float]:
    if isinstance(value, Mapping):
        return {segment: round(part * factor, 6) for segment, part in value.items()}
    return round(float(value) * factor, 6)


assert set(_SCALED) <= {parameter.name for parameter in fields(Parameters)}
