"""Rounds whose last survivor and first one eliminated are within noise."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from numtok.store.store import Store
from numtok.sweeps.race.plan import Round
from numtok.sweeps.race.race import close_calls
from numtok.sweeps.race.rounds import RoundResult
from tests.fakereports import Fake, make


def notes(folder: Path, noises: dict[str, float | None], survivors: int) -> list[str]:
    """Of a round in which candidates have such errors; None is one without a score."""
    store = Store(folder / "artifacts")
    reports = {
        label: make(store, Fake(label, noise_seed=place, noise=noise), label).ref
        for place, (label, noise) in enumerate(noises.items())
        if noise is not None
    }
    skills = {label: None if noise is None else 1 - noise / 100 for label, noise in noises.items()}
    result = RoundResult(
        seconds=1.0,
        steps=dict.fromkeys(noises, 1),
        tried={},
        rates={},
        skills=skills,
        reports=reports,
    )
    plan: Any = SimpleNamespace(
        rounds=[Round(len(noises), 1.0, [1])], last=Round(survivors, 1.0, [1]), guesses={"": 0.0}
    )
    return list(close_calls([result], plan, store, None))


def test_a_race_with_one_round_has_no_close_call(tmp_path: Path) -> None:
    plan: Any = SimpleNamespace(rounds=[], last=Round(2, 1.0, [1]), guesses={"": 0.0})
    assert not list(close_calls([], plan, Store(tmp_path), None))


@pytest.mark.parametrize(
    ("noises", "pair"),
    [
        ({"a": 10, "b": 30, "c": 31, "d": 90}, ("b survived", "c did not")),
        ({"d": 90, "c": 31, "a": 10, "b": 30}, ("b survived", "c did not")),
        ({"a": 10, "b": 30, "c": 90, "d": 91}, None),
        ({"a": 10, "b": 30, "c": None, "d": None}, None),
        ({"a": 10, "b": None, "c": 90, "d": 91}, ("c survived", "d did not")),
    ],
)
def test_a_difference_within_noise_is_noted(
    tmp_path: Path, noises: dict[str, float | None], pair: tuple[str, str] | None
) -> None:
    found = notes(tmp_path, noises, survivors=2)
    assert len(found) == (pair is not None)
    if pair is not None:
        assert found[0].startswith("Round 1: ") and all(part in found[0] for part in pair)
