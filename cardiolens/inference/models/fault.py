"""Failures of one model: of its files, template, tokenizer or image processor."""

from collections.abc import Iterator
from contextlib import contextmanager

from cardiolens.base.errors import InputError, RunError
from cardiolens.inference.models.token_counts import TokenCounter


class ModelError(InputError):
    """One model cannot be asked; the other models of the sweep still can."""


@contextmanager
def fault_of(model: str) -> Iterator[None]:
    """Turn every error of a block into ModelError: templates and processors are foreign code.

    RunError passes through, because it means that no model can continue.
    """
    try:
        yield
    except (ModelError, RunError):
        raise
    except InputError as error:
        raise ModelError(str(error)) from error
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ModelError(
            f"model {model}: its template or processor failed ({reason}); take its files from where it is "
            "published, or run the other models with keep_going=true"
        ) from error


class BlamingCounter:
    """A token counter that raises ModelError if counting fails."""

    def __init__(self, model: str, counter: TokenCounter) -> None:
        self._model = model
        self._counter = counter

    def image_tokens(self, size: tuple[int, int], /) -> int:
        with fault_of(self._model):
            return self._counter.image_tokens(size)

    def count(self, system: str, text: str, sizes: tuple[tuple[int, int], ...]) -> int:
        with fault_of(self._model):
            return self._counter.count(system, text, sizes)

    def count_shown(
        self, system: str, frames: str, sizes: tuple[tuple[int, int], ...], *, exact: bool
    ) -> tuple[int, str]:
        with fault_of(self._model):
            return self._counter.count_shown(system, frames, sizes, exact=exact)

    def count_asked(self, question: str, tail: str, /) -> int:
        with fault_of(self._model):
            return self._counter.count_asked(question, tail)
