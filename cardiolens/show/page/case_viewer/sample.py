"""Sampling of cases for a portable viewer, so that its size does not grow with models and arms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardiolens.score.statistics.factors import ArmFactors, families
from cardiolens.show.page.case_viewer.item_sources import NOT_ASKED, CaseKey

MAX_UNSAMPLED = 10_000  # answers; a run with no more is not sampled
FLIPS = 2_000
A_CELL = 20  # answers of each subtask and ending
SEED = 2026
ENDINGS = {"r": "right", "w": "wrong", "u": "not readable", "o": "without answer"}


@dataclass(frozen=True, slots=True)
class Sample:
    """Sampled answers in order, and a sentence on what was left out."""

    keys: tuple[CaseKey, ...]
    complete: bool
    words: str


def sample_of(letters: np.ndarray, subtasks: Sequence[str], arms: Sequence[ArmFactors]) -> Sample:
    """Draw a sample from the endings of a run, a row per question and a column per arm; the same each time.

    A flip is a question that one arm gets right and one that differs in a single factor does not.
    """
    is_answer = letters != ord(NOT_ASKED)
    n_asked = int(is_answer.sum())
    if n_asked <= MAX_UNSAMPLED:
        return Sample(_keys(is_answer), True, f"All {n_asked:,} answers are here.")
    dice = np.random.default_rng(SEED)
    marks = np.zeros_like(is_answer)
    n_flips = _select_flips(marks, letters, arms, dice)
    n_cells = _select_cells(marks, letters, subtasks, dice)
    flips = f"all {n_flips:,}" if n_flips <= FLIPS else f"{FLIPS:,} of {n_flips:,}"
    return Sample(
        _keys(marks),
        False,
        f"A sample: {int(marks.sum()):,} of {n_asked:,} answers are here, drawn with seed {SEED}. It holds "
        f"{flips} flips (right under one arm, not under another that differs in one factor), and at most "
        f"{A_CELL} answers of each of the {n_cells} cells of subtask and ending "
        f"({', '.join(ENDINGS.values())}). Shares in it are not those of the run. "
        "All cases: python -m cardiolens.view",
    )


def _select_flips(
    marks: np.ndarray, letters: np.ndarray, arms: Sequence[ArmFactors], dice: np.random.Generator
) -> int:
    """Mark both answers of at most FLIPS flips, drawn uniformly; return how many flips exist."""
    place = {arm.arm_id: at for at, arm in enumerate(arms)}
    pairs = [(place[first], place[second]) for family in families(arms).values() for first, second in family]
    counts = np.array([_flips(letters, *pair).sum() for pair in pairs], np.int64)
    total = int(counts.sum())
    picks = np.sort(dice.choice(total, FLIPS, replace=False)) if total > FLIPS else np.arange(total)
    ends = np.cumsum(counts)
    of_pair = np.searchsorted(ends, picks, side="right")
    for at in np.unique(of_pair):
        questions = np.flatnonzero(_flips(letters, *pairs[at]))
        rows = questions[picks[of_pair == at] - (ends[at] - counts[at])]
        marks[np.ix_(rows, pairs[at])] = True
    return total


def _flips(letters: np.ndarray, arm_a: int, arm_b: int) -> np.ndarray:
    first, second = letters[:, arm_a], letters[:, arm_b]
    comparable = (first != ord(NOT_ASKED)) & (second != ord(NOT_ASKED))
    flips: np.ndarray = comparable & ((first == ord("r")) != (second == ord("r")))
    return flips


def _select_cells(
    marks: np.ndarray, letters: np.ndarray, subtasks: Sequence[str], dice: np.random.Generator
) -> int:
    """Mark at most A_CELL answers of each subtask and ending; return the number of these cells."""
    labels, n_cells = np.array(subtasks), 0
    for subtask in np.unique(labels):
        rows = np.flatnonzero(labels == subtask)
        own = letters[rows]
        for letter in ENDINGS:
            places = np.flatnonzero(own == ord(letter))
            n_cells += bool(len(places))
            picks = dice.choice(places, A_CELL, replace=False) if len(places) > A_CELL else places
            marks[rows[picks // own.shape[1]], picks % own.shape[1]] = True
    return n_cells


def _keys(marks: np.ndarray) -> tuple[CaseKey, ...]:
    return tuple(zip(*(side.tolist() for side in np.nonzero(marks)), strict=True))
