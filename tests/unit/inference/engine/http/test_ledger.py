"""The ledger of spent tokens: no sweep's entry is lost beside another's, and a forged one is named."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.inference.engine.http.engine import NAME, Ledger

COUNT = st.integers(0, 2**31 - 1)


def test_sweeps_that_write_at_once_lose_no_entry(tmp_path: Path) -> None:
    sweeps = [Ledger(tmp_path, (0, 0)) for _ in range(3)]

    def spend(ledger: Ledger) -> None:
        for _ in range(25):
            ledger.add((3, 1))

    threads = [threading.Thread(target=spend, args=(ledger,)) for ledger in sweeps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [ledger.total() for ledger in sweeps] == [(225, 75)] * 3
    for ledger in sweeps:
        ledger.close()


@given(st.lists(st.tuples(COUNT, COUNT)), st.tuples(COUNT, COUNT))
def test_what_was_spent_is_at_least_what_completions_tell(
    tmp_path_factory: pytest.TempPathFactory, spent: list[tuple[int, int]], stored: tuple[int, int]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    first = Ledger(folder, (0, 0))
    for entry in spent:
        first.add(entry)
    told = first.total()
    assert told == (sum(prompt for prompt, _ in spent), sum(output for _, output in spent))
    again = Ledger(folder, stored)
    assert again.total() == (max(told[0], stored[0]), max(told[1], stored[1])) == first.total()
    first.close()
    again.close()


@pytest.mark.parametrize("content", [b"x", b"\n", b"1 2\n", b"-" * 58, b"9" * 1000])
def test_a_ledger_that_sweeps_did_not_write_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(InputError, match="is not the ledger of tokens that sweeps wrote; delete it"):
        Ledger(tmp_path, (0, 0))
