"""Addresses that cannot be read, and waiting for a network."""

import gc
from threading import Event

import pytest

from numtok.data.fetching import file_systems
from numtok.data.fetching.file_systems import file_system, noting_silence
from numtok.errors import UsageError
from tests.cases import case


@pytest.mark.filterwarnings("error")
def test_kinds_of_address_that_need_more_than_an_address_are_refused() -> None:
    pytest.importorskip("fsspec", reason="addresses need fsspec")
    for url in ("ftp://127.0.0.1/a.jsonl", "github://a.jsonl", "webhdfs://a/b.jsonl", "dir://a"):
        with case(url=url):
            with pytest.raises(UsageError, match=f"{url.partition(':')[0]}:// .* cannot be read"):
                file_system(url)
            gc.collect()


def test_a_long_silence_is_noted_and_a_short_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    with noting_silence(notes.append, "gs://bucket"):
        pass
    assert notes == []
    monkeypatch.setattr(file_systems, "SILENCE", 0.001)
    noted = Event()

    def note(text: str) -> None:
        notes.append(text)
        noted.set()

    with noting_silence(note, "gs://bucket"):
        assert noted.wait(10)
    assert len(notes) == 1 and notes[0].startswith("gs://bucket: no answer yet")
