"""What an import makes of a study: volumes that are taken, wait or are left out, and frames left out."""

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from cardiolens.curation.ingest.loose_masks import Masks
from cardiolens.curation.ingest.propose import Proposal
from cardiolens.curation.ingest.series_piles import LeftOut
from cardiolens.curation.ingest.stack import Stack
from cardiolens.study.volume_manifest import DisplayTransform


@dataclass(frozen=True, slots=True)
class Volume:
    """A proposal with all data of its volume."""

    proposal: Proposal
    values: NDArray[Any]  # (slice, phase, row, column), base first for a short axis
    slope: float
    intercept: float
    transform: DisplayTransform
    ed_phase: int | None = None
    es_phase: int | None = None
    t_on: int | None = None
    t_peak: int | None = None
    masks: NDArray[Any] | None = None  # (slice, phase, row, column)
    ordered: bool = True  # whether a short axis is known to run from base to apex

    @property
    def stack(self) -> Stack:
        return self.proposal.stack


@dataclass
class Imported:
    """Outcome of one study: volumes (taken, waiting or left out), all proposals, frames left out."""

    volumes: list[Volume] = field(default_factory=list)
    # volumes of left-out proposals, for a person to look at
    left_out_volumes: list[Volume] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=list)
    details: dict[tuple[str, int], str] = field(default_factory=dict)
    masks: Masks = field(default_factory=dict)
