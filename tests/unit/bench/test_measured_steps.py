"""The steps that a bench times by name are there."""

from bench.paper_size import STEPS


def test_the_steps_of_judging_and_scoring_are_those_that_are_timed() -> None:
    assert [name for name, module in STEPS.items() if not callable(getattr(module, name, None))] == []
