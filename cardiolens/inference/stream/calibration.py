"""Compare the planned seconds of a model with those that its first minutes give."""

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from cardiolens.inference.placement.placement import Deployment
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.stream.progress import Standing, Tell, WatchedModel

log = logging.getLogger(__name__)

_MINUTES = 3.0  # of answering, before a rate is believed
_ANSWERS = 200  # requests, likewise: fewer are those of a single study or two
_FAILED = 0.1  # of these: a request that fails costs nothing like one that is answered


@dataclass(frozen=True, slots=True)
class Measured:
    """The seconds that a model takes by its first minutes, beside the planned ones; both with loading."""

    after_seconds: float  # of answering
    planned: float
    measured: float
    rate_factor: float  # turns both declared rates into those of this run; loading is in neither


def calibrated(
    deployment: Deployment, missing: Missing, tell: Tell, keep: Callable[[Measured], None]
) -> Tell:
    """Return a receiver of counters that passes them on; once, it tells and keeps what they forecast."""
    watched, began = WatchedModel(missing), time.monotonic()
    waiting = deployment.gpus > 0

    def passed_on(counters: Counter[str]) -> None:
        nonlocal waiting
        tell(counters)
        standing = watched.add(counters)
        if waiting and (measured := _measured(standing, deployment, time.monotonic() - began)):
            waiting = False
            keep(measured)
            log.warning("model %s: %s", deployment.model, _words(measured))

    return passed_on


def _measured(standing: Standing, deployment: Deployment, elapsed: float) -> Measured | None:
    """Return what the first minutes give; None before they are over, or if little is left to tell about."""
    if (
        standing.seconds < 60 * _MINUTES
        or standing.executed < _ANSWERS
        or 2 * standing.executed > standing.left
        or standing.counters.get("error", 0) > _FAILED * standing.executed
    ):
        return None
    loading, working = elapsed - standing.seconds, standing.left / standing.rate
    rate_factor = (deployment.seconds - deployment.load_seconds) / working
    return Measured(standing.seconds, deployment.seconds, loading + working, rate_factor)


def _words(measured: Measured) -> str:
    minutes, factor = measured.after_seconds / 60, measured.rate_factor
    return (
        f"its first {minutes:.0f} minutes give {measured.measured / 3600:.2g} hours in all; planned were "
        f"{measured.planned / 3600:.2g}. For plans of this model here, multiply cluster.prefill_rate and "
        f"cluster.decode_rate by {factor:.2g}"
    )
