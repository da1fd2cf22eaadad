"""Reports in the manner of ten hospitals, put together from the lines of `hospitals/`, with what they tell.

A line is `topic | text | truth`. `L01=B` is told for certain; `?L01=B` would be right but need not be
drafted; `-` tells nothing. `{wall}` and `{level}` stand for any, and `{W}` and `{L}` for their options. A
tail says what an addendum makes of the answers: `!C10=B` allows that answer alone, `!C10` allows none. The
lines are split into an open and a closed half by their digest: no sentence of one stands in the other.

The reports of `third` to `tenth` and their closed halves are whole, by writers who saw neither rules nor
results: `%% name | manner`, the text, `%= truth`. Several `?` of one subtask are alternatives.
`houses/` has files of words of the hospitals of `tenth` (d) and `tenth_closed` (e), by who saw five reports
of each, and not the truth.
"""

import hashlib
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).with_name("hospitals")
SEEN = 5  # reports of each hospital of the tenth set that were shown to who wrote the file of its words
STYLES = tuple(
    sorted(
        path.stem
        for path in FOLDER.glob("*.txt")
        if not path.stem.endswith(("targets", "_reports", "second_style"))
    )
)
WALLS = {"anterior": "A", "septal": "B", "inferior": "C", "lateral": "D"}
LEVELS = {"basal": "A", "mid": "B", "apical": "C"}
TOPICS = (
    "ind",
    "tech",
    "lvsize",
    "lvwall",
    "motion",
    "ef",
    "diast",
    "rvsize",
    "rvfn",
    "rvwall",
    "atria",
    "avv",
)
TOPICS += ("ao", "peri", "lge", "perf", "t2", "dx", "noise", "tail")
HEADINGS = {
    "us_structured": {
        "lvsize": "LEFT VENTRICLE:\n",
        "rvsize": "\nRIGHT VENTRICLE:\n",
        "atria": "\nATRIA: ",
        "avv": "\nVALVES: ",
        "peri": "\nPERICARDIUM: ",
        "lge": "\nDELAYED ENHANCEMENT: ",
        "perf": "\nPERFUSION: ",
        "t2": "\nT2 IMAGING: ",
        "dx": "\n",
        "noise": "\n",
    },
    "german_english": {"lvsize": "Findings:\n", "dx": "\n"},
    "dictation": {},
}
LINES = {"template", "table", "form", "second_style"}  # a statement is a line of its own


@dataclass(slots=True)
class Truth:
    """Answers by subtask: those that a report tells, and those that a draft may have without being wrong."""

    told: dict[str, str] = field(default_factory=dict)
    right: dict[str, set[str]] = field(default_factory=dict)

    def wrong(self, drafts: Mapping[str, str]) -> dict[str, str]:
        """Return the drafts that the report does not tell."""
        return {subtask: keys for subtask, keys in drafts.items() if keys not in self.right.get(subtask, ())}

    def add(self, words: str) -> None:
        """Take over the truth of a line."""
        for word in words.split():
            subtask, _, answer = word.lstrip("?!").partition("=")
            if word.startswith("!"):
                self.told.pop(subtask, None)
                self.right.pop(subtask, None)
                if subtask == "all":
                    self.told.clear()
                    self.right.clear()
            elif word != "-" and not word.startswith("?"):
                self.told[subtask] = answer
            if answer:
                self.right.setdefault(subtask, set()).add(answer)


@dataclass(frozen=True, slots=True)
class Report:
    """A report with its truth."""

    name: str
    style: str
    text: str
    truth: Truth


def statements(style: str) -> list[tuple[str, str, str]]:
    """Topic, text and truth of the lines of a style."""
    entries: list[str] = []
    for line in (FOLDER / f"{style}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            continue
        if entries and not re.match(rf"({'|'.join(TOPICS)}) \| ", line):
            entries[-1] += "\n" + line
        else:
            entries.append(line)
    return [_parts(entry) for entry in entries]


def targets(half: str) -> list[tuple[str, Truth]]:
    """Single lines with their truth; those that a half has of its own have a file of their own."""
    own = FOLDER / f"{half}_targets.txt"
    path = own if own.exists() else FOLDER / "targets.txt"
    pairs = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text, _, words = line.rpartition(" | ")
        if not line.startswith("# ") and (path == own or half == half_of(text)):
            truth = Truth()
            truth.add(words)
            pairs.append((text.replace("\\n", "\n"), truth))
    return pairs


def half_of(text: str) -> str:
    """The half that a line belongs to."""
    return "closed" if hashlib.sha256(text.encode()).digest()[0] % 2 else "open"


def reports(half: str, of_each_style: int = 30, seed: int = 40) -> Iterator[Report]:
    """Reports of every style, of the lines of one half; or the whole reports of a half that has such."""
    if (FOLDER / f"{half}_reports.txt").exists():
        yield from _whole_reports(half)
        return
    for style in ("second_style",) if half == "second" else STYLES:
        draw = random.Random(f"{seed} {half} {style}")
        lines = [one for one in statements(style) if half in (half_of(one[1]), "second")]
        for number in range(of_each_style):
            yield _report(f"{style}-{half}-{number}", style, lines, draw)


def house_file(writer: str, style: str) -> Path:
    """The file of words of a hospital of the tenth set."""
    return FOLDER / "houses" / f"{writer}_{re.sub('[ -]', '_', style.lower())}.yaml"


def _whole_reports(half: str) -> Iterator[Report]:
    text = (FOLDER / f"{half}_reports.txt").read_text(encoding="utf-8")
    for entry in re.split(r"^%% ", text, flags=re.MULTILINE)[1:]:
        head, _, rest = entry.partition("\n")
        body, _, words = rest.partition("\n%=")
        name, _, manner = head.partition(" | ")
        truth = Truth()
        truth.add(words)
        yield Report(name, manner.strip(), body + "\n", truth)


def _parts(entry: str) -> tuple[str, str, str]:
    topic, _, rest = entry.partition(" | ")
    text, _, truth = rest.rpartition(" | ")
    return topic, text, truth


def _report(name: str, style: str, lines: list[tuple[str, str, str]], draw: random.Random) -> Report:
    truth, text = Truth(), ""
    for topic in TOPICS:
        choices = [one for one in lines if one[0] == topic]
        if not choices or draw.random() < {"diast": 0.3, "noise": 0.4, "tail": 0.1}.get(topic, 0.12):
            continue
        _, words, told = draw.choice(choices)
        wall, level = draw.choice(sorted(WALLS)), draw.choice(sorted(LEVELS))
        words = words.replace("{wall}", wall).replace("{level}", level)
        truth.add(told.replace("{W}", WALLS[wall]).replace("{L}", LEVELS[level]))
        text += HEADINGS.get(style, {}).get(topic, "") + _sentence(style, topic, words)
    return Report(name, style, text.strip() + "\n", truth)


def _sentence(style: str, topic: str, words: str) -> str:
    if style in LINES or topic in {"ind", "tech", "dx", "tail"}:
        return words + "\n"
    if style == "terse":
        return words + ". "
    if style == "dictation":
        return words + " "
    return words[0].upper() + words[1:] + " "
