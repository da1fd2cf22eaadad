"""What the terminal says of second turns: none counts as asked back that has no reply."""

import pytest

from cardiolens.show.terminal.show import show_second_turns


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ({"answered": 3, "unread": 1}, ["asked back: 4 replies"]),
        ({"answered": 3, "open": 2}, ["asked back: 3 replies", "not asked back: 2 replies"]),
        ({"open": 1}, ["not asked back: 1 reply"]),
        ({}, []),
    ],
)
def test_replies_without_a_second_one_were_not_asked_back(
    ends: dict[str, int], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show_second_turns({f"second_{end}": number for end, number in ends.items()})
    lines = (
        " ".join(capsys.readouterr().out.split()).replace(" not asked back", "\nnot asked back").splitlines()
    )
    assert len(lines) == len(said)
    assert all(line.startswith(begin) for line, begin in zip(lines, said, strict=True))
