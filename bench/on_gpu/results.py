"""What a part of bench/gpu.py noted, as numbers; and all parts as a table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

_MOMENTS = ("began", "imported", "planned", "Ray", "actor", "vLLM imported", "engine", "first answer")
_SPANS = {
    "imported": "imports of the driver",
    "planned": "plan",
    "Ray": "start of Ray",
    "actor": "actor",
    "vLLM imported": "import of vLLM",
    "engine": "engine",
    "first answer": "first answer",
}
_INNER = ("weights", "profile, cache, warm-up", "compile", "CUDA graphs")  # of the engine's span

Marks = Sequence[dict[str, Any]]


@dataclass
class Part:
    """One measurement: the stream or bare vLLM with one model."""

    kind: str  # stream | bare
    size: str
    tensor_parallel: int
    pair: int
    seconds: float = 0.0  # of the whole process
    requests: int | None = None  # to answer
    answered: int = 0
    rate: float | None = None  # requests per second, from the first ask to the last answer
    reading_s: float | None = None  # bare: before the first ask
    busy: float | None = None  # share of that time in which the GPUs ran a kernel
    encoded: float | None = None  # encoder runs per distinct frame
    computed_tokens: int | None = None  # of prompts, not from the cache
    start: dict[str, float] = field(default_factory=dict)  # seconds by part
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.size} TP {self.tensor_parallel} {self.kind}, pair {self.pair}"

    @property
    def alike(self) -> tuple[str, str, int]:
        """What its repetitions have in common with it."""
        return self.kind, self.size, self.tensor_parallel

    def read(self, marks: Marks) -> tuple[float, float] | None:
        """Take over what was noted; return the first and last moment of answering, if there was any."""
        at = {mark["mark"]: mark for mark in reversed(marks)}  # the first of each
        moments = [(name, at[name]["at"]) for name in _MOMENTS if name in at]
        self.start = {_SPANS[after]: until - since for (_, since), (after, until) in pairwise(moments)}
        self.requests = at.get("planned", {}).get("requests")
        self.settings = at.get("engine", {}).get("settings", {})
        self.start |= at.get("engine", {}).get("parts", {})
        dropped = {name for mark in marks if mark["mark"] == "dropped" for name in mark["names"]}
        self.notes += [f"dropped: {name}, which this vLLM does not have" for name in sorted(dropped)]
        ended = at.get("ended", {})
        if ended.get("failed"):
            self.notes.append(f"{ended['failed']} requests failed")
        if "first ask" not in at:
            return None
        answers = [mark for mark in marks if mark["mark"] == "answer"]
        if answers:
            last = answers[-1]
            self.answered, until = len(answers), last["at"]
            self.computed_tokens = sum(mark["prompt"] - mark["cached"] for mark in answers)
            self.encoded = (
                last["encoded"] / last["distinct"] if last["distinct"] and last["encoded"] else None
            )
        elif ended:
            self.answered, until = ended["ok"], ended["at"]
            self.computed_tokens = ended["prompt"] - ended["cached"]
        else:
            return None
        self.reading_s = at["first ask"].get("reading_s")
        since = at["first ask"]["at"]
        self.rate = self.answered / (until - since)
        return since, until


@dataclass
class Results:
    """All parts so far, and what could not be run."""

    machine: dict[str, Any]
    parts: list[Part] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "parts": [asdict(part) for part in self.parts],
            "ratios": [{"pair": name, "ratio": ratio} for name, ratio, _ in self.pairs()],
            "not_run": self.not_run,
        }

    def pairs(self) -> list[tuple[str, float, str]]:
        """Stream against bare vLLM of the same pair: name, ratio of rates, settings that differ."""
        found = []
        for stream in (part for part in self.parts if part.kind == "stream" and part.rate):
            for bare in self.parts:
                if bare.kind == "bare" and bare.rate and _pair(bare) == _pair(stream):
                    names = sorted(stream.settings.keys() | bare.settings.keys())
                    unlike = [
                        f"{name} {stream.settings.get(name)} and {bare.settings.get(name)}"
                        for name in names
                        if stream.settings.get(name) != bare.settings.get(name)
                    ]
                    name = f"{stream.size} TP {stream.tensor_parallel}, pair {stream.pair}"
                    found.append((name, stream.rate / bare.rate, "; ".join(unlike)))
        return found

    def to_markdown(self) -> str:
        lines = [f"GPUs: {self.machine['gpus'] or 'none'}; {self.machine['versions']}", ""]
        lines += [
            "| part | requests | requests/s | GPU busy | encoder runs per distinct frame | prompt tokens "
            "computed | seconds in all |",
            "|---|---|---|---|---|---|---|",
        ]
        for part in self.parts:
            cells = (
                f"{part.answered:,} of {part.requests or 0:,}",
                _number(part.rate, "{:.1f}"),
                _number(part.busy, "{:.0%}"),
                _number(part.encoded, "{:.3f}"),
                _number(part.computed_tokens, "{:,}"),
                f"{part.seconds:.0f}",
            )
            lines.append(f"| {part.name} | {' | '.join(cells)} |")
        if pairs := self.pairs():
            lines += ["", "| pair | stream : bare | settings that differ |", "|---|---|---|"]
            lines += [f"| {name} | {ratio:.2f} | {unlike or 'none'} |" for name, ratio, unlike in pairs]
        spans = [*_SPANS.values(), *_INNER]
        lines += ["", f"| seconds of the start | {' | '.join(part.name for part in self.parts)} |"]
        lines.append("|---|" + "---|" * len(self.parts))
        for span in spans:
            cells = [_number(part.start.get(span), "{:.1f}") for part in self.parts]
            lines.append(f"| {'of it: ' if span in _INNER else ''}{span} | {' | '.join(cells)} |")
        told = [f"{part.name}: {note}" for part in self.parts for note in part.notes] + self.not_run
        lines += ["", *(f"* {one}" for one in told)]
        return "\n".join(lines).rstrip() + "\n"


def _pair(part: Part) -> tuple[str, int, int]:
    return part.size, part.tensor_parallel, part.pair


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
