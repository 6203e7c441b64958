"""A codec as the file that Hugging Face's tokenizers read."""

import json

from numtok.encoding.codec import Codec
from numtok.encoding.schema import SPECIALS
from numtok.encoding.schemes.base import ChannelScheme


def tokenizer_json(codec: Codec) -> bytes | None:
    """A Hugging Face ``tokenizer.json`` that gives the same ids; None with a value channel.

    It reads the ``text`` column with each ``[NUM]`` replaced by ``codec.written_number``. Where an
    answer starts within a word the shards differ: there a token must begin.
    """
    if isinstance(codec.scheme, ChannelScheme):
        return None
    content = codec.text.huggingface()
    shifted = {
        token: index + codec.text_first for token, index in content["model"]["vocab"].items()
    }
    own = codec.names[: codec.text_first]
    # A text token of the same name is never met: such text is escaped.
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
