"""What asking a server may cost."""

from cardiolens.config.http import HttpSpec


class SpendingCap:
    """Tokens spent on a model so far, against its caps.

    Counted is what replies report, cached prompt tokens at the full price: an upper bound of the bill.
    """

    def __init__(self, http: HttpSpec, prompt_tokens: int = 0, output_tokens: int = 0) -> None:
        self._http = http
        self._prompt = prompt_tokens
        self._output = output_tokens

    def spend(self, prompt_tokens: int, output_tokens: int) -> None:
        """Count one reply."""
        self._prompt += prompt_tokens
        self._output += output_tokens

    @property
    def tokens(self) -> int:
        """Prompt and output tokens so far."""
        return self._prompt + self._output

    @property
    def usd(self) -> float:
        """Their price; 0 where none is declared."""
        prices = self._http.usd_per_million_input or 0.0, self._http.usd_per_million_output or 0.0
        return (self._prompt * prices[0] + self._output * prices[1]) / 1e6

    def reached(self) -> str | None:
        """Which cap is reached, in words; None while there is room."""
        tokens, usd = self._http.max_tokens_total, self._http.max_usd
        if tokens is not None and self.tokens >= tokens:
            return f"max_tokens_total {tokens:,} is reached ({self.tokens:,} tokens)"
        if usd is not None and self.usd >= usd:
            return f"max_usd {usd:g} is reached ({self.usd:.2f} USD, {self.tokens:,} tokens)"
        return None
