"""Words of a configuration that name parts of other packages, e.g. `kind: edges.ends` (guides/extend.md).

They are read with the version of the installed package, and so stand in every digest, arm and manifest.
"""

from collections.abc import Container, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, Tag

from cardiolens.base.entry_points import is_word, pinned

if TYPE_CHECKING:
    from cardiolens.config.sweep import SweepSpec

BUILT_IN, PLUGIN = "<built-in>", "<plugin>"  # tags of a name of this package, and of a word of another
READER = "reader:"  # before the word of a part that is a simulated reader

Option = bool | int | float | str


def _pairs(value: object) -> object:
    return tuple(sorted(value.items())) if isinstance(value, Mapping) else value


Options = Annotated[tuple[tuple[str, Option], ...], BeforeValidator(_pairs), PlainSerializer(dict)]
"""Options of a part by name, written as a mapping; hashable, because arms are grouped by their selectors."""


def part_of(value: object) -> str:
    """Return the tag of a value: a name of this package, or the word of another."""
    return PLUGIN if is_word(value) else BUILT_IN


def _pinned_engine(value: str) -> str:
    prefix, colon, word = value.rpartition(":")
    if f"{prefix}{colon}" not in ("", READER):
        raise ValueError(f"begins with {prefix!r}; expected nothing before the word, or {READER}")
    return f"{prefix}{colon}{pinned('readers' if colon else 'engines', word)}"


PluginSelector = Annotated[str, AfterValidator(partial(pinned, "selectors")), Tag(PLUGIN)]
PluginControl = Annotated[str, AfterValidator(partial(pinned, "controls")), Tag(PLUGIN)]
PluginMetric = Annotated[str, AfterValidator(partial(pinned, "report_metrics")), Tag(PLUGIN)]
PluginEngine = Annotated[str, AfterValidator(_pinned_engine), Tag(PLUGIN)]

PluginPlace = tuple[str, str]
"""A group of entry points (selectors, controls, engines, readers, report_metrics), and a word of it."""


def plugins_of(spec: "SweepSpec", groups: Container[str] | None = None) -> tuple[PluginPlace, ...]:
    """Return the parts of other packages that a sweep names, each once: all of them, or of some groups."""
    places = [
        *(("selectors", selector.kind) for selector in spec.selector),
        *(("controls", control) for control in spec.control),
        *(engine_plugin(model.engine) for model in spec.model),
        *(("report_metrics", metric) for metric in spec.statistics.report_metrics),
    ]
    named = (place for place in places if is_word(place[1]) and (groups is None or place[0] in groups))
    return tuple(dict.fromkeys(named))


def engine_plugin(engine: str) -> PluginPlace:
    """Return the group and the word of an engine of another package."""
    return ("readers" if engine.startswith(READER) else "engines"), engine.removeprefix(READER)
