"""Factors of a sweep that are words or numbers: budget, control, wording; and their levels of reference."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from cardiolens.config.base import Positive, Spec
from cardiolens.config.plugin_words import OURS, PluginControl, whose

# Levels that the other levels of a factor are compared with (protocol 17.6).
REFERENCES = {"selector": "clinical", "prompt": "standard", "control": "none"}
# Settings of the arms that enter a model's headline, which is their mean (protocol 8.2).
HEADLINE = {"budget": "16", "prompt": "standard", "control": "none", "wording": "0"}


class TokenBudget(Spec):
    """A budget of visual tokens, written tokens:8192: as many frames as fit into it at each model."""

    tokens: Positive  # visual tokens of one request

    def __str__(self) -> str:
        return f"tokens:{self.tokens}"


Wording = Annotated[int, Field(ge=0)]
"""Number of a question's wording; 0 is the original."""

Budget = Positive | TokenBudget
"""Limit of the images in a request: a number of frames, or of visual tokens."""


def parse_budget(entry: object) -> object:
    """Parse a budget: a number of frames, or tokens:N."""
    unit, _, number = str(entry).rpartition(":")
    if isinstance(entry, Mapping | TokenBudget):
        return entry
    if unit not in ("", "tokens") or not number.isdecimal() or int(number) < 1:
        raise ValueError(
            f"{entry!r} is neither a number of frames (16) nor of visual tokens (tokens:8192), 1 or more"
        )
    return {"tokens": int(number)} if unit else int(number)


Control = Literal[
    "none",
    "blind",
    "captions",
    "blank",
    "other_patient",
    "shuffled_options",
    "reversed_options",
    "repeat",
    "leading",
    "leading_right",
    "lesion",
]
"""A change of every request, to test what the answers depend on."""

AnyControl = Annotated[Annotated[Control, Tag(OURS)] | PluginControl, Discriminator(whose)]
"""A control of this package, or one of another package."""

# Controls that do not show the selected frames.
CHANGED_FRAMES: tuple[Control, ...] = ("blind", "captions", "blank", "other_patient")
