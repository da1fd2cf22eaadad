"""Quotas: split a budget over views and reassign what a view cannot fill (protocol 5.3)."""

from collections.abc import Sequence


def split(budget: int, weights: Sequence[int]) -> list[int]:
    """Split a budget: one frame each, the rest by weight with largest remainder; ties in listed order."""
    if budget < len(weights):
        return [int(place < budget) for place in range(len(weights))]
    rest, total = budget - len(weights), sum(weights)
    quotas = [1 + rest * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda place: -(rest * weights[place] % total))
    for place in by_remainder[: budget - sum(quotas)]:
        quotas[place] += 1
    return quotas


def settle(quotas: Sequence[int], capacities: Sequence[int]) -> list[int]:
    """Limit quotas to capacities; the total deficit goes to views with room, in listed order."""
    filled = [min(quota, capacity) for quota, capacity in zip(quotas, capacities, strict=True)]
    deficit = sum(quotas) - sum(filled)
    for place, capacity in enumerate(capacities):
        n_moved = min(deficit, capacity - filled[place])
        filled[place] += n_moved
        deficit -= n_moved
    return filled
