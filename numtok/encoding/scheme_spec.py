"""scheme_spec: builds a scheme from a spec, or from a file that the spec names."""

from pathlib import Path

from numtok.encoding.schemes.base import SCHEMES, Scheme
from numtok.errors import UsageError
from numtok.registry import parse_spec

_GIVEN = "bpe,file="


def scheme_of(spec: str) -> Scheme:
    """Build a scheme from a spec.

    In addition to the specs of ``SCHEMES.build``, ``bpe,file=tokenizer.json`` is accepted, which
    uses the merges of an existing tokenizer. Raises UsageError if the spec or the file is invalid,
    and StoreError if the file cannot be read.
    """
    if spec.startswith(_GIVEN):  # the rest is a path, whatever commas it has
        from numtok.encoding.schemes.bpe import BpeScheme

        return BpeScheme.read(Path(spec.removeprefix(_GIVEN)))
    name, _, options = parse_spec(spec, "scheme")
    if name == "bpe" and "file" in options:
        raise UsageError(
            f"scheme {spec!r}: file cannot be combined with other settings. Use {_GIVEN}PATH"
        )
    return SCHEMES.build(spec)
