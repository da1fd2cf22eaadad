"""Words of a configuration that name parts of other packages, e.g. `kind: edges.ends` (guides/extend.md).

They are read with the version of the installed package, and so stand in every digest, arm and manifest.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, Tag

from cardiolens.base.entry_points import is_word, pinned

if TYPE_CHECKING:
    from cardiolens.config.sweep import SweepSpec

OURS, PLUGIN = "<ours>", "<plugin>"  # tags of a name of this package, and of a word of another
READER = "reader:"  # before the word of a part that is a simulated reader

Option = bool | int | float | str


def _pairs(value: object) -> object:
    return tuple(sorted(value.items())) if isinstance(value, Mapping) else value


Options = Annotated[tuple[tuple[str, Option], ...], BeforeValidator(_pairs), PlainSerializer(dict)]
"""Options of a part by name, written as a mapping; hashable, because arms are grouped by their selectors."""


def whose(value: object) -> str:
    """Return the tag of a value: a name of this package, or the word of another."""
    return PLUGIN if is_word(value) else OURS


def _pinned_engine(value: str) -> str:
    prefix, colon, word = value.rpartition(":")
    if f"{prefix}{colon}" not in ("", READER):
        raise ValueError(f"begins with {prefix!r}; expected nothing before the word, or {READER}")
    return f"{prefix}{colon}{pinned('readers' if colon else 'engines', word)}"


PluginSelector = Annotated[str, AfterValidator(partial(pinned, "selectors")), Tag(PLUGIN)]
PluginControl = Annotated[str, AfterValidator(partial(pinned, "controls")), Tag(PLUGIN)]
PluginMetric = Annotated[str, AfterValidator(partial(pinned, "report_metrics")), Tag(PLUGIN)]
PluginEngine = Annotated[str, AfterValidator(_pinned_engine), Tag(PLUGIN)]

PluginPlace = tuple[Literal["selectors", "engines", "readers", "controls", "report_metrics"], str]
"""A group of entry points, and a word of it."""


def plugins_of(spec: "SweepSpec") -> tuple[PluginPlace, ...]:
    """Return the parts of other packages that a sweep names, each once."""
    return tuple(dict.fromkeys((*selecting(spec), *answering(spec), *scoring(spec))))


def selecting(spec: "SweepSpec") -> Iterator[PluginPlace]:
    """Yield the parts that decide the requests of a sweep."""
    for selector in spec.selector:
        if selector.plugged:
            yield "selectors", selector.kind
    for control in spec.control:
        if is_word(control):
            yield "controls", control


def answering(spec: "SweepSpec") -> Iterator[PluginPlace]:
    """Yield the parts that answer in the place of a model."""
    for model in spec.model:
        if model.plugged:
            yield engine_plugin(model.engine)


def scoring(spec: "SweepSpec") -> Iterator[PluginPlace]:
    """Yield the parts that score."""
    for metric in spec.statistics.report_metrics:
        if is_word(metric):
            yield "report_metrics", metric


def engine_plugin(engine: str) -> PluginPlace:
    """Return the group and the word of an engine of another package."""
    return ("readers" if engine.startswith(READER) else "engines"), engine.removeprefix(READER)
