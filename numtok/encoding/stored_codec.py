"""stored_codec: reads and compares the codecs of artifacts (encoded data or models)."""

from numtok import files
from numtok.encoding.codec import LARGEST, Codec
from numtok.encoding.schema import SCHEME_FILE
from numtok.errors import UsageError
from numtok.store.artifact import Artifact


def read_codec(artifact: Artifact) -> Codec:
    """Read the codec of an artifact (encoded data or a model)."""
    with artifact.naming_plugins():
        codec = Codec.read(artifact.path / SCHEME_FILE)
    artifact.check(SCHEME_FILE)
    return codec


def same_codec(first: Artifact, second: Artifact) -> bool:
    """Return whether two artifacts (encoded data or models) use the same codec."""
    left, right = (files.read_bytes(each.path / SCHEME_FILE, LARGEST) for each in (first, second))
    return left == right or read_codec(first).digest == read_codec(second).digest


def check_codec(model: Artifact, encoded: Artifact) -> None:
    """Raise UsageError unless ``encoded`` has the same codec as the model's training data."""
    if not same_codec(model, encoded):
        raise UsageError(
            f"{encoded.ref} is not encoded like the training data of {model.ref}. "
            f"Encode it again: numtok encode --reuse-encoding {model.ref} INPUT"
        )
