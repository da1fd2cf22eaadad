"""Ask a server whether it answers, before anything is sent to it."""

import asyncio

from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.http.access import check_leave, password_of, proxy_of, read_key
from cardiolens.inference.engine.http.header_lines import HttpAnswer, Words
from cardiolens.inference.engine.http.http_fault import FaultError, fault_of
from cardiolens.inference.engine.http.transport import Transport

_SECONDS = 15.0
_LISTED = 5  # names in a message


def reach(model: ModelSpec) -> str:
    """Ask the server of a model for its list of models; InputError if it cannot be used.

    Servers that have no such list answer with an error, which shows that they are there.
    """
    http = model.served
    check_leave(model)
    try:
        answer = asyncio.run(asyncio.wait_for(_models(model), _SECONDS))
        if answer.status in (401, 403):
            raise fault_of(answer)
    except (FaultError, TimeoutError) as error:
        raise InputError(f"{http.base_url} {error or 'did not answer in time'}") from None
    names = _names(answer)
    if names and http.api_model not in names:
        raise InputError(
            f"{http.base_url} answers and lists no model {http.api_model}, but {', '.join(names[:_LISTED])}; "
            "correct http.api_model"
        )
    return f"{http.base_url} answers{' and has the model' if names else ''}"


async def _models(model: ModelSpec) -> HttpAnswer:
    key, proxy = read_key(model), proxy_of(model.served)
    transport = Transport(model.served, key, proxy, Words(key, password_of(proxy)))
    try:
        return await transport.models()
    finally:
        await transport.close()


def _names(answer: HttpAnswer) -> list[str]:
    """Return the names in a list of models; empty if the server sent none."""
    listed = answer.tree.get("data") if isinstance(answer.tree, dict) else None
    entries = listed if isinstance(listed, list) else []
    return [str(entry["id"]) for entry in entries if isinstance(entry, dict) and "id" in entry]
