"""Bytes written as printable characters, as in GPT-2's byte-level tokenizer."""

#: Readable names of the bytes, indexed by value.
BYTE_NAMES = tuple(chr(byte) if 0x20 <= byte < 0x7F else f"<0x{byte:02X}>" for byte in range(256))


def _alphabet() -> str:
    """Return one printable character per byte: the byte itself if it is printable in Latin-1, and
    otherwise the next unused character, starting at U+0100. This is the alphabet of GPT-2's
    tokenizer."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    free = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(free)) for byte in range(256))


ALPHABET = _alphabet()
_BYTE_OF = {character: byte for byte, character in enumerate(ALPHABET)}


def to_alphabet(token: bytes) -> str:
    """Return one character of GPT-2's alphabet per byte: ``to_alphabet(b" a")`` is ``"Ġa"``."""
    return "".join([ALPHABET[byte] for byte in token])


def from_alphabet(token: str) -> bytes:
    """Return the bytes that :func:`to_alphabet` converts to ``token``.

    Raises KeyError if a character is not in the alphabet.
    """
    return bytes([_BYTE_OF[character] for character in token])
