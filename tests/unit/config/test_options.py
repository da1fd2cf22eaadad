"""The number of options: a new one needs an old one to go, or a reason that is written here."""

from bench.options import options

MOST = 120  # of a sweep, an import and drafts together; 180 at the first count


def test_there_are_no_more_options() -> None:
    every = options()
    assert len(every) == len(set(every))
    assert "cluster.partition" in every
    assert len(every) <= MOST
