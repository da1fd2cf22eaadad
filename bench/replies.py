"""Counts of replies read, unread and read wrong, by family, on replies whose readings were decided by hand.

python -m bench.replies               # the closed half, which the rules were not written on
python -m bench.replies --half open --show   # with each reply that is unread or read wrong
python -m bench.replies --blind       # without the wording of the questions
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.score.verdicts.parse import parse_answer

FOLDER = Path(__file__).parents[1] / "tests" / "unit" / "score" / "verdicts"
HALVES = (
    "open",
    "closed",
    "fresh",
    "hostile",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "weak",
    "weak_closed",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thin",
)
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


def written_replies(half: str) -> Iterator[WrittenReply]:
    """The replies of one of `HALVES`.

    Lines of their file: `%% family`, `% subtask[|cut] reading[/reading]`, and the lines of the reply.
    """
    family, where, right, lines = "", "", "", list[str]()

    def done() -> Iterator[WrittenReply]:
        if where:
            subtask, _, cut = where.partition("|")
            yield WrittenReply(family, subtask, cut == "cut", frozenset(right.split("/")), "\n".join(lines))

    for line in (FOLDER / f"replies_2026_{half}.txt").read_text(encoding="utf-8").splitlines():
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


def outcome(reply: WrittenReply, *, blind: bool = False) -> str:
    """`right`, `unread` or `wrong`; nothing read is right where no answer is a right reading."""
    subtask = SUBTASKS[reply.subtask]
    options = tuple((option.key, option.text) for option in subtask.options)
    question = "" if blind else subtask.question
    parsed = parse_answer(
        reply.text,
        options,
        subtask.answer_type,
        subtask.exclusive,
        cut=reply.cut,
        question=question,
        code=reply.subtask,
    )
    letters = "".join(parsed.keys)
    if letters:
        return "right" if letters in reply.right else "wrong"
    return "right" if reply.right & NO_ANSWER else "unread"


def main() -> None:
    """Print the counts by family."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--half", choices=HALVES, default="closed")
    arguments.add_argument("--blind", action="store_true")
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    counts: dict[str, Counter[str]] = {}
    for reply in written_replies(options.half):
        result = outcome(reply, blind=options.blind)
        counts.setdefault(reply.family, Counter())[result] += 1
        if options.show and result != "right":
            print(f"--- {result}: {reply.family}, {reply.subtask}, right: {'/'.join(sorted(reply.right))}")
            print(reply.text)
    whole = sum(counts.values(), Counter[str]())
    print("| family | replies | right | unread | wrong |\n|---|---|---|---|---|")
    for family, count in [*counts.items(), ("all", whole)]:
        print(f"| {family} | {count.total()} | {count['right']} | {count['unread']} | {count['wrong']} |")


if __name__ == "__main__":
    main()
