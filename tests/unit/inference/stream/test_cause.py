"""What a person is told of an error that Ray has wrapped."""

import pytest

from cardiolens.inference.stream.pipeline import cause_of

WRAPPED = """\x1b[36mray::MapWorker(MapBatches(Replica)).submit()\x1b[39m (pid=1, ip=192.0.2.2)
ValueError: inner
second line

The above exception was the direct cause of the following exception:

\x1b[36mray::MapWorker(MapBatches(Replica)).submit()\x1b[39m (pid=1, ip=192.0.2.2)
  File "replica.py", line 7, in __call__
    raise {raised}
{raised}

The above exception was the direct cause of the following exception:

\x1b[36mray::MapWorker(MapBatches(Replica)).submit()\x1b[39m (pid=1, ip=192.0.2.2)
ray.exceptions.UserCodeException: UDF failed to process a data block.
Failed to apply UDF transform after 1/1 attempts (total backoff 0.0s).
To change retry attempts, backoff, or which errors are retried, configure `ray.data.DataContext`."""


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ("cardiolens.base.errors.RunError: the engine died again", "the engine died again"),
        ("FileNotFoundError: [Errno 2] part.parquet", "FileNotFoundError: [Errno 2] part.parquet"),
    ],
)
def test_the_error_that_was_raised_is_told_and_not_what_ray_says_of_it(raised, told):
    assert cause_of(RuntimeError(WRAPPED.format(raised=raised))) == f"the stream ended early: {told}"


def test_an_error_without_a_kind_is_told_by_its_last_line_or_its_type():
    assert cause_of(RuntimeError("first\nthe actor died")) == "the stream ended early: the actor died"
    assert cause_of(RuntimeError()) == "the stream ended early: RuntimeError"


def test_an_empty_wrapper_hides_nothing_and_a_full_disk_of_ray_has_a_remedy():
    error = RuntimeError("ray::MapBatches()\nray.exceptions.OutOfDiskError: Local disk is full\nuse `df`")
    error.__cause__ = ValueError()
    told = cause_of(error)
    assert told.startswith(
        "the stream ended early: ray.exceptions.OutOfDiskError: Local disk is full where Ray"
    )
    assert "raise RAY_DEFAULT_OBJECT_STORE_MEMORY_PROPORTION" in told
