"""The sampler: parameters around a variant, rejected while any measured value is ambiguous (10.3, 10.4)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from cardiolens.errors import InputError
from cardiolens.phantom import archetypes, draws
from cardiolens.phantom.bands import GuardBandError
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.labels import truth
from cardiolens.phantom.parameters import Parameters
from cardiolens.tasks.truth import Truth

MAX_TRIES = 400
_SPREAD = 0.06
# one factor a name: a map of segments is scaled as a whole
_SCALED = [
    "radius",
    "length",
    "wall",
    "cap",
    "contraction",
    "mapse",
    "early_filling",
    "rv_width",
    "rv_contraction",
    "tapse",
    "rv_wall",
    "rv_bump",
    "la_radius",
    "ra_radius",
    "fluid",
    "bsa",
    "wall_of",
    "bulge_of",
]


@dataclass(frozen=True)
class Study:
    """One study to render: what it is made of, and what is true of it."""

    study_id: str
    seed: str
    archetype: str
    variant: str
    parameters: Parameters
    truth: Truth
    public: bool = True


def canonical_study(seed: int, name: str) -> Study:
    """A canonical study, exactly as the specification lists it."""
    p = archetypes.canonical(name)
    kind = archetypes.archetype_of(name)
    return Study(name, draws.study_seed(seed, name), kind, name, p, _truth_or_refuse(name, kind, p))


def _truth_or_refuse(name: str, kind: str, p: Parameters) -> Truth:
    try:
        return _truth(kind, p)
    except GuardBandError as error:
        raise InputError(f"phantom {name}: {error}; change its parameters") from None


def _truth(kind: str, p: Parameters) -> Truth:
    archetype = archetypes.archetypes()[kind]
    return truth(Heart(p), archetype.etiology, archetype.subtype)


def sampled_study(seed: int, number: int) -> Study:
    """Study `PH-<number>`: a function of seed and number alone, whatever else is in its cohort."""
    study_id = f"PH-{number:04d}"
    names = list(archetypes.archetypes())
    kinds = [archetypes.archetypes()[name] for name in names]
    which, rest = archetypes.pick(draws.spread(seed, number), [kind.share for kind in kinds])
    variants = list(kinds[which].variants)
    variant = variants[min(int(rest * len(variants)), len(variants) - 1)]
    return drawn(study_id, draws.study_seed(seed, study_id), names[which], variant)


def drawn(study_id: str, seed: str, kind: str, variant: str, max_tries: int = MAX_TRIES) -> Study:
    """Draw a study around a variant until no value is ambiguous; InputError names the bands that refuse."""
    around = archetypes.variant_parameters(archetypes.archetypes()[kind].variants[variant])
    refused: Counter[str] = Counter()
    for attempt in range(max_tries):
        p = jittered(around, draws.Draws(seed, attempt))
        try:
            return Study(study_id, seed, kind, variant, p, _truth(kind, p))
        except GuardBandError as error:
            refused[error.name] += 1
    worst = ", ".join(f"{name} ({count} times)" for name, count in refused.most_common(3))
    raise InputError(
        f"phantom {study_id}: no parameters around variant {variant!r} passed in {max_tries} tries; "
        f"refused by the guard bands of {worst}: change the variant or the bands"
    )


def jittered(p: Parameters, draw: draws.Draws) -> Parameters:
    """Parameters drawn uniformly within 6 % of the given ones."""
    changed: dict[str, Any] = {}
    for name in _SCALED:
        factor = draw.between(1 - _SPREAD, 1 + _SPREAD)
        changed[name] = _scaled(getattr(p, name), factor)
    return replace(p, **changed)


def _scaled(value: float | Mapping[int, float], factor: float) -> float | dict[int, float]:
    if isinstance(value, Mapping):
        return {segment: round(part * factor, 6) for segment, part in value.items()}
    return round(value * factor, 6)


assert set(_SCALED) <= {field.name for field in fields(Parameters)}
