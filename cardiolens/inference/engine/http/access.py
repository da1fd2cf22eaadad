"""Access to a server: permission to send frames away, the API key, and the proxy."""

import ipaddress
import json
import os
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from cardiolens.base.errors import InputError
from cardiolens.config.http import HttpSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec

_SHORTEST = 8  # characters; shorter keys, such as "EMPTY", may appear in the configuration


def check_access(spec: SweepSpec) -> None:
    """Raise InputError, before anything starts, if a server may not be asked or its key is missing.

    A dry run (mode=plan) sends nothing, so it can show the requests of a commercial model without permission
    and key.
    """
    if spec.mode == "plan":
        return
    for model in spec.model:
        if model.engine == "http":
            check_leave(model)
            read_key(model)


def check_leave(model: ModelSpec) -> None:
    """Raise InputError unless the model runs on this machine or frames may leave the machine."""
    http = model.served
    if not is_loopback(http.host) and not http.allow_external:
        raise InputError(
            f"model {model.name}: frames of patients would be sent to {http.host}, not this machine; "
            f"if you may do that, set model.{model.name}.http.allow_external=true"
        )


def read_key(model: ModelSpec) -> str | None:
    """Return the API key from the environment; None if the server needs none, InputError if unusable."""
    name = model.served.api_key_env
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise InputError(
            f"model {model.name}: the environment variable {name} is not set; put the key of "
            f"{model.served.host} there, here and on every node of the cluster"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise InputError(
            f"model {model.name}: the environment variable {name} holds spaces, lines or other characters "
            "that no key has; put the key alone there"
        )
    description = json.dumps(model.served.model_dump(mode="json"), ensure_ascii=False)
    if len(key) >= _SHORTEST and key in description:
        raise InputError(
            f"model {model.name}: its configuration holds the key of {name}, which would be written to every "
            "run; remove it there: the key is sent in the header Authorization and nowhere else"
        )
    return key


def password_of(url: str | None) -> str | None:
    """Return the password in an address; None without one."""
    return None if url is None else urlsplit(url).password


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def way_to(http: HttpSpec) -> str:
    """Return a text for the log: the address of a model, and whether a proxy is used."""
    return f"{http.base_url}{', through a proxy that the environment names' if proxy_of(http) else ''}"


def proxy_of(http: HttpSpec) -> str | None:
    """Return the proxy that the environment names for a server; None without one or for this machine."""
    if is_loopback(http.host) or proxy_bypass(http.host):
        return None
    return getproxies().get(urlsplit(http.base_url).scheme)
