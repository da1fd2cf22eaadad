"""Acquisition times of images: each breath-hold has its own heart rate."""

from dataclasses import dataclass

from cardiolens.phantom.draws import Draws

_REST_DELAY = 0.68  # share of the cycle after which static images are acquired
_BEAT_TO_BEAT = 0.08


@dataclass(frozen=True)
class BreathHold:
    """The acquisition of one slice: mean RR interval, delay of the first phase, and start in seconds."""

    rr_ms: float
    delay_ms: float
    start_s: float

    def trigger_ms(self, phase: int, phases: int) -> float:
        """Return the delay of a cine phase after the R wave."""
        return round(self.delay_ms + phase * self.rr_ms / phases, 4)

    def rest_ms(self) -> float:
        """Return the delay of a static image after the R wave."""
        return round(_REST_DELAY * self.rr_ms, 4)


def rest_rr_ms(seed: str) -> float:
    """Return the mean RR interval of a study."""
    return Draws(f"{seed}|rr", 0).between(680, 1080)


def breath_hold(seed: str, key: str, mean_rr_ms: float, phases: int, start_s: float) -> BreathHold:
    """Return the breath-hold of a slice; its RR interval is within 8 % of the mean."""
    draw = Draws(f"{seed}|hold|{key}", 0)
    rr = round(mean_rr_ms * draw.between(1 - _BEAT_TO_BEAT, 1 + _BEAT_TO_BEAT), 2)
    return BreathHold(rr, round(draw.between(0, 0.4 * rr / max(phases, 8)), 3), start_s)


def clock(study_time: str, seconds: float) -> str:
    """Return the time of day, in DICOM format, `seconds` after the start of the study."""
    began = int(study_time[:2]) * 3600 + int(study_time[2:4]) * 60 + int(study_time[4:6])
    clock_s, part = divmod(round((began + seconds) * 1000), 1000)
    return f"{clock_s // 3600 % 24:02d}{clock_s // 60 % 60:02d}{clock_s % 60:02d}.{part:03d}000"
