"""The studies of a cohort; each study depends on seed and id alone."""

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.draws import Draws, study_seed
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.parameters import (
    Parameters,
    archetype_of,
    archetypes,
    canonical,
    canonical_values,
    modifiers,
    variant_parameters,
)
from cardiolens.phantom.truth_labels import GuardBandError, truth
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.questions import twin_of
from cardiolens.protocol.tasks.truth import Truth

PROTOCOL = "openprotocol-1"
SEQUENCES = ("cine", "lge", "perfusion", "t2")
PUBLIC_SHARE = 135 / 670  # sizes of the public and the full cohort in the paper
MAX_TRIES = 400
_NUMBERED = re.compile(r"PH-(\d{4,})")
_WEYL = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: its multiples spread evenly over 2^64
_GROWTH = 128
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


def draw_study(study_id: str, seed: str, kind: str, variant: str) -> Study:
    """Draw studies of a class and variant until one has unambiguous measurements."""
    for attempt in range(MAX_TRIES):
        p = _parameters(kind, variant, Draws(seed, attempt))
        with suppress(GuardBandError):
            return Study(study_id, seed, kind, variant, p, _truth(kind, p))
    raise InputError(f"phantom {study_id}: no parameters passed in {MAX_TRIES} tries; use another seed")


def _truth(kind: str, p: Parameters) -> Truth:
    archetype = archetypes()[kind]
    return truth(Heart(p), archetype.etiology, archetype.subtype)


def _parameters(kind: str, variant: str, draw: Draws) -> Parameters:
    """Draw parameters uniformly within 6 % of a variant with randomly chosen modifiers."""
    changes = [
        modifier
        for modifier in modifiers().values()
        if draw.chance(modifier.share) and (not modifier.classes or kind in modifier.classes)
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


@cache
def catalogue() -> Catalogue:
    """Return the catalogue of questions that phantoms answer."""
    return load_catalogue(PROTOCOL)


@lru_cache(maxsize=1024)
def study(seed: int, study_id: str) -> Study:
    """Return the study of an id: a canonical one exactly as the protocol lists it, or `PH-0042`, drawn."""
    of_study = study_seed(seed, study_id)
    if match := _NUMBERED.fullmatch(study_id):
        number = int(match[1])
        sampled = draw_study(study_id, of_study, *class_of(seed, number))
        return replace(sampled, public=is_public(seed, number))
    p, kind = canonical(study_id), archetype_of(study_id)
    return Study(study_id, of_study, kind, study_id, p, _truth(kind, p), public=True)


def roster(spec: PhantomSpec) -> list[str]:
    """Return the ids of a cohort: canonical, then sampled studies."""
    if not spec.canonical and not spec.n_sampled:
        raise InputError("a phantom cohort of 0 studies: set n_sampled above 0 or name canonical studies")
    unknown = [name for name in spec.canonical if name not in canonical_values()]
    if unknown or len(set(spec.canonical)) != len(spec.canonical):
        legal = ", ".join(canonical_values())
        raise InputError(f"canonical studies {list(spec.canonical)}: name each once, of {legal}")
    return [*spec.canonical, *(f"PH-{number:04d}" for number in range(1, spec.n_sampled + 1))]


def class_of(seed: int, number: int) -> tuple[str, str]:
    """Return class and variant of a numbered study; studies 1 .. n nearly have the shares of 10.4."""
    point = ((_start(seed) + number * _WEYL) % 2**64) / 2**64  # any first n of these are evenly spread
    place = point * sum(archetype.share for archetype in archetypes().values())
    for name, archetype in archetypes().items():
        variants = list(archetype.variants)
        if place < archetype.share:
            return name, variants[int(place / archetype.share * len(variants))]
        place -= archetype.share
    return name, variants[0]


@lru_cache(maxsize=8)
def _start(seed: int) -> int:
    return int(study_seed(seed, "classes")[:16], 16)


def is_public(seed: int, number: int) -> bool:
    """Return whether a numbered study belongs to the public sub-cohort."""
    return number in _public(seed, -(-number // _GROWTH) * _GROWTH)


@lru_cache(maxsize=16)
def _public(seed: int, count: int) -> frozenset[int]:
    """Return the public numbers up to `count`: a study is public when due, if its class has credit left."""
    credit: Counter[str] = Counter()
    public: list[int] = []
    for number in range(1, count + 1):
        kind = class_of(seed, number)[0]
        credit[kind] += 135
        if credit[kind] > 0 and len(public) < int(number * PUBLIC_SHARE + 0.5):
            public.append(number)
            credit[kind] -= 670
    return frozenset(public)
