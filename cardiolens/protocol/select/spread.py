"""Integer arithmetic that spreads choices evenly (protocol 5.2)."""


def even(n: int, m: int) -> list[int]:
    """Return `m` evenly spread, distinct ranks of 0..n-1; all if m >= n."""
    if m >= n:
        return list(range(n))
    return [((2 * i + 1) * n) // (2 * m) for i in range(m)]


def center_out(n: int) -> list[int]:
    """Return the ranks 0..n-1 from the middle outwards: n//2, then one below, one above, two below, ..."""
    return sorted(range(n), key=lambda rank: (abs(rank - n // 2), rank))


def deal(count: int, hands: int) -> list[int]:
    """Return the size of each hand when `count` cards are dealt round-robin."""
    return [count // hands + (hand < count % hands) for hand in range(hands)]
