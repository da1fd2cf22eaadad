"""Phases of long work: what a listener hears of them."""

from cardiolens.base.phases import Phase, begin, heard_by, phase


def test_a_listener_hears_the_begin_and_every_item() -> None:
    phases: list[Phase] = []
    with heard_by(phases.append):
        assert list(phase("judging", "models", ["a", "b"])) == ["a", "b"]
        begin("pooling")
        list(phase("scoring", "arms", iter("abc"), 3))
    assert [entry.words.partition(",")[0] for entry in phases] == [
        *("judging: 0 of 2 models", "judging: 1 of 2 models", "judging: 2 of 2 models"),
        "pooling",
        *(f"scoring: {done} of 3 arms" for done in range(4)),
    ]


def test_nobody_needs_to_listen() -> None:
    assert list(phase("judging", "models", "ab")) == ["a", "b"]
    begin("pooling")


def test_the_time_left_is_what_the_rest_takes_at_the_same_rate() -> None:
    assert Phase("judging", "models", 6, 24, 60.0).words == "judging: 6 of 24 models, 0:03:00 left"
    assert Phase("judging", "models", 0, 24, 60.0).words == "judging: 0 of 24 models"
    assert Phase("judging", "models", 24, 24, 60.0).seconds_left is None
    assert Phase("reading", "rows", 1200, None, 60.0).words == "reading: 1,200 rows"
