"""Request keys: digests of everything that a request asks, and of nothing else."""

import hashlib
from typing import TYPE_CHECKING

from cardiolens.base.digest import DIGEST_BYTES, digest_of
from cardiolens.config.model import Sampling

if TYPE_CHECKING:
    from hashlib import blake2b as Hash  # noqa: N812


def hash_model(model_key: str, sampling: Sampling) -> "Hash":
    """Start a hash with the model and its sampling; copies continue with frames and question."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    _add(state, model_key, digest_of(sampling.model_dump(mode="json")))
    return state


def hash_frames(digest: "Hash", system: str, frames_text: str, frame_keys: tuple[str, ...]) -> "Hash":
    """Copy a hash and add the text up to the question; each frame enters by its key."""
    state = digest.copy()
    _add(state, system, frames_text, *frame_keys)
    return state


def request_key(shown_state: "Hash", question_text: str, *decoding: str) -> str:
    """Return the key of one request: 32 hex digits.

    `decoding` is everything else that decides the answer: legal replies, token limit, replicate; also the arm
    and the question if the reader looks at the truth or samples without a seed.
    """
    state = shown_state.copy()
    _add(state, question_text, *decoding)
    return state.hexdigest()


def _add(state: "Hash", *texts: str) -> None:
    """Add texts so that two different lists of texts never add the same bytes."""
    encoded = [text.encode() for text in texts]
    state.update(b"".join([piece for text in encoded for piece in (len(text).to_bytes(8, "little"), text)]))
