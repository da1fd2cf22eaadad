"""Cap the tokens and the money that requests to a server may cost."""

from typing import Protocol

from cardiolens.config.http import HttpSpec

Tokens = tuple[int, int]
"""Prompt and output tokens."""


class Account(Protocol):
    """The tokens spent on a model, by this run and others."""

    def add(self, spent: Tokens) -> None:
        """Add the tokens of one reply."""

    def total(self) -> Tokens:
        """Return the tokens spent so far."""


class OwnAccount:
    """The tokens spent by this run and before it, without other concurrent runs."""

    def __init__(self, before: Tokens = (0, 0)) -> None:
        self._total = before

    def add(self, spent: Tokens) -> None:
        self._total = (self._total[0] + spent[0], self._total[1] + spent[1])

    def total(self) -> Tokens:
        return self._total


class SpendingCap:
    """The tokens spent on a model, checked against its caps.

    Counts the tokens that replies report, and cached prompt tokens at full price: an upper bound of the bill.
    """

    def __init__(self, http: HttpSpec, account: Account) -> None:
        self._http = http
        self._account = account

    def spend(self, prompt_tokens: int, output_tokens: int) -> None:
        """Count the tokens of one reply."""
        self._account.add((prompt_tokens, output_tokens))

    @property
    def tokens(self) -> int:
        """Prompt and output tokens spent so far."""
        return sum(self._account.total())

    @property
    def usd(self) -> float:
        """Price of the tokens spent so far; 0 if no price is declared."""
        prompt, output = self._account.total()
        prices = self._http.usd_per_million_input or 0.0, self._http.usd_per_million_output or 0.0
        return (prompt * prices[0] + output * prices[1]) / 1e6

    def reached(self) -> str | None:
        """Return a message that names the cap that is reached; None while below all caps."""
        tokens, usd = self._http.max_tokens_total, self._http.max_usd
        if tokens is not None and self.tokens >= tokens:
            return f"max_tokens_total {tokens:,} is reached ({self.tokens:,} tokens)"
        if usd is not None and self.usd >= usd:
            return f"max_usd {usd:g} is reached ({self.usd:.2f} USD, {self.tokens:,} tokens)"
        return None
