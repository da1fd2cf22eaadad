"""Encode a request as the JSON body of an OpenAI-compatible call.

The body contains the messages, frames as PNG without metadata, and decoding options. It contains no id of a
study, patient, question or request, and no seed except the configured seed plus the number of a sample.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import TypedDict

import numpy as np
from PIL import Image
from pydantic import JsonValue

from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.ask import Ask
from cardiolens.inference.engine.decoding import one_letter, sampling_of, structured_output_args
from cardiolens.protocol.tasks.legal import FREE
from cardiolens.storage.schemas import FRAME


class _Message(TypedDict):
    """One message of a chat completion: text, or texts and images in the order shown."""

    role: str
    content: str | list[dict[str, str | dict[str, str]]]


Field = JsonValue | Sequence[_Message] | Mapping[str, bool | int | str] | Mapping[str, str | list[str]]

_LEVEL = 1  # of 9: takes a quarter of the default level's time, for 15 % more bytes


def body(model: ModelSpec, ask: Ask, url_of: Callable[[str], str]) -> bytes:
    """Return the JSON body of one chat completion; `url_of` returns a frame's data URL by its key."""
    http = model.served
    fields: dict[str, Field] = {
        **http.extra_body,
        "model": http.api_model,
        "messages": messages(ask, url_of),
        http.max_tokens_field: ask.max_tokens,
    }
    if http.sends_sampling:
        sampling = model.sampling
        temperature, seed = sampling_of(sampling, ask)
        fields |= {"temperature": temperature, "top_p": sampling.top_p}
        fields |= {} if seed is None else {"seed": seed}
    if model.template_options:
        fields["chat_template_kwargs"] = dict(model.template_options)
    if ask.constraint != FREE and http.dialect == "vllm":
        fields["structured_outputs"] = structured_output_args(ask)
        if one_letter(ask):
            fields |= {"logprobs": True, "top_logprobs": min(20, len(ask.constraint.legal))}
    return json.dumps(fields, ensure_ascii=False).encode()


def messages(ask: Ask, url_of: Callable[[str], str]) -> list[_Message]:
    """Return the system and user message, with each frame at its mark (U+FFFC) in the text."""
    content: list[dict[str, str | dict[str, str]]] = []
    keys = iter(ask.frame_keys)
    for place, piece in enumerate(ask.text.split(FRAME)):
        if place:
            content.append({"type": "image_url", "image_url": {"url": url_of(next(keys))}})
        if piece:
            content.append({"type": "text", "text": piece})
    return [{"role": "system", "content": ask.system}, {"role": "user", "content": content}]


def data_url(pixels: np.ndarray) -> str:
    """Encode a frame as a PNG data URL: lossless, one or three channels, no metadata."""
    png = BytesIO()
    Image.fromarray(pixels).save(png, "PNG", compress_level=_LEVEL)
    return f"data:image/png;base64,{b64encode(png.getvalue()).decode()}"
