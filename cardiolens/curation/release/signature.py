"""The signature of a release's index in the format of minisign: release.json.minisig.

Keys and signatures are those of the program minisign, which can make and check them as well. The signature is
Ed25519 over the BLAKE2b digest of the index; a second one binds the trusted comment to the first.
Source: "Signature format", https://jedisct1.github.io/minisign/
"""

import base64
import binascii
import re
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.private_file import check_private
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.config.released import INDEX, MOST_INDEX

SIGNATURE = f"{INDEX}.minisig"
_KEY_ALGORITHM, _HASHED, _WHOLE = b"Ed", b"ED", b"Ed"  # of keys; of signatures over the digest, or the file
_NO_PASSWORD = b"\0\0"  # in place of a way to derive a key from a password
_UNTRUSTED, _TRUSTED = b"untrusted comment: ", b"trusted comment: "
_KEY_TEXT = re.compile(r"RW[A-Za-z0-9+/]{54}")  # a public key without its comment
_MOST = 1 << 14  # bytes of a key or signature; minisign's comments have at most 8,192


class SigningKey(NamedTuple):
    """A private key and its id."""

    key_id: bytes
    private: Ed25519PrivateKey


class PublicKey(NamedTuple):
    """A public key and its id."""

    key_id: bytes
    public: Ed25519PublicKey


def read_signing_key(path: Path) -> SigningKey:
    """Read a private key of minisign without a password; InputError if others can read it, or it has one."""
    name = f"sign={path}"
    try:
        check_private(path, name, "sign releases as yours", what="the key")
        content = _decoded(_lines(read_bytes(path, _MOST), 2)[1], 158)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{name}: holds no private key of minisign ({_reason(error)}); minisign -G -W -s {path} makes one"
        ) from None
    algorithm, password, key_id = content[:2], content[2:4], content[54:62]
    seed, public = content[62:94], content[94:126]
    if password != _NO_PASSWORD:
        raise InputError(
            f"{name}: has a password, which is asked for by minisign alone; release without sign=, then run "
            f"minisign -S -s {path} -m <out>/{INDEX}, which makes such a file as well"
        )
    private = Ed25519PrivateKey.from_private_bytes(seed)
    if (
        algorithm != _KEY_ALGORITHM
        or private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw) != public
    ):
        raise InputError(f"{name}: its two halves are not of one key; take a whole copy of the file")
    return SigningKey(key_id, private)


def read_public_key(word: str) -> PublicKey:
    """Read a public key from a file of minisign, or from its text (`RW...`); InputError if it is none."""
    try:
        given = word.encode() if _KEY_TEXT.fullmatch(word) else _lines(read_bytes(Path(word), _MOST), 2)[1]
        content = _decoded(given, 42)
        if content[:2] != _KEY_ALGORITHM:
            raise ValueError("it is of another algorithm")
        return PublicKey(content[2:10], Ed25519PublicKey.from_public_bytes(content[10:]))
    except (OSError, ValueError) as error:
        raise InputError(
            f"key={word}: is no public key of minisign ({_reason(error)}); give the file minisign.pub of "
            "those who made the release, or its second line"
        ) from None


def sign(folder: Path, key: SigningKey, comment: str) -> None:
    """Write the signature of a folder's index; `comment` becomes part of what is signed."""
    digest = blake2b(read_bytes(folder / INDEX, MOST_INDEX)).digest()
    signature = key.private.sign(digest)
    told = comment.encode()
    lines = [
        _UNTRUSTED + b"signature of a release of cardiolens",
        base64.b64encode(_HASHED + key.key_id + signature),
        _TRUSTED + told,
        base64.b64encode(key.private.sign(signature + told)),
    ]
    disk.write_bytes(folder / SIGNATURE, b"\n".join(lines) + b"\n")


def signed_comment(folder: Path, key: PublicKey) -> str:
    """Return the trusted comment of a folder's signature; ValueError, with the reason, if it is not valid."""
    try:
        index, stored = read_bytes(folder / INDEX, MOST_INDEX), read_bytes(folder / SIGNATURE, _MOST)
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror or error})") from None
    lines = _lines(stored, 4)
    if not lines[2].startswith(_TRUSTED):
        raise ValueError("has no trusted comment")
    comment = lines[2].removeprefix(_TRUSTED)
    content, second = _decoded(lines[1], 74), _decoded(lines[3], 64)
    algorithm, key_id, signature = content[:2], content[2:10], content[10:]
    if algorithm not in (_HASHED, _WHOLE):
        raise ValueError("is of an unknown algorithm")
    if key_id != key.key_id:
        raise ValueError(f"was made with another key ({key_id[::-1].hex().upper()})")
    try:
        key.public.verify(signature, blake2b(index).digest() if algorithm == _HASHED else index)
        key.public.verify(second, signature + comment)
    except InvalidSignature:
        raise ValueError("does not fit; the index or the signature was changed") from None
    return comment.decode("utf-8", "replace")


def _lines(stored: bytes, number: int) -> list[bytes]:
    lines = stored.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")
    if len(lines) != number or not lines[0].startswith(_UNTRUSTED):
        raise ValueError(f"is not of minisign: expected {number} lines, the first an untrusted comment")
    return lines


def _decoded(text: bytes, size: int) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except binascii.Error:
        content = b""
    if len(content) != size:
        raise ValueError(f"is not of minisign: expected {size} bytes in base64")
    return content


def _reason(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error)
