"""What an error of vLLM means: one request failed, or the engine is dead."""

from cardiolens.inference.engine.ask import EngineDeadError, ErrorKind, RequestError

_LONGEST = 500  # characters of a message; some quote the whole prompt


def failure_of(error: Exception, *, dead: bool) -> EngineDeadError | RequestError:
    """The failure to raise in place of an error that one request met; `dead` as the engine says of itself.

    vLLM 0.32 wraps whatever its processors and its core raise for one request into EngineGenerateError, and
    derives its own refusals from VLLMClientError, which is no ValueError. None of them ends the engine.
    """
    from vllm.exceptions import VLLMClientError
    from vllm.v1.engine.exceptions import EngineDeadError as Dead
    from vllm.v1.engine.exceptions import EngineGenerateError

    if dead or isinstance(error, Dead):
        return EngineDeadError(str(error) or "the engine process died")
    refused = isinstance(error, VLLMClientError | ValueError)
    if isinstance(error, EngineGenerateError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    message = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
    return RequestError(ErrorKind.REJECTED if refused else ErrorKind.FAILED, message)
