"""Manners in which simulated readers ask for frames, where selector `self` lets them."""

import json
from typing import Literal, get_args

from cardiolens.inference.engine.ask import Ask

Manner = Literal["greedy", "lazy", "illegal"]
"""greedy: all that it may see, in the order of the list; lazy: one frame, then no more; illegal: first some
that there are not, and then as greedy."""

MANNERS: tuple[Manner, ...] = get_args(Manner)

_NO_FRAMES = ("cine_xyz slice 0 phase 0", "everything")
_FIRST = "This is request 1 of "


def ask_for_frames(manner: Manner, ask: Ask) -> str:
    """The reply to a request that offers frames; which ones, the constraint says, as it does to decoding."""
    naming = ask.constraint.naming
    assert naming is not None, "a simulated reader is told what is left"
    names = naming.names[: naming.most]
    if manner == "lazy":
        names = naming.names[: naming.least]
    if manner == "illegal" and _FIRST in ask.text:
        names = _NO_FRAMES
    return json.dumps({"frames": names})
