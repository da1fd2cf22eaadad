"""Quotas: a budget split over views, and the use of quotas that a view cannot fill (protocol 5.3)."""

from collections.abc import Sequence


def split(budget: int, weights: Sequence[int]) -> list[int]:
    """Quotas by weight: first one frame each, the rest by largest remainder, ties in listed order."""
    if budget < len(weights):
        return [int(place < budget) for place in range(len(weights))]
    rest, total = budget - len(weights), sum(weights)
    quotas = [1 + rest * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda place: -(rest * weights[place] % total))
    for place in by_remainder[: budget - sum(quotas)]:
        quotas[place] += 1
    return quotas


def settle(quotas: Sequence[int], capacities: Sequence[int]) -> list[int]:
    """Quotas that every view can fill: the unfilled rest of one is offered to the others in listed order."""
    filled = [min(quota, capacity) for quota, capacity in zip(quotas, capacities, strict=True)]
    deficit = sum(quotas) - sum(filled)
    for place, capacity in enumerate(capacities):
        n_moved = min(deficit, capacity - filled[place])
        filled[place] += n_moved
        deficit -= n_moved
    return filled
