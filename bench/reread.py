"""Agreement of a model's second reading with the readings of a person, on the replies of one half.

python -m bench.reread model=qwen3_vl_8b                # the closed half; words of `cardiolens.sweep`
python -m bench.reread half=fourth model=qwen3_vl_8b
"""

import sys
from collections import Counter
from collections.abc import Sequence

from bench.replies import NO_ANSWER, SETS, SUBTASKS, WrittenReply, written_replies
from cardiolens.config.compose import read_spec
from cardiolens.curation.review.replies import ReplyView
from cardiolens.curation.review.reread_replies import Reread, reread


def views(replies: Sequence[WrittenReply]) -> dict[tuple[str, str], ReplyView]:
    """The replies as a model is shown them, by their number."""
    shown: dict[tuple[str, str], ReplyView] = {}
    for number, reply in enumerate(replies):
        subtask = SUBTASKS[reply.subtask]
        shown["half", str(number)] = ReplyView(
            subtask.question, reply.options, reply.several, reply.text, reply.cut
        )
    return shown


def agreement(replies: Sequence[WrittenReply], readings: Sequence[Reread]) -> Counter[str]:
    """How often a model reads as the person did: `right`, `unread`, `wrong`, or `unusable`."""
    counts: Counter[str] = Counter()
    for reading in readings:
        reply = replies[int(reading.place[1])]
        if reading.keys is None:
            counts["unusable"] += 1
        elif reading.keys:
            counts["right" if "".join(sorted(reading.keys)) in reply.right else "wrong"] += 1
        else:
            counts["right" if reply.right & NO_ANSWER else "unread"] += 1
    return counts


def main() -> None:
    """Let a model read a half, and print the counts."""
    halves = [word.removeprefix("half=") for word in sys.argv[1:] if word.startswith("half=")]
    half = halves[-1] if halves else "closed"
    if half not in SETS:
        raise SystemExit(f"half={half}: choose of {', '.join(SETS)}")
    replies = list(written_replies(half))
    sweep = read_spec(["tracker=none", *(word for word in sys.argv[1:] if not word.startswith("half="))])
    counts = agreement(replies, reread(sweep, views(replies)))
    print(
        f"{half}: {counts.total()} replies, " + ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
    )


if __name__ == "__main__":
    main()
