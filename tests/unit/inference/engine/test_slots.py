"""Slots: never more than there are, first come first served, chains that go on before all others."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.inference.engine.supervisor import Slots


async def order_of(n: int, waiting: list[bool], cancelled: set[int]) -> list[int]:
    """Numbers of waiters in the order in which they got a slot, after all slots were held."""
    slots, opened, got = Slots(n), asyncio.Event(), []
    held = 0

    async def hold() -> None:
        async with slots.taken(goes_on=False):
            await opened.wait()

    async def want(number: int, goes_on: bool) -> None:
        nonlocal held
        async with slots.taken(goes_on):
            held += 1
            assert held <= n
            got.append(number)
            await asyncio.sleep(0)
            held -= 1

    first = [asyncio.create_task(hold()) for _ in range(n)]
    await asyncio.sleep(0)
    others = [asyncio.create_task(want(number, goes_on)) for number, goes_on in enumerate(waiting)]
    await asyncio.sleep(0)
    for number in cancelled:
        others[number].cancel()
    opened.set()
    await asyncio.gather(*first)
    await asyncio.gather(*others, return_exceptions=True)
    for _ in range(n):  # every slot came back
        await asyncio.wait_for(slots.taken(goes_on=False).__aenter__(), timeout=300)
    return got


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 4), waiting=st.lists(st.booleans(), max_size=12), data=st.data())
def test_chains_that_go_on_come_first_and_each_kind_in_its_order(n, waiting, data):
    numbers = st.sets(st.integers(0, len(waiting) - 1)) if waiting else st.just(set())
    cancelled = data.draw(numbers)
    got = asyncio.run(order_of(n, waiting, cancelled))
    left = [number for number in range(len(waiting)) if number not in cancelled]
    assert got == sorted(left, key=lambda number: not waiting[number])


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_waiter_cancelled_as_it_gets_its_slot_gives_it_back(goes_on):
    async def cancelled_late() -> None:
        slots = Slots(1)
        first = slots.taken(goes_on=False)
        await first.__aenter__()
        waiter = asyncio.create_task(slots.taken(goes_on).__aenter__())
        await asyncio.sleep(0)
        await first.__aexit__(None, None, None)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        await asyncio.wait_for(slots.taken(goes_on=False).__aenter__(), timeout=300)

    asyncio.run(cancelled_late())
