"""Engines of other packages: entry points of `cardiolens.engines` (docs/guides/extend.md).

The entry point makes an `Engine` (`ask.py`) of the model's `sampling` and `options`. It is made before a run,
to be checked, and again in the process that asks it: what is slow or takes memory belongs into `start`.
"""

from cardiolens.base.entry_points import PluginError, blamed, make, reason_of
from cardiolens.base.errors import RunError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.ask import (
    Ask,
    Engine,
    EngineDeadError,
    ErrorKind,
    FrameWork,
    NotAskedError,
    Pictures,
    Reply,
    RequestError,
)


def open_engine(model: ModelSpec) -> "PluggedEngine":
    """Make the engine of a model; InputError or PluginError if it cannot be used."""
    return PluggedEngine(
        model.engine, make("engines", model.engine, Engine, sampling=model.sampling, **model.options)
    )


class PluggedEngine:
    """An engine of another package: what it raises, and what is no reply, is a failure with its name."""

    def __init__(self, word: str, engine: Engine) -> None:
        self._word = word
        self._engine = engine

    @property
    def mortal(self) -> bool:
        with blamed(self._word):
            return bool(self._engine.mortal)

    async def start(self) -> None:
        with blamed(self._word):
            await self._engine.start()

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        try:
            reply = await self._engine.answer(ask, pictures)
        except (EngineDeadError, NotAskedError, RunError):
            raise
        except RequestError as error:
            raise RequestError(error.kind, f"plugin {self._word}: {error.message}") from error
        except (Exception, SystemExit) as error:
            raise failure(self._word, reason_of(error)) from error
        if problem := _problem(reply):
            raise failure(self._word, problem)
        return reply

    def frames(self) -> FrameWork:
        with blamed(self._word):
            work = self._engine.frames()
        if not isinstance(work, FrameWork):
            raise PluginError(f"plugin {self._word}: its frames are no FrameWork; its maker must correct it")
        return work

    def close(self) -> None:
        with blamed(self._word):
            self._engine.close()


def failure(word: str, problem: str) -> RequestError:
    """Return the failure of one request by a part of another package."""
    return RequestError(ErrorKind.FAILED, f"plugin {word}: {problem}")


def _problem(reply: object) -> str:
    """Return what is wrong with a reply, or ""."""
    if not isinstance(reply, Reply):
        return f"returns a {type(reply).__name__} in the place of a Reply"
    for name in ("text", "finish_reason", "reasoning"):
        value = getattr(reply, name)
        if not isinstance(value, str) and not (name == "reasoning" and value is None):
            return f"returns a reply whose {name} is a {type(value).__name__}"
        if value and not _is_unicode(value):
            return f"returns a reply whose {name} is no Unicode text"
    return ""


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
