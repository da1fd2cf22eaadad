"""Budgets in visual tokens, whose number per frame depends on the model."""

from collections.abc import Callable

from cardiolens.base.errors import InputError
from cardiolens.protocol.select.selection import Frame, Selection


def fitting(
    choose_at: Callable[[int], Selection], tokens_of: Callable[[Frame], int], limit: int, available: int
) -> Selection:
    """Return the selection with the most frames whose visual tokens are at most `limit`.

    `choose_at` selects for a budget in frames, at most `available`. If not even one frame fits, the selection
    is skipped with `frame_over_budget`.
    """
    if limit < 1:
        raise InputError(f"budget tokens:{limit} is not a number of tokens; give 1 or more, e.g. tokens:8192")

    def fits(selection: Selection) -> bool:
        return sum(map(tokens_of, selection.frames)) <= limit

    low, high = 0, available  # invariant: `low` frames fit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(choose_at(middle)):
            low = middle
        else:
            high = middle - 1
    return choose_at(low) if low else Selection((), skipped="frame_over_budget")
