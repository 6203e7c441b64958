"""Waiting for a network."""

from threading import Event

import pytest

from numtok.data.fetching import patience
from numtok.data.fetching.patience import noting_silence


def test_a_long_silence_is_noted_and_a_short_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    with noting_silence(notes.append, "gs://bucket"):
        pass
    assert notes == []
    monkeypatch.setattr(patience, "SILENCE", 0.001)
    noted = Event()

    def note(text: str) -> None:
        notes.append(text)
        noted.set()

    with noting_silence(note, "gs://bucket"):
        assert noted.wait(10)
    assert len(notes) == 1 and notes[0].startswith("gs://bucket: no answer yet")
