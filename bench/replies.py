"""Counts of labelled replies that are read wrong or not read, by set; their readings were decided by hand.

python -m bench.replies               # a table of all sets
python -m bench.replies --show open   # each reply of a set that is unread or read wrong
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cardiolens.protocol.replies import Option, Reading, read_reply
from cardiolens.protocol.tasks.catalogue import load_catalogue

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "unit" / "protocol" / "replies" / "labelled"
SHARED = ROOT.parent / "shared" / "judging" / "replies.json"
SETS = tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))
NO_ANSWER = frozenset({"none", "refusal", "inconsistent"})
SUBTASKS = load_catalogue("openprotocol-1").subtasks


@dataclass(frozen=True)
class WrittenReply:
    """A reply as a model might write it, and the readings that are right."""

    family: str
    subtask: str
    cut: bool
    right: frozenset[str]  # letters, or what stands for no answer
    text: str

    @property
    def options(self) -> tuple[Option, ...]:
        return tuple((option.key, option.text) for option in SUBTASKS[self.subtask].options)

    @property
    def several(self) -> bool:
        return SUBTASKS[self.subtask].answer_type == "multi"


def written_replies(name: str) -> Iterator[WrittenReply]:
    """The replies of one of `SETS`.

    Lines of their file: `%% family`, `% subtask[|cut] reading[/reading]`, and the lines of the reply.
    """
    family, where, right, lines = "", "", "", list[str]()

    def done() -> Iterator[WrittenReply]:
        if where:
            subtask, _, cut = where.partition("|")
            yield WrittenReply(family, subtask, cut == "cut", frozenset(right.split("/")), "\n".join(lines))

    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(("% ", "%% ")):
            yield from done()
            where, lines = "", []
        if line.startswith("%% "):
            family = line[3:]
        elif line.startswith("% "):
            _, where, right = line.split(" ")
        else:
            lines.append(line)
    yield from done()


def shared_replies() -> list[WrittenReply]:
    """The set that lies beside the repository; empty where it does not."""
    rows = json.loads(SHARED.read_text(encoding="utf-8")) if SHARED.is_file() else []
    return [
        WrittenReply(
            "shared",
            row["subtask"],
            row["cut"],
            frozenset(reading or "none" for reading in row["accept"]),
            row["reply"],
        )
        for row in rows
    ]


def reading_of(reply: WrittenReply) -> Reading:
    """The reading of a labelled reply."""
    ending = "length" if reply.cut else "stop"
    return read_reply(reply.text, reply.options, several=reply.several, finish_reason=ending)


def outcome(reply: WrittenReply, answers: tuple[str, ...]) -> str:
    """`right`, `unread` or `wrong`; nothing read is right where no answer is a right reading."""
    letters = "".join(answers)
    if letters:
        return "right" if letters in reply.right else "wrong"
    return "right" if reply.right & NO_ANSWER else "unread"


def main() -> None:
    """Print the table, or the replies of one set that are unread or read wrong."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--show", choices=SETS)
    name = arguments.parse_args().show
    if name:
        _show(name)
        return
    counts: dict[str, Counter[str]] = {}
    sets = {name: list(written_replies(name)) for name in SETS} | {"shared": shared_replies()}
    for name, replies in sets.items():
        count = counts[name] = Counter({"n": len(replies)})
        for reply in replies:
            reading = reading_of(reply)
            result = outcome(reply, reading.answers)
            count[f"{result} in all"] += 1
            count[reading.status] += result == "unread"
    whole = sum(counts.values(), Counter[str]())
    print("| set | n | wrong | unread | of these cut, contradicted, refused, unread |\n|---|---|---|---|---|")
    for name, count in [*counts.items(), ("all", whole)]:
        kinds = ", ".join(str(count[kind]) for kind in ("cut", "contradicted", "refused", "unread"))
        print(f"| {name} | {count['n']} | {count['wrong in all']} | {count['unread in all']} | {kinds} |")


def _show(name: str) -> None:
    for reply in written_replies(name):
        reading = reading_of(reply)
        if (result := outcome(reply, reading.answers)) != "right":
            right = "/".join(sorted(reply.right))
            print(f"--- {result}: {reply.family}, {reply.subtask}, right: {right}, {reading}")
            print(reply.text)


if __name__ == "__main__":
    main()
