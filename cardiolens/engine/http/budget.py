"""Cap on the tokens and the money that requests to a server may cost."""

from cardiolens.config.http import HttpSpec


class SpendingCap:
    """Tokens spent on a model so far, against its caps.

    Counts the tokens that replies report, cached prompt tokens at the full price: an upper bound of the bill.
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
        """Prompt and output tokens spent so far."""
        return self._prompt + self._output

    @property
    def usd(self) -> float:
        """Price of the tokens spent so far; 0 where no price is declared."""
        prices = self._http.usd_per_million_input or 0.0, self._http.usd_per_million_output or 0.0
        return (self._prompt * prices[0] + self._output * prices[1]) / 1e6

    def reached(self) -> str | None:
        """Message that names the cap that is reached; None while there is room."""
        tokens, usd = self._http.max_tokens_total, self._http.max_usd
        if tokens is not None and self.tokens >= tokens:
            return f"max_tokens_total {tokens:,} is reached ({self.tokens:,} tokens)"
        if usd is not None and self.usd >= usd:
            return f"max_usd {usd:g} is reached ({self.usd:.2f} USD, {self.tokens:,} tokens)"
        return None
