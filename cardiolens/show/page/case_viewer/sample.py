"""The sample of cases that a portable viewer holds: its size does not grow with models and arms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardiolens.score.statistics.factors import ArmFactors, families
from cardiolens.show.page.case_viewer.sources import NOT_ASKED, Asked

WHOLE = 10_000  # answers; a run with no more is held whole
FLIPS = 2_000
A_CELL = 20  # answers of each subtask and ending
SEED = 2026
ENDINGS = {"r": "right", "w": "wrong", "u": "not readable", "o": "without answer"}


@dataclass(frozen=True, slots=True)
class Sample:
    """Answers that a viewer holds, in order, and what was left out in words."""

    asked: tuple[Asked, ...]
    whole: bool
    words: str


def sample_of(letters: np.ndarray, subtasks: Sequence[str], arms: Sequence[ArmFactors]) -> Sample:
    """Draw a sample from the endings of a run, a row per question and a column per arm; the same each time.

    A flip is a question that one arm gets right and one that differs in a single factor does not.
    """
    asked = letters != ord(NOT_ASKED)
    n_asked = int(asked.sum())
    if n_asked <= WHOLE:
        return Sample(_pairs(asked), True, f"All {n_asked:,} answers are here.")
    dice = np.random.default_rng(SEED)
    held = np.zeros_like(asked)
    n_flips = _hold_flips(held, letters, arms, dice)
    n_cells = _hold_cells(held, letters, subtasks, dice)
    flips = f"all {n_flips:,}" if n_flips <= FLIPS else f"{FLIPS:,} of {n_flips:,}"
    return Sample(
        _pairs(held),
        False,
        f"A sample: {int(held.sum()):,} of {n_asked:,} answers are here, drawn with seed {SEED}. It holds "
        f"{flips} flips (right under one arm, not under another that differs in one factor), and at most "
        f"{A_CELL} answers of each of the {n_cells} cells of subtask and ending "
        f"({', '.join(ENDINGS.values())}). Shares in it are not those of the run. "
        "All cases: python -m cardiolens.view",
    )


def _hold_flips(
    held: np.ndarray, letters: np.ndarray, arms: Sequence[ArmFactors], dice: np.random.Generator
) -> int:
    """Mark both answers of the flips that were drawn, each as likely as any other; return how many exist."""
    place = {arm.arm_id: at for at, arm in enumerate(arms)}
    pairs = [(place[one], place[other]) for family in families(arms).values() for one, other in family]
    counts = np.array([_flipped(letters, *pair).sum() for pair in pairs], np.int64)
    total = int(counts.sum())
    drawn = np.sort(dice.choice(total, FLIPS, replace=False)) if total > FLIPS else np.arange(total)
    ends = np.cumsum(counts)
    of_pair = np.searchsorted(ends, drawn, side="right")
    for at in np.unique(of_pair):
        questions = np.flatnonzero(_flipped(letters, *pairs[at]))
        rows = questions[drawn[of_pair == at] - (ends[at] - counts[at])]
        held[np.ix_(rows, pairs[at])] = True
    return total


def _flipped(letters: np.ndarray, one: int, other: int) -> np.ndarray:
    first, second = letters[:, one], letters[:, other]
    both = (first != ord(NOT_ASKED)) & (second != ord(NOT_ASKED))
    apart: np.ndarray = both & ((first == ord("r")) != (second == ord("r")))
    return apart


def _hold_cells(
    held: np.ndarray, letters: np.ndarray, subtasks: Sequence[str], dice: np.random.Generator
) -> int:
    """Mark some answers of each subtask and ending; return the number of these cells."""
    named, n_cells = np.array(subtasks), 0
    for subtask in np.unique(named):
        rows = np.flatnonzero(named == subtask)
        own = letters[rows]
        for letter in ENDINGS:
            found = np.flatnonzero(own == ord(letter))
            n_cells += bool(len(found))
            drawn = dice.choice(found, A_CELL, replace=False) if len(found) > A_CELL else found
            held[rows[drawn // own.shape[1]], drawn % own.shape[1]] = True
    return n_cells


def _pairs(held: np.ndarray) -> tuple[Asked, ...]:
    return tuple(zip(*(side.tolist() for side in np.nonzero(held)), strict=True))
