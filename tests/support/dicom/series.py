"""Group the stacks of an exam into series with an image order, times, a number and a name."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from cardiolens.phantom.draws import Draws
from tests.support.dicom.dialect import Dialect
from tests.support.dicom.exam import Exam
from tests.support.dicom.stacks import Stack, failed

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


# acquisition order of an exam; contrast is injected before the first pass
_PROTOCOL = (
    *("localizer", "axial", "scout_2ch", "scout_sax", "cine_4ch", "cine_2ch", "cine_3ch", "rv_2ch", "rvot"),
    *("cine_sax", "t2_sax", "t2_4ch", "flow", "flow_phase", "t1_raw", "t1_map", "t2_map", "perf_sax"),
    *("ti_scout", "lge_sax", "lge_4ch", "lge_2ch", "lge_3ch"),
)
CARDIAC = frozenset({"cine", "rv_cine", "flow", "flow_phase"})  # kinds with phases of the cardiac cycle
_MOVING = CARDIAC | {"ti_scout"}
_NAMED_AFTER, _NAMED_SHARE = "cine_4ch", 0.25  # series that may be named after the patient
_HOLD_S, _PAUSE_S = 12.0, 25.0  # seconds of a breath-hold; pause between two series
_FIRST_SLICE_MS, _NEXT_SLICE_MS = (
    90.0,
    170.0,
)  # delays of the slices of a first pass


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


@dataclass(frozen=True)
class Image:
    """One image: a slice of a stack at a phase, and its acquisition time."""

    stack: Stack
    slice: int
    phase: int
    hold: BreathHold
    trigger_ms: float
    acquired_s: float  # seconds after the start of the study


@dataclass(frozen=True)
class Series:
    """One series; its images are in the order in which the scanner writes them."""

    number: int
    name: Name
    images: tuple[Image, ...]

    @property
    def kind(self) -> str:
        return self.images[0].stack.kind


@dataclass(frozen=True)
class Part:
    """Slices of a stack in acquisition order."""

    stack: Stack
    slices: tuple[int, ...]


Piece = tuple[Part, ...]  # the parts of one series


def exam_series(exam: Exam, stacks: Iterable[Stack]) -> list[Series]:
    """Return all series of an exam in order."""
    pieces = [piece for group in _groups(exam, {stack.name: stack for stack in stacks}) for piece in group]
    numbers = _numbers(exam, pieces)
    series_list, start = [], 0.0
    for number, piece in zip(numbers, pieces, strict=True):
        images = _ordered(exam, _images(exam, piece, start), piece)
        series_list.append(Series(number, _name(exam, piece), images))
        start += _PAUSE_S + _HOLD_S * sum(len(part.slices) for part in piece)
    return series_list


def _groups(exam: Exam, stacks: dict[str, Stack]) -> Iterator[list[Piece]]:
    """Yield the pieces of each acquisition; magnitude and phase pieces alternate."""
    joined = [names for names in exam.dialect.together if exam.drawn("together", *names).chance(0.5)]
    twins = exam.drawn("twins").chance(exam.dialect.twins)
    finished: set[str] = set()
    for name in _PROTOCOL:
        if name in finished or name not in stacks:
            continue
        names = next((group for group in joined if name in group), (name,))
        finished.update(names)
        first = [stacks[one] for one in names]
        second = [stacks[f"{one}_psir"] for one in names if f"{one}_psir" in stacks]
        if twins:
            yield _pieces(exam, [*first, *second])
        else:
            both = zip_longest(_pieces(exam, first), _pieces(exam, second))
            yield [piece for pair in both for piece in pair if piece]


def _pieces(exam: Exam, stacks: Sequence[Stack]) -> list[Piece]:
    """Split stacks into series, one per slice or one for all; a failed try comes before its repetition."""
    if not stacks:
        return []
    lead = stacks[0]
    draw = exam.drawn("repeat", lead.acquisition)
    again = not lead.left_out and lead.kind != "perfusion" and draw.chance(exam.spec.repeats)
    if not _slice_by_slice(exam, lead):
        parts = tuple(Part(stack, _slices(exam, stack)) for stack in stacks)
        tries = [tuple(Part(failed(part.stack), part.slices) for part in parts)] if again else []
        return [*tries, parts]
    pieces: list[Piece] = [(Part(lead, (number,)),) for number in _slices(exam, lead)]
    if again:
        at = int(draw.unit() * len(pieces))
        pieces.insert(at, (Part(failed(lead), pieces[at][0].slices),))
    return pieces


def _slice_by_slice(exam: Exam, stack: Stack) -> bool:
    """Return whether each slice is its own series, alike for all reconstructions of an acquisition."""
    kind = "lge" if stack.kind == "psir" else stack.kind
    choices = exam.dialect.grouping.get(kind, ("stack",))
    return exam.drawn("grouping", stack.acquisition).one_of(choices) == "slice"


def _slices(exam: Exam, stack: Stack) -> tuple[int, ...]:
    """Return the slices base to apex or apex to base, alike for all reconstructions."""
    every = range(len(stack.planes))
    return tuple(reversed(every) if exam.drawn("reversed", stack.acquisition).chance(0.5) else every)


def _images(exam: Exam, piece: Piece, start_s: float) -> list[Image]:
    mean_rr, images = rest_rr_ms(exam.seed), []
    for part in piece:
        phases = part.stack.phases
        for place, number in enumerate(part.slices):
            key = f"{part.stack.name}|{number}"
            hold = breath_hold(exam.seed, key, mean_rr, phases, start_s + place * _HOLD_S)
            images += [_image(exam, part.stack, (number, place), phase, hold) for phase in range(phases)]
    return images


def _image(exam: Exam, stack: Stack, at: tuple[int, int], phase: int, hold: BreathHold) -> Image:
    number, place = at
    if stack.kind in _MOVING:
        return Image(stack, number, phase, hold, hold.trigger_ms(phase, stack.phases), hold.start_s)
    if stack.kind != "perfusion":
        seconds = hold.start_s + phase * 3 * hold.rr_ms / 1000
        return Image(stack, number, phase, hold, hold.rest_ms(), seconds)
    mean_rr = rest_rr_ms(exam.seed)  # all slices are acquired in the same heartbeats
    breath_hold = BreathHold(mean_rr, 0.0, hold.start_s - place * _HOLD_S)
    delay, beats = _FIRST_SLICE_MS + _NEXT_SLICE_MS * place, phase * mean_rr
    trigger = delay + beats if exam.dialect.cumulative_trigger else delay
    return Image(stack, number, phase, breath_hold, trigger, breath_hold.start_s + (beats + delay) / 1000)


def _ordered(exam: Exam, images: list[Image], piece: Piece) -> tuple[Image, ...]:
    """Order slice-major images of a piece: stack by stack and slice- or phase-major, or shuffled."""
    order = exam.drawn("order", piece[0].stack.acquisition).one_of(exam.dialect.orders)
    if order == "shuffled":
        draw = exam.drawn("shuffled", piece[0].stack.name)
        places = {id(image): draw.unit() for image in images}
        return tuple(sorted(images, key=lambda image: places[id(image)]))
    if order == "phase_major":
        stacks = [part.stack.name for part in piece]
        return tuple(sorted(images, key=lambda image: (stacks.index(image.stack.name), image.phase)))
    return tuple(images)


def _numbers(exam: Exam, pieces: list[Piece]) -> list[int]:
    """Return series numbers, with gaps as deleted series leave them."""
    of, draw = exam.dialect.numbering, exam.drawn("numbers")
    number, derived, numbers = of.first - of.step, 0, []
    for piece in pieces:
        is_derived = exam.dialect.acquisitions[piece[0].stack.kind].derived
        if is_derived and exam.dialect.derived_number:
            times = exam.dialect.derived_number
            numbers.append(derived + (number + 1 if times == 1 else number * times))
            derived += 1
            continue
        number += of.step + (of.gap if draw.chance(of.gap_share) else 0)
        derived = 0
        numbers.append(number)
    return numbers


def _name(exam: Exam, piece: Piece) -> Name:
    lead = piece[0].stack
    several = len({part.stack.acquisition for part in piece}) > 1
    kind = "lge" if several and lead.kind == "psir" else lead.kind
    number = piece[0].slices[0] + 1 if _slice_by_slice(exam, lead) else None
    subject = (kind, "together" if several else lead.view)
    wrong = exam.spec.wrong_names
    name = series_name(exam.dialect, subject, exam.seed, lead.acquisition, wrong=wrong, number=number)
    if lead.acquisition == _NAMED_AFTER and name.description and exam.drawn("named").chance(_NAMED_SHARE):
        return replace(name, description=f"{name.description} {exam.identity.surname}")
    return name
