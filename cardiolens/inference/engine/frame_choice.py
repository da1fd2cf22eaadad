"""How simulated readers ask for frames under selector `self`."""

import json
from typing import Literal, get_args

from cardiolens.inference.engine.ask import Ask

Manner = Literal["greedy", "lazy", "illegal"]
"""greedy: as many frames as allowed, in the order of the list; lazy: as few as allowed (one, then none);
illegal: first names of frames that do not exist, then as greedy."""

MANNERS: tuple[Manner, ...] = get_args(Manner)

_NO_FRAMES = ("cine_xyz slice 0 phase 0", "everything")
_FIRST = "This is request 1 of "


def ask_for_frames(manner: Manner, ask: Ask) -> str:
    """Reply to a request that offers frames; the offered names come from the decoding constraint."""
    naming = ask.constraint.naming
    assert naming is not None, "the constraint of a request that offers frames lists their names"
    names = naming.names[: naming.most]
    if manner == "lazy":
        names = naming.names[: naming.least]
    if manner == "illegal" and _FIRST in ask.text:
        names = _NO_FRAMES
    return json.dumps({"frames": names})
