"""The checksum of inputs: the same for any division, different after any change."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from numtok.data.reading.checksum import Checksum


def by_definition(data: bytes) -> Checksum:
    words = np.frombuffer(data + bytes(-len(data) % 8), "<u8")
    places = np.arange(1, len(words) + 1, dtype=np.uint64)
    return Checksum(len(data), int(words.sum(dtype=np.uint64)), int((words * places).sum()))


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_it_is_the_same_however_the_bytes_are_cut(pieces: list[bytes]) -> None:
    found = Checksum()
    for piece in pieces:
        found = found.over(piece)
    assert found == by_definition(b"".join(pieces))


@given(st.binary(min_size=1, max_size=200), st.data())
def test_one_other_byte_is_noticed(content: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda value: value != content[place]))
    changed = content[:place] + bytes([other]) + content[place + 1 :]
    assert Checksum().over(changed) != Checksum().over(content)


def test_what_is_lost_moved_or_added_is_noticed() -> None:
    for changed in [b"01234567", b"89abcdef01234567", b"0123456789abcde", b"0123456789abcdef\0"]:
        assert Checksum().over(changed) != Checksum().over(b"0123456789abcdef"), changed
