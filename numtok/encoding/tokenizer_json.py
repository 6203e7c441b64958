"""tokenizer_json: exports a codec as Hugging Face's ``tokenizer.json``."""

import json

from numtok.encoding.codec import Codec
from numtok.encoding.schema import SPECIALS
from numtok.encoding.schemes.base import ChannelScheme


def tokenizer_json(codec: Codec) -> bytes | None:
    """Return a Hugging Face ``tokenizer.json`` that produces the same ids as a codec, or None if
    the scheme has a value channel.

    The exported tokenizer expects the ``text`` column, with each ``[NUM]`` replaced by the number's
    ``codec.written_number``. Its ids differ from those in the shards if an answer starts within a
    word, because the codec begins a new token there.
    """
    if isinstance(codec.scheme, ChannelScheme):
        return None
    content = codec.text.huggingface()
    shifted = {
        token: index + codec.text_first for token, index in content["model"]["vocab"].items()
    }
    own = codec.names[: codec.text_first]
    # A text token of the same name never occurs: such text is escaped.
    vocabulary = shifted | {token: index for index, token in enumerate(own)}
    added = [
        {
            "id": index,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": index < len(SPECIALS),
        }
        for index, token in enumerate(own)
    ]
    added += [
        token | {"id": token["id"] + codec.text_first}
        for token in content["added_tokens"] or ()
        if not token["special"]
    ]
    model = content["model"] | {"vocab": vocabulary}
    return json.dumps(
        content | {"model": model, "added_tokens": added}, ensure_ascii=False
    ).encode()
