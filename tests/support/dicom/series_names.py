"""Names of series as users type them: right, shared by several views, or wrong."""

from dataclasses import dataclass
from typing import Literal

from cardiolens.phantom.draws import Draws
from tests.support.dicom.dialect import Dialect

State = Literal["right", "shared", "generic", "other_view", "empty"]
_TOGETHER = "together"


@dataclass(frozen=True)
class Name:
    """SeriesDescription (None: absent) and ProtocolName of a series; `state` says whether they are right."""

    description: str | None
    protocol: str
    state: State


def series_name(
    dialect: Dialect, subject: tuple[str, str], seed: str, volume: str, *, wrong: float, number: int | None
) -> Name:
    """Return the name of a series by kind and view; `number` is the slice if the series is one slice.

    All series of a volume are named alike, and all names of a study have one style.
    """
    kind, view = subject
    draw = Draws(f"{seed}|name|{volume}", 0)
    right = _template(dialect, kind, view, seed, numbered=number is not None)
    if not draw.chance(wrong):
        return _named(right, number, "shared" if view == _TOGETHER else "right")
    if draw.chance(0.4):
        return Name("" if draw.chance(0.5) else None, "", "empty")
    like = "cine" if kind == "rv_cine" else kind  # right-heart views may be named like left-heart cines
    candidates = [name for name in dialect.names[like] if name not in (view, _TOGETHER)]
    if candidates and draw.chance(0.5):
        chosen = _template(dialect, like, draw.one_of(candidates), seed, numbered=number is not None)
        return _named(chosen, number, "other_view")
    return _named(draw.one_of(dialect.generic), None, "generic")


def _template(dialect: Dialect, kind: str, view: str, seed: str, *, numbered: bool) -> str:
    every = [text for text in dialect.names[kind][view] if numbered or "{n}" not in text]
    return Draws(f"{seed}|style", 0).one_of(every)


def _named(template: str, number: int | None, state: State) -> Name:
    text = template.format(n=number)
    return Name(text, text, state)
